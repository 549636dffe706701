#include "common/federation/event_file.h"

#include "common/chat/refusal.h"

enum { FILE_TEXT_MAX = 512 };

struct said {
	const char *filename; /* NULL: not named */
	int64_t limit;
};

/* ---- reading ---- */

static const char *text_of(const struct json *value, const char *name)
{
	const char *text = json_string(json_member(value, name));

	return text && *text && json_units(text) <= FILE_TEXT_MAX ? text : NULL;
}

/* Whoever is concerned is at home where the event comes from. */
static void people_read(
    const struct relay_batch *batch, struct relay_event *event)
{
	const struct json *list = json_member(event->value, "affectedUserIds");
	size_t count = json_type(list) == JSON_ARRAY ? json_count(list) : 0;

	if (count > REFUSED_PEOPLE_MAX)
		count = REFUSED_PEOPLE_MAX;
	event->people =
	    arena_array(batch->arena, count, sizeof(*event->people));
	for (size_t i = 0; i < count; i++) {
		const char *id = json_string(json_element(list, i));

		if (!id || !*id || json_units(id) > HOME_USER_ID_MAX)
			continue;
		event->people[event->people_count++] = (struct mention){
			.host = batch->source.host,
			.home_user_id = arena_text(batch->arena, id),
		};
	}
}

bool file_rejected_read(
    const struct relay_batch *batch, struct relay_event *event, struct err *err)
{
	struct said *said = ARENA_NEW(batch->arena, struct said);
	const char *filename = text_of(event->value, "sourceFilename");

	if (!event->message_id || !*event->message_id ||
	    !text_of(event->value, "attachmentId") ||
	    !text_of(event->value, "rejectionReason"))
		return err_refuse(err, ERR_INVALID,
		    "missing_file_rejected_payload", "no file is named");
	if (filename)
		said->filename = arena_text(batch->arena, filename);
	if (!json_whole(
		json_member(event->value, "rejectionLimit"), &said->limit) ||
	    said->limit < 0)
		said->limit = 0;
	event->detail = said;
	event->about_host = batch->node->origin.host;
	event->about_id = event->message_id;
	people_read(batch, event);
	return true;
}

/* ---- applying ---- */

static void members_of(const struct relay_range *run,
    const struct relay_event *event, const struct conversation *c,
    struct refusal *refusal)
{
	int64_t *people = arena_array(
	    tx_arena(run->tx), event->people_count, sizeof(*people));

	for (size_t i = 0; i < event->people_count; i++) {
		int64_t person = event->people[i].person->id;

		if (person && range_is_member(run, c, person))
			people[refusal->people_count++] = person;
	}
	refusal->people = people;
}

/* Settles what needs no statement; true: there is a refusal. */
static bool stage(
    struct relay_range *run, struct relay_event *event, struct refusal *refusal)
{
	const struct said *said = event->detail;
	const struct known_message *about;
	const struct conversation *c;

	if (event->state != EVENT_OPEN)
		return false;
	about = range_message(run, event->about_host, event->about_id);
	c = about ? range_conversation_by_id(run, about->dm_channel_id) : NULL;
	if (!c) {
		event_deny(run->batch, event, ERR_ABSENT, "message_not_found",
		    "no such message of ours");
		return false;
	}
	*refusal = (struct refusal){
		.conversation = c->id,
		.message = about->id,
		.author = about->user_id,
		.filename = said->filename,
		.limit = said->limit,
	};
	members_of(run, event, c, refusal);
	event_accept(event);
	if (event->people_count && !refusal->people_count)
		event_deny(run->batch, event, ERR_FORBIDDEN,
		    "unauthorized_source", "nobody of that node is in there");
	return event->state == EVENT_ACCEPTED;
}

bool file_rejected_apply(struct relay_range *run, struct err *err)
{
	struct arena *arena = tx_arena(run->tx);
	struct refusal *refusals =
	    arena_array(arena, run->count, sizeof(*refusals));
	struct relay_event **events =
	    arena_array(arena, run->count, sizeof(struct relay_event *));
	size_t n = 0;

	for (size_t i = 0; i < run->count; i++) {
		if (!stage(run, &run->events[i], &refusals[n]))
			continue;
		events[n++] = &run->events[i];
	}
	if (n == 0)
		return true;
	if (!refusals_add(run->tx, refusals, n, err))
		return false;
	for (size_t i = 0; i < n; i++)
		if (refusals[i].no_file)
			event_deny(run->batch, events[i], ERR_ABSENT,
			    "attachment_not_found", "no such file");
	return true;
}
