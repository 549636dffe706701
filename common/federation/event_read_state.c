#include "common/federation/event_read_state.h"

#include "common/chat/read_state.h"
#include "common/federation/outbox_read_state.h"

/* ---- reading ---- */

static bool missing(struct err *err, const char *what)
{
	return err_refuse(
	    err, ERR_INVALID, "missing_read_state_payload", "%s", what);
}

static const char *usable(const struct json *text)
{
	const char *string = json_string(text);

	return string && *string && json_units(string) <= HOME_USER_ID_MAX
	    ? string
	    : NULL;
}

/* {sourceInstance, sourceMessageId}, or {messageId, sourceInstance: null} of
 * the written specification: the peer's own. */
static bool about_read(const struct relay_batch *batch,
    struct relay_event *event, const struct json *ref, struct err *err)
{
	const struct json *instance = json_member(ref, "sourceInstance");
	const char *id = usable(json_member(ref, "sourceMessageId"));
	enum json_type type = json_type(instance);

	if (!id)
		id = usable(json_member(ref, "messageId"));
	if (!id ||
	    (type != JSON_NULL && type != JSON_ABSENT &&
		!json_string(instance)))
		return missing(err, "no message is named");
	event->about_host = json_string(instance)
	    ? batch_host(batch, json_string(instance))
	    : batch->source.host;
	if (!event->about_host)
		return missing(err, "no node of that name");
	event->about_id = arena_text(batch->arena, id);
	event->about_any_name = true;
	return true;
}

bool read_state_read(
    const struct relay_batch *batch, struct relay_event *event, struct err *err)
{
	const struct json *state = json_member(event->value, "readState");
	const struct json *user = json_member(state, "user");
	const char *conversation =
	    usable(json_member(event->value, "federatedId"));
	const char *person = usable(json_member(user, "homeUserId"));

	if (!conversation)
		return missing(err, "no conversation");
	if (!state)
		return true;
	if (!event_attribute(batch, event, person,
		json_string(json_member(user, "homeInstance")), err))
		return false;
	if (!person)
		return missing(err, "nobody reads");
	event->federated_id = arena_text(batch->arena, conversation);
	event->place = PLACE_FEDERATED;
	return about_read(batch, event, json_member(state, "messageRef"), err);
}

bool read_state_admit(
    const struct relay_range *range, struct relay_event *event, struct err *err)
{
	const struct person *person = event->actor.person;

	return !person || !person->id || event_may_act(range, event, err);
}

/* ---- applying ---- */

/* Settles what needs no mark; true: there is one. */
static bool stage(
    struct relay_range *run, struct relay_event *event, struct read_mark *mark)
{
	const struct person *person = event->actor.person;
	const struct conversation *c;
	const struct known_message *about;
	int64_t said_at;

	if (event->state != EVENT_OPEN)
		return false;
	event_accept(event);
	c = person ? range_conversation(run, event) : NULL;
	if (!c || c->is_gone)
		return false;
	if (!person->id)
		event_deny(run->batch, event, ERR_ABSENT, "user_not_found",
		    "nobody we know");
	else if (!range_is_member(run, c, person->id))
		event_deny(run->batch, event, ERR_FORBIDDEN,
		    "unauthorized_source", "who reads is not in there");
	about = range_message(run, event->about_host, event->about_id);
	if (event->state != EVENT_ACCEPTED || !about || !about->id)
		return false;
	if (about->dm_channel_id != c->id) {
		event_deny(run->batch, event, ERR_INVALID, "invalid_read_state",
		    "a message of elsewhere");
		return false;
	}
	if (!json_whole(json_member(event->value, "timestamp"), &said_at))
		said_at = 0;
	*mark = (struct read_mark){ person->id, c->id, about->id,
		time_capped(said_at), false };
	return !person->is_stub;
}

bool read_state_apply(struct relay_range *run, struct err *err)
{
	struct arena *arena = tx_arena(run->tx);
	struct read_mark *marks =
	    arena_array(arena, run->count, sizeof(*marks));
	const struct relay_event **events =
	    arena_array(arena, run->count, sizeof(struct relay_event *));
	size_t n = 0;

	for (size_t i = 0; i < run->count; i++) {
		if (!stage(run, &run->events[i], &marks[n]))
			continue;
		events[n++] = &run->events[i];
	}
	if (!read_states_move(run->tx, marks, n, err))
		return false;
	for (size_t i = 0; i < n; i++)
		if (events[i]->is_homeward &&
		    !outbox_add_read_state(run->tx, run->batch->node, &marks[i],
			run->batch->source.host, err))
			return false;
	return true;
}
