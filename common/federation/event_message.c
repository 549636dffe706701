#include "common/federation/event_message.h"

#include "common/base/id.h"
#include "common/chat/attachment.h"
#include "common/chat/event.h"
#include "common/federation/outbox_message.h"
#include "common/pg/notify.h"

#include "common/federation/event_message.sql.h"

/* clang-format off */
struct inserted {
	int64_t id;
	int64_t conversation;
	int64_t seq; /* that it has reached */
};

static const struct shape inserted_shape[] = {
	SHAPE(ID,   struct inserted, id, NULL),
	SHAPE(ID,   struct inserted, conversation, NULL),
	SHAPE(INT,  struct inserted, seq, NULL),
	SHAPE_END(struct inserted),
};
/* clang-format on */

/* ---- what all of them need ---- */

static void refuse_unknown(
    const struct relay_range *run, struct relay_event *event)
{
	event_deny(run->batch, event, ERR_ABSENT, NULL,
	    "no such message from this peer");
}

static void refuse_stranger(
    const struct relay_range *run, struct relay_event *event)
{
	event_deny(run->batch, event, ERR_ATTRIBUTION, NULL,
	    "not for this node to say");
}

static struct relay_event **staged_new(const struct relay_range *run)
{
	return arena_array(
	    tx_arena(run->tx), run->count, sizeof(struct relay_event *));
}

/* ---- create ---- */

/* The rows to come, a column each. */
struct columns {
	int64_t *channels, *authors, *created, *edited;
	const char **contents, **ids;
};

static struct columns columns_of(
    struct arena *arena, struct relay_event **staged, size_t count)
{
	struct columns c = {
		.channels = arena_array(arena, count, sizeof(int64_t)),
		.authors = arena_array(arena, count, sizeof(int64_t)),
		.created = arena_array(arena, count, sizeof(int64_t)),
		.edited = arena_array(arena, count, sizeof(int64_t)),
		.contents = arena_array(arena, count, sizeof(char *)),
		.ids = arena_array(arena, count, sizeof(char *)),
	};

	for (size_t i = 0; i < count; i++) {
		c.channels[i] = staged[i]->channel;
		c.authors[i] = staged[i]->actor.person->id;
		c.created[i] = staged[i]->created_at;
		c.edited[i] = staged[i]->edited_at;
		c.contents[i] = staged[i]->content;
		c.ids[i] = staged[i]->message_id;
	}
	return c;
}

static void known_add(struct relay_range *run, const struct relay_event *event,
    const char *host, const char *birth_id, int64_t id)
{
	const struct person *author = event->actor.person;

	const struct known_message known = {
		.host = host,
		.birth_id = birth_id,
		.id = id,
		.dm_channel_id = event->channel,
		.user_id = author->id,
		.home_instance = author->is_native ? NULL : author->host,
		.home_user_id = author->is_native ? NULL : author->home_user_id,
		.replicated_instances = author->replicated_instances,
	};

	range_add_message(run, &known);
}

/* Ids grow with the place, so the rows are in the order of the events. */
static void created_settle(struct relay_range *run, struct relay_event **staged,
    const struct rows *rows)
{
	const struct inserted *all = rows->items;

	for (size_t i = 0; i < rows->count; i++) {
		const struct relay_event *event = staged[i];

		known_add(
		    run, event, event->about_host, event->about_id, all[i].id);
		if (event->written_id)
			known_add(run, event, event->written_host,
			    event->written_id, all[i].id);
		event_accept(staged[i]);
		signal_conversation(run->tx, all[i].conversation, all[i].seq);
	}
}

static bool created_files(struct relay_range *run, struct relay_event **staged,
    const struct rows *rows, struct err *err)
{
	const struct inserted *all = rows->items;
	size_t count = rows->count;
	struct attachment *files;
	size_t total = 0;

	for (size_t i = 0; i < count; i++)
		total += staged[i]->file_count;
	files = arena_array(tx_arena(run->tx), total, sizeof(*files));
	total = 0;
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < staged[i]->file_count; j++) {
			files[total] = staged[i]->files[j];
			files[total++].dm_message_id = all[i].id;
		}
	return attachments_expect(run->tx, run->batch->peer->id,
	    run->batch->source.text, files, total, err);
}

/* Reactions may name what was sent on by where it was written. */
static bool created_aliases(struct relay_range *run,
    struct relay_event **staged, const struct rows *rows, struct err *err)
{
	struct arena *arena = tx_arena(run->tx);
	const struct inserted *all = rows->items;
	const char **hosts = arena_array(arena, rows->count, sizeof(*hosts));
	const char **ids = arena_array(arena, rows->count, sizeof(*ids));
	int64_t *messages = arena_array(arena, rows->count, sizeof(*messages));
	size_t n = 0;

	for (size_t i = 0; i < rows->count; i++) {
		if (!staged[i]->written_id)
			continue;
		hosts[n] = staged[i]->written_host;
		ids[n] = staged[i]->written_id;
		messages[n++] = all[i].id;
	}
	return n == 0 ||
	    sql_none(run->tx, &SQL_messages_alias, err, v_texts(hosts, n),
		v_texts(ids, n), v_ids(messages, n));
}

/* What came homeward is sent on once, under our id, never back. */
static bool send_on(struct relay_range *run, const char *event_type,
    const struct message *message, struct err *err)
{
	return outbox_add_message(run->tx, run->batch->node, event_type,
	    message, run->batch->source.host, err);
}

/* Who has left a group says nothing there any more. */
static bool is_in(const struct relay_range *run, const struct message *message)
{
	return range_is_member(run,
	    range_conversation_by_id(run, message->dm_channel_id),
	    message->user_id);
}

static bool created_send_on(struct relay_range *run,
    struct relay_event **staged, const struct rows *rows, struct err *err)
{
	const struct inserted *all = rows->items;

	for (size_t i = 0; i < rows->count; i++) {
		const struct relay_event *event = staged[i];
		struct message message = {
			.id = all[i].id,
			.dm_channel_id = event->channel,
			.user_id = event->actor.person->id,
			.content = event->content,
			.edited_at = event->edited_at,
			.created_at = event->created_at,
			.source_instance = run->batch->source.text,
			.source_message_id = event->message_id,
		};

		if (event->is_homeward &&
		    !send_on(run, "create", &message, err))
			return false;
	}
	return true;
}

static bool insert(struct relay_range *run, struct relay_event **staged,
    size_t count, struct rows *rows, struct err *err)
{
	struct arena *arena = tx_arena(run->tx);
	struct columns c = columns_of(arena, staged, count);
	struct seq_steps steps = seq_steps_of(arena, c.channels, count);

	/* A duplicate that came between look-up and insert fails the batch. */
	return sql_many(run->tx, &SQL_messages_insert, inserted_shape, rows,
		   err, v_text(run->batch->source.text),
		   v_ids(steps.conversations, steps.count),
		   v_ids(steps.added, steps.count), v_ids(c.channels, count),
		   v_ids(c.authors, count), v_texts(c.contents, count),
		   v_times(c.edited, count), v_times(c.created, count),
		   v_texts(c.ids, count), v_ids(steps.offsets, count)) &&
	    (rows->count == count ||
		err_set(err, ERR_BUSY, "%zu of %zu messages were stored",
		    rows->count, count));
}

/* True: the message is to be stored. */
static bool create_stage(struct relay_range *run, struct relay_event *event)
{
	const struct conversation *c;

	if (event->state != EVENT_OPEN)
		return false;
	c = range_conversation(run, event);
	if (range_message(run, event->about_host, event->about_id))
		event_deny(run->batch, event, ERR_DUPLICATE, NULL,
		    "the message is already here");
	else if (!c || c->is_gone)
		event_deny(run->batch, event, ERR_ABSENT, "channel_not_found",
		    "no such channel");
	else if (!range_is_member(run, c, event->actor.person->id))
		event_deny(run->batch, event, ERR_FORBIDDEN,
		    "unauthorized_source", "the author is not in the group");
	else
		event->channel = c->id;
	return event->channel != 0;
}

static bool forget(struct relay_range *run, struct err *err)
{
	const char **ids =
	    arena_array(tx_arena(run->tx), run->count, sizeof(*ids));
	size_t n = 0;

	for (size_t i = 0; i < run->count; i++) {
		const struct relay_event *event = &run->events[i];
		const struct known_message gone = {
			.host = event->about_host,
			.birth_id = event->about_id,
		};

		if (!event->is_forgotten ||
		    range_message(run, gone.host, gone.birth_id))
			continue;
		ids[n++] = event->about_id;
		range_add_message(run, &gone);
	}
	return n == 0 ||
	    sql_none(run->tx, &SQL_messages_forget, err,
		v_text(run->batch->source.text), v_texts(ids, n));
}

bool create_apply(struct relay_range *run, struct err *err)
{
	struct relay_event **staged = staged_new(run);
	struct rows rows;
	size_t n = 0;

	if (!forget(run, err))
		return false;
	for (size_t i = 0; i < run->count; i++)
		if (create_stage(run, &run->events[i]))
			staged[n++] = &run->events[i];
	if (n == 0)
		return true;
	if (!insert(run, staged, n, &rows, err))
		return false;
	created_settle(run, staged, &rows);
	return created_files(run, staged, &rows, err) &&
	    created_aliases(run, staged, &rows, err) &&
	    created_send_on(run, staged, &rows, err);
}

/* ---- update, delete ---- */

/* An edit names its author, who must be the one that is stored. */
static bool may_edit(const struct relay_range *run,
    const struct relay_event *event, const struct known_message *known)
{
	const struct mention *actor = &event->actor;

	if (event->is_homeward)
		return !known->home_instance &&
		    id_parse(actor->home_user_id) == known->user_id &&
		    homeward_allowed(run->batch, known->replicated_instances);
	return known->home_instance && known->home_user_id &&
	    strcmp(known->home_instance, actor->host) == 0 &&
	    strcmp(known->home_user_id, actor->home_user_id) == 0;
}

/* A delete names nobody: the author must be at home there, or declared. */
static bool may_delete(
    const struct relay_range *run, const struct known_message *known)
{
	if (!known->home_instance)
		return homeward_allowed(
		    run->batch, known->replicated_instances);
	return strcmp(known->home_instance, run->batch->source.host) == 0;
}

/*
 * By the peer's id; or by ours, if we know it by no id of the peer's and its
 * author is the peer's, or ours with an account there.
 */
static struct known_message *about(
    const struct relay_range *run, const struct relay_event *event)
{
	struct known_message *known =
	    range_message(run, event->about_host, event->about_id);

	if (known)
		return known;
	known =
	    range_message(run, run->batch->node->origin.host, event->about_id);
	if (!known ||
	    !(event->has_message ? may_edit(run, event, known)
				 : may_delete(run, known)))
		return NULL;
	return known;
}

static const struct known_message *changed(
    const struct relay_range *run, const struct message *message)
{
	for (size_t i = 0; i < run->message_count; i++)
		if (run->messages[i].id == message->id)
			return &run->messages[i];
	return NULL;
}

/* Changes of messages: the events, and what goes homeward on. */
static bool changed_announce(struct relay_range *run, const struct rows *rows,
    const char *kind, const char *event_type, struct err *err)
{
	const struct message *messages = rows->items;
	struct change *changes =
	    arena_array(tx_arena(run->tx), rows->count, sizeof(*changes));

	for (size_t i = 0; i < rows->count; i++)
		changes[i] = (struct change){ messages[i].dm_channel_id, kind,
			messages[i].id, messages[i].user_id };
	if (!changes_append(run->tx, changes, rows->count, NULL, err))
		return false;
	for (size_t i = 0; i < rows->count; i++) {
		const struct known_message *known = changed(run, &messages[i]);

		assert(known);
		if (!known->home_instance && is_in(run, &messages[i]) &&
		    !send_on(run, event_type, &messages[i], err))
			return false;
	}
	return true;
}

/* Settles what needs no statement; true: the edit is to be made. */
static bool update_stage(
    struct relay_range *run, struct relay_event *event, int64_t *id)
{
	const struct known_message *known;

	if (event->state != EVENT_OPEN)
		return false;
	known = about(run, event);
	if (!known) {
		refuse_unknown(run, event);
		return false;
	}
	if (!event->has_message || !known->id) {
		event_accept(event);
		return false;
	}
	if (!may_edit(run, event, known)) {
		refuse_stranger(run, event);
		return false;
	}
	event_accept(event);
	*id = known->id;
	return event->edited_at != 0;
}

bool update_apply(struct relay_range *run, struct err *err)
{
	struct arena *arena = tx_arena(run->tx);
	int64_t *ids = arena_array(arena, run->count, sizeof(*ids));
	int64_t *edited = arena_array(arena, run->count, sizeof(*edited));
	const char **contents =
	    arena_array(arena, run->count, sizeof(*contents));
	struct rows rows;
	size_t n = 0;

	for (size_t i = 0; i < run->count; i++) {
		struct relay_event *event = &run->events[i];

		if (!update_stage(run, event, &ids[n]))
			continue;
		edited[n] = event->edited_at;
		contents[n++] = event->content;
	}
	return n == 0 ||
	    (sql_many(run->tx, &SQL_messages_update, message_row_shape, &rows,
		 err, v_ids(ids, n), v_texts(contents, n),
		 v_times(edited, n)) &&
		changed_announce(run, &rows, "message_updated", "update", err));
}

static bool delete_stage(
    struct relay_range *run, struct relay_event *event, int64_t *id)
{
	const struct known_message *known;

	if (event->state != EVENT_OPEN)
		return false;
	known = about(run, event);
	if (!known) {
		refuse_unknown(run, event);
		return false;
	}
	if (known->id && !may_delete(run, known)) {
		refuse_stranger(run, event);
		return false;
	}
	event_accept(event);
	*id = known->id;
	return known->id != 0;
}

bool delete_apply(struct relay_range *run, struct err *err)
{
	int64_t *ids = arena_array(tx_arena(run->tx), run->count, sizeof(*ids));
	struct rows rows;
	size_t n = 0;

	for (size_t i = 0; i < run->count; i++)
		if (delete_stage(run, &run->events[i], &ids[n]))
			n++;
	if (n == 0)
		return true;
	if (!sql_many(run->tx, &SQL_messages_delete, message_row_shape, &rows,
		err, v_ids(ids, n)) ||
	    !changed_announce(run, &rows, "message_deleted", "delete", err))
		return false;
	for (size_t i = 0; i < run->count; i++) {
		struct known_message *known = about(run, &run->events[i]);

		if (known && run->events[i].state == EVENT_ACCEPTED)
			known->id = 0;
	}
	return true;
}
