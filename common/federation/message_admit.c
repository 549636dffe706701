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
	for (size_t i = 0; i < event->people_count; i++) {
		const struct person *p = event->people[i].person;

		if (p->is_native || (p->id && !p->is_stub))
			return true;
	}
	return false;
}

static bool admit_pair(
    const struct relay_range *range, struct relay_event *event, struct err *err)
{
	const struct mention *a = &event->people[0];
	const struct mention *b = &event->people[1];

	if (a->person == b->person)
		return err_refuse(err, ERR_INVALID, "missing_participants",
		    "both participants are one");
	if (!is_actor(event, a) && !is_actor(event, b))
		return err_refuse(err, ERR_INVALID, "author_not_found",
		    "the author is not among the participants");
	return person_exists(a->person, err) && person_exists(b->person, err) &&
	    event_may_act(range, event, err);
}

/* Groups are made by their own events; here they must be known. */
static bool admit_group(
    const struct relay_range *range, struct relay_event *event, struct err *err)
{
	bool among = false;

	for (size_t i = 0; i < event->people_count; i++)
		among |= is_actor(event, &event->people[i]);
	if (!among)
		return err_refuse(err, ERR_INVALID, "author_not_found",
		    "the author is not among the participants");
	return event_may_act(range, event, err);
}

bool create_admit(
    const struct relay_range *range, struct relay_event *event, struct err *err)
{
	if (event->place == PLACE_GROUP)
		return admit_group(range, event, err);
	if (!admit_pair(range, event, err))
		return false;
	/*
	 * A node that sends everything to everybody is told yes, or it would
	 * repeat it for ever; nothing of it stays here but its id, so that what
	 * becomes of it later is told yes, too.
	 */
	if (!concerns_us(event)) {
		log_info("relay.unconcerned",
		    F("peer", v_text(range->batch->source.text)),
		    F("entry", v_text(event->message_id)));
		event->is_forgotten = true;
		event_accept(event);
		return true;
	}
	event->people[0].person->wanted = true;
	event->people[1].person->wanted = true;
	return true;
}
