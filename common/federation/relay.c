#include "common/federation/relay.h"

#include "common/base/log.h"
#include "common/federation/event_file.h"
#include "common/federation/event_friend.h"
#include "common/federation/event_group.h"
#include "common/federation/event_message.h"
#include "common/federation/event_profile.h"
#include "common/federation/event_reaction.h"
#include "common/federation/event_read_state.h"
#include "common/federation/event_typing.h"
#include "common/federation/relay_figures.h"

#include "common/federation/relay.sql.h"

/* clang-format off */
static const struct event_type event_types[] = {
	{ "create",          "dm", EVENT_DURABLE,   create_read, create_admit, create_apply },
	{ "update",          "dm", EVENT_DURABLE,   update_read, NULL,         update_apply },
	{ "delete",          "dm", EVENT_DURABLE,   delete_read, NULL,         delete_apply },
	{ "reaction_add",    "dm", EVENT_DURABLE,   reaction_add_read,    reaction_add_admit,    reaction_add_apply },
	{ "reaction_remove", "dm", EVENT_DURABLE,   reaction_remove_read, reaction_remove_admit, reaction_remove_apply },
	{ "member_add",      "dm", EVENT_DURABLE,   member_add_read,    member_add_admit,    member_add_apply },
	{ "member_remove",   "dm", EVENT_DURABLE,   member_remove_read, member_remove_admit, member_remove_apply },
	{ "ownership_transfer", "dm", EVENT_DURABLE, ownership_transfer_read, ownership_transfer_admit, ownership_transfer_apply },
	{ "friend_request_create", "friend", EVENT_DURABLE, friend_create_read, friend_create_admit, friend_create_apply },
	{ "friend_request_update", "friend", EVENT_DURABLE, friend_update_read, friend_update_admit, friend_update_apply },
	{ "friend_request_cancel", "friend", EVENT_DURABLE, friend_cancel_read, friend_cancel_admit, friend_cancel_apply },
	{ "friend_add",      "friend", EVENT_DURABLE, friend_add_read, friend_add_admit, friend_add_apply },
	{ "friend_remove",   "friend", EVENT_DURABLE, friend_remove_read, friend_remove_admit, friend_remove_apply },
	{ "read_state_update", "dm", EVENT_DURABLE, read_state_read, read_state_admit, read_state_apply },
	{ "file_rejected",   "dm", EVENT_DURABLE, file_rejected_read, NULL, file_rejected_apply },
	{ "dm_typing_start", "dm", EVENT_EPHEMERAL, typing_read, typing_admit, typing_start_apply },
	{ "dm_typing_stop",  "dm", EVENT_EPHEMERAL, typing_read, typing_admit, typing_stop_apply },
	{ "profile_update",  "profile", EVENT_DURABLE, profile_update_read, NULL, profile_update_apply },
};
/* clang-format on */

const struct event_type *event_type_at(size_t place)
{
	return place < COUNT(event_types) ? &event_types[place] : NULL;
}

/* ---- the envelope ---- */

static const struct event_type *type_find(const struct json *event)
{
	const char *name = json_string(json_member(event, "eventType"));
	const struct json *context = json_member(event, "contextType");
	const char *context_name = json_string(context);

	for (size_t i = 0; name && i < COUNT(event_types); i++) {
		const struct event_type *type = &event_types[i];

		if (strcmp(type->name, name) == 0)
			return !context ||
				(context_name &&
				    strcmp(context_name, type->context) == 0)
			    ? type
			    : NULL;
	}
	return NULL;
}

/* Numbers are taken for their digits; the answer repeats what came. */
static const char *id_read(struct arena *arena, const struct json *id)
{
	int64_t number;

	if (json_type(id) == JSON_NUMBER && json_whole(id, &number))
		return arena_printf(arena, "%" PRId64, number);
	return json_string(id);
}

static void event_read(const struct relay_batch *batch,
    const struct json *value, struct relay_event *event)
{
	struct err err = { 0 };

	event->value = value;
	event->state = EVENT_OPEN;
	event->id = json_member(value, "messageId");
	event->message_id = id_read(batch->arena, event->id);
	event->type = type_find(value);
	if (!event->type)
		err_refuse(&err, ERR_INVALID, "unknown_event_type",
		    "not an event we know");
	else if (event->type->read(batch, event, &err))
		return;
	event_refuse(batch, event, &err);
	event->state = EVENT_MALFORMED;
}

static bool envelope_check(const struct json *value, const struct peer *peer,
    const struct json **events, struct err *err)
{
	const struct json *list = json_member(value, "events");
	const char *source = json_string(json_member(value, "sourceInstance"));
	int64_t version;

	if (json_type(value) != JSON_OBJECT ||
	    !json_whole(json_member(value, "version"), &version) ||
	    version != 1 || json_type(list) != JSON_ARRAY)
		return err_set(
		    err, ERR_INVALID, "Invalid relay request format");
	if (!source || !*source)
		return err_set(err, ERR_INVALID, "sourceInstance is required");
	if (json_count(list) > RELAY_EVENTS_MAX)
		return err_set(err, ERR_INVALID, "Maximum %d events per batch",
		    RELAY_EVENTS_MAX);
	if (strcmp(source, peer->origin) != 0)
		return err_set(err, ERR_INVALID,
		    "sourceInstance does not match the signing origin");
	*events = list;
	return true;
}

bool relay_parse(struct arena *arena, struct bytes body,
    const struct node *node, const struct peer *peer,
    struct relay_batch **batch, struct err *err)
{
	struct relay_batch *read = ARENA_NEW(arena, struct relay_batch);
	const struct json *value;
	const struct json *events = NULL;

	if (!json_parse(arena, body, &value, err) ||
	    !envelope_check(value, peer, &events, err))
		return false;
	read->arena = arena;
	read->node = node;
	read->peer = peer;
	if (!origin_parse(arena, peer->origin, &read->source))
		return err_set(
		    err, ERR_BUG, "peer %s has no usable origin", peer->origin);
	read->count = json_count(events);
	read->events = arena_array(arena, read->count, sizeof(*read->events));
	for (size_t i = 0; i < read->count; i++)
		event_read(read, json_element(events, i), &read->events[i]);
	*batch = read;
	return true;
}

/* ---- applying ---- */

static bool id_in_run(
    const struct relay_event *events, size_t count, const char *id)
{
	for (size_t i = 0; id && i < count; i++)
		if (events[i].message_id &&
		    strcmp(events[i].message_id, id) == 0)
			return true;
	return false;
}

/* How many events from here are of one type about distinct things. */
static size_t run_length(const struct relay_event *events, size_t count)
{
	size_t length = 1;

	while (length < count && events[length].type == events[0].type &&
	    !id_in_run(events, length, events[length].message_id))
		length++;
	return length;
}

static bool runs_apply(struct relay_range *range, struct err *err)
{
	struct relay_event *events = range->events;
	size_t count = range->count;

	for (size_t i = 0; i < count; i += range->count) {
		range->events = events + i;
		range->count = run_length(range->events, count - i);
		if (range->events->type &&
		    !range->events->type->apply(range, err))
			return false;
	}
	range->events = events;
	range->count = count;
	return true;
}

static bool is_durable(const struct relay_range *range)
{
	for (size_t i = 0; i < range->count; i++)
		if (range->events[i].state == EVENT_OPEN &&
		    range->events[i].type->life == EVENT_DURABLE)
			return true;
	return false;
}

/* Durable events of a peer are taken one batch at a time. */
static bool batch_begin(
    struct tx *tx, struct relay_batch *batch, bool durable, struct err *err)
{
	struct limits {
		int64_t max_upload_size_bytes;
		bool homeward_any;
	} limits;
	static const struct shape shape[] = {
		SHAPE(INT, struct limits, max_upload_size_bytes, NULL),
		SHAPE(BOOL, struct limits, homeward_any, NULL),
		SHAPE_END(struct limits),
	};

	if (durable ? !sql_one(tx, &SQL_relay_lock, shape, &limits, err,
			  v_text(batch->source.text))
		    : !sql_one(tx, &SQL_relay_limits, shape, &limits, err))
		return false;
	batch->max_upload_size = limits.max_upload_size_bytes;
	batch->homeward_any = limits.homeward_any;
	return true;
}

static bool range_apply(struct tx *tx, struct relay_batch *batch, size_t from,
    size_t count, struct err *err)
{
	struct relay_range range = {
		.tx = tx,
		.batch = batch,
		.events = batch->events + from,
		.count = count,
	};
	bool durable;

	events_reopen(range.events, range.count);
	durable = is_durable(&range);
	return batch_begin(tx, batch, durable, err) &&
	    range_people(&range, durable, err) && range_messages(&range, err) &&
	    range_conversations(&range, durable, err) &&
	    range_friends(&range, err) && runs_apply(&range, err);
}

bool relay_apply(struct tx *tx, struct relay_batch *batch, struct err *err)
{
	return range_apply(tx, batch, 0, batch->count, err);
}

bool relay_apply_singly(
    struct tx *tx, struct relay_batch *batch, struct err *err)
{
	for (size_t i = 0; i < batch->count; i++) {
		struct relay_event *event = &batch->events[i];
		struct err failed = { 0 };

		if (event->state == EVENT_MALFORMED)
			continue;
		if (range_apply(tx, batch, i, 1, &failed) &&
		    tx_commit(tx, &failed))
			continue;
		tx_rollback(tx);
		failed.reason = "processing_error";
		event_refuse(batch, event, &failed);
	}
	return batch_begin(tx, batch, false, err) && tx_commit(tx, err);
}

/* ---- the log ---- */

enum { REFUSED_LINES_MAX = 5 };

static void log_refused(
    const struct relay_batch *batch, const struct relay_event *event)
{
	log_write(err_rules[event->code].level, "relay.refused",
	    LOG_FIELDS(F("peer", v_text(batch->source.text)),
		F("entry", v_text(event->message_id)),
		F("reason", v_text(event->reason)),
		F("err", v_text(event->why))));
}

void relay_log(const struct relay_batch *batch)
{
	size_t refused = 0;

	for (size_t i = 0; i < batch->count; i++) {
		const struct relay_event *event = &batch->events[i];
		bool accepted = event->state == EVENT_ACCEPTED;

		relay_figure_event(
		    event->type ? event->type->name : NULL, accepted);
		if (!accepted && refused++ < REFUSED_LINES_MAX)
			log_refused(batch, event);
	}
	if (refused > REFUSED_LINES_MAX)
		log_info("relay.refused_more",
		    F("peer", v_text(batch->source.text)),
		    F("count", v_int((int64_t)refused - REFUSED_LINES_MAX)));
}

/* ---- the answer ---- */

static void put_id(
    struct json_out *out, const char *name, const struct relay_event *event)
{
	const char *text = json_string(event->id);
	int64_t number;

	if (text)
		json_put_text(out, name, text);
	else if (json_whole(event->id, &number))
		json_put_int(out, name, number);
	else if (!name)
		json_put_null(out, NULL);
}

void relay_answer(const struct relay_batch *batch, struct buf *out)
{
	struct json_out json = { .buf = out };

	json_open(&json, NULL);
	json_open_list(&json, "accepted");
	for (size_t i = 0; i < batch->count; i++)
		if (batch->events[i].state == EVENT_ACCEPTED)
			put_id(&json, NULL, &batch->events[i]);
	json_close_list(&json);
	json_open_list(&json, "rejected");
	for (size_t i = 0; i < batch->count; i++) {
		const struct relay_event *event = &batch->events[i];

		if (event->state == EVENT_ACCEPTED)
			continue;
		json_open(&json, NULL);
		put_id(&json, "messageId", event);
		json_put_text(&json, "reason", event->reason);
		json_close(&json);
	}
	json_close_list(&json);
	json_put_int(&json, "maxUploadSize", batch->max_upload_size);
	json_close(&json);
}
