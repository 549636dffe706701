#include "common/base/log.h"
#include "common/federation/event_message.h"

/* ---- whom a create speaks of ---- */

static bool is_actor(const struct relay_event *event, const struct mention *who)
{
	return strcmp(who->host, event->actor.host) == 0 &&
	    strcmp(who->home_user_id, event->actor.home_user_id) == 0;
}

/* Somebody of this node, or with an account here. */
static bool concerns_us(const struct relay_event *event)
{
	for (size_t i = 0; i < event->participant_count; i++) {
		const struct person *p = event->participants[i].person;

		if (p->is_native || (p->id && !p->is_stub))
			return true;
	}
	return false;
}

static bool person_exists(const struct person *person, struct err *err)
{
	if (person->is_gone || (person->is_native && !person->id))
		return err_refuse(err, ERR_ABSENT, "participant_not_found",
		    "a participant is not here any more");
	return true;
}

static bool homeward_allowed(const struct relay_range *range,
    const struct relay_event *event, struct err *err)
{
	const struct relay_batch *batch = range->batch;

	return !event->is_homeward ||
	    instances_declare(batch->arena,
		event->actor.person->replicated_instances, &batch->source) ||
	    err_set(err, ERR_ATTRIBUTION,
		"our person has no account declared there");
}

static bool admit_pair(
    const struct relay_range *range, struct relay_event *event, struct err *err)
{
	const struct mention *a = &event->participants[0];
	const struct mention *b = &event->participants[1];

	if (a->person == b->person)
		return err_refuse(err, ERR_INVALID, "missing_participants",
		    "both participants are one");
	if (!is_actor(event, a) && !is_actor(event, b))
		return err_refuse(err, ERR_INVALID, "author_not_found",
		    "the author is not among the participants");
	event->actor.person = is_actor(event, a) ? a->person : b->person;
	return person_exists(a->person, err) && person_exists(b->person, err) &&
	    homeward_allowed(range, event, err);
}

/* Groups are made by their own events; here they must be known. */
static bool admit_group(
    const struct relay_range *range, struct relay_event *event, struct err *err)
{
	for (size_t i = 0; i < event->participant_count; i++)
		if (is_actor(event, &event->participants[i]))
			event->actor.person = event->participants[i].person;
	if (!event->actor.person)
		return err_refuse(err, ERR_INVALID, "author_not_found",
		    "the author is not among the participants");
	return person_exists(event->actor.person, err) &&
	    homeward_allowed(range, event, err);
}

static void admit(struct relay_range *range, struct relay_event *event)
{
	struct err err = { 0 };

	if (event->federated_id) {
		if (!admit_group(range, event, &err))
			event_refuse(range->batch, event, &err);
		return;
	}
	if (!admit_pair(range, event, &err)) {
		event_refuse(range->batch, event, &err);
		return;
	}
	/*
	 * A node that sends everything to everybody is told yes, or it would
	 * repeat it for ever; nothing of it stays here.
	 */
	if (!concerns_us(event)) {
		log_info("relay.unconcerned",
		    F("peer", v_text(range->batch->source.text)),
		    F("entry", v_text(event->message_id)));
		event_accept(event);
		return;
	}
	event->participants[0].person->wanted = true;
	event->participants[1].person->wanted = true;
}

void creates_admit(struct relay_range *range)
{
	for (size_t i = 0; i < range->count; i++)
		if (range->events[i].state == EVENT_OPEN &&
		    range->events[i].type->apply == create_apply)
			admit(range, &range->events[i]);
}
