#include "common/federation/event_typing.h"

#include "common/chat/typing.h"

bool typing_read(
    const struct relay_batch *batch, struct relay_event *event, struct err *err)
{
	const struct json *typing = json_member(event->value, "typing");
	const char *person = json_string(json_member(typing, "homeUserId"));
	const char *place =
	    json_string(json_member(event->value, "federatedId"));

	if (json_type(typing) != JSON_OBJECT || !person)
		return err_refuse(err, ERR_INVALID, "missing_typing_payload",
		    "nobody is typing");
	if (!event_attribute(batch, event, person,
		json_string(json_member(typing, "homeInstance")), err))
		return false;
	event->detail = json_string(json_member(typing, "username"));
	if (json_units(person) > HOME_USER_ID_MAX || !place || !*place ||
	    json_units(place) > HOME_USER_ID_MAX)
		return true;
	event->federated_id = place;
	event->place = PLACE_FEDERATED;
	return true;
}

bool typing_admit(
    const struct relay_range *range, struct relay_event *event, struct err *err)
{
	const struct person *person = event->actor.person;

	return !person->id || event_may_act(range, event, err);
}

static void show(
    struct relay_range *run, struct relay_event *event, bool starts)
{
	int64_t person = event->actor.person->id;
	const char *username = event->detail;
	const struct conversation *c;

	event_accept(event);
	if (event->place != PLACE_FEDERATED || !person)
		return;
	c = range_conversation(run, event);
	if (c && !c->is_gone && range_is_member(run, c, person))
		typing_signal(
		    run->tx, c->id, person, username ? username : "", starts);
}

static bool show_all(struct relay_range *run, bool starts)
{
	for (size_t i = 0; i < run->count; i++)
		if (run->events[i].state == EVENT_OPEN)
			show(run, &run->events[i], starts);
	return true;
}

bool typing_start_apply(struct relay_range *run, struct err *err)
{
	(void)err;
	return show_all(run, true);
}

bool typing_stop_apply(struct relay_range *run, struct err *err)
{
	(void)err;
	return show_all(run, false);
}
