#include "common/base/log.h"
#include "common/chat/group.h"
#include "common/federation/event_group.h"

/* ---- a roster ---- */

/* Neither deleted nor a person of ours who isn't here. */
static bool can_be_member(const struct person *person)
{
	return !person->is_gone && (person->id || !person->is_native);
}

size_t group_people(
    const struct relay_event *event, const struct person **people, size_t room)
{
	size_t count = 0;

	for (size_t i = 0; i < event->people_count && count < room; i++) {
		const struct person *person = event->people[i].person;
		bool again = false;

		for (size_t j = 0; j < count; j++)
			again |= people[j] == person;
		if (!again && can_be_member(person))
			people[count++] = person;
	}
	return count;
}

static bool is_in_roster(
    const struct relay_event *event, const struct person *person)
{
	for (size_t i = 1; i < event->people_count; i++)
		if (event->people[i].person == person)
			return true;
	return false;
}

bool group_may_start(const struct relay_range *range,
    const struct relay_event *event, struct err *err)
{
	const struct group_news *news = event->detail;
	const struct person *people[GROUP_MEMBERS_MAX + 1];
	const struct mention *owner = &event->people[1];

	if (!news->has_roster)
		return err_refuse(err, ERR_ABSENT, "channel_not_found",
		    "no such group, and nothing to begin it with");
	if (owner->host != range->batch->source.host &&
	    owner->host != range->batch->node->origin.host)
		return err_set(err, ERR_ATTRIBUTION,
		    "the group's owner is at home neither there nor here");
	if (!is_in_roster(event, event->actor.person))
		return err_set(
		    err, ERR_FORBIDDEN, "who adds is not in the group himself");
	if (!can_be_member(owner->person))
		return err_refuse(err, ERR_ABSENT, "participant_not_found",
		    "the group's owner is not here any more");
	if (group_people(event, people, COUNT(people)) > GROUP_MEMBERS_MAX)
		return err_refuse(err, ERR_FORBIDDEN, "max_members_exceeded",
		    "more than %d members", GROUP_MEMBERS_MAX);
	return true;
}

bool group_may_renew(const struct relay_range *range,
    const struct relay_event *event, const struct conversation *c)
{
	int64_t actor = event->actor.person->id;

	return range_has_stake(range, c) ||
	    (actor &&
		(c->owner_id == actor || range_is_member(range, c, actor)));
}

static bool concerns_us(const struct relay_event *event)
{
	for (size_t i = 0; i < event->people_count; i++)
		if (person_is_here(event->people[i].person))
			return true;
	return false;
}

static bool admit_start(
    const struct relay_range *range, struct relay_event *event, struct err *err)
{
	if (!group_may_start(range, event, err))
		return false;
	if (!concerns_us(event)) {
		log_info("relay.unconcerned",
		    F("peer", v_text(range->batch->source.text)),
		    F("entry", v_text(event->message_id)));
		event_accept(event);
		return true;
	}
	for (size_t i = 0; i < event->people_count; i++)
		if (can_be_member(event->people[i].person))
			event->people[i].person->wanted = true;
	return true;
}

/* An event before this one that is about the same group, from there on; NULL:
 * none. */
static const struct relay_event *next_before(
    const struct relay_event *from, const struct relay_event *event)
{
	for (; from < event; from++)
		if (from->state == EVENT_OPEN && from->place == PLACE_ROSTER &&
		    strcmp(from->federated_id, event->federated_id) == 0)
			return from;
	return NULL;
}

/* An event before this one brings the roster. */
static bool begins_before(
    const struct relay_range *range, const struct relay_event *event)
{
	const struct relay_event *e = next_before(range->events, event);

	for (; e; e = next_before(e + 1, event)) {
		const struct group_news *news = e->detail;

		if (news->has_roster)
			return true;
	}
	return false;
}

static bool names(const struct relay_event *event, const struct person *person)
{
	for (size_t i = 0; i < event->people_count; i++)
		if (event->people[i].person == person)
			return true;
	return false;
}

/* In the group, or by then, if what comes before is true. */
static bool may_add_by_then(const struct relay_range *range,
    const struct relay_event *event, const struct conversation *c)
{
	const struct person *actor = event->actor.person;
	const struct relay_event *e = next_before(range->events, event);

	if (c && actor->id &&
	    (c->owner_id == actor->id || range_is_member(range, c, actor->id)))
		return true;
	while (e && !names(e, actor))
		e = next_before(e + 1, event);
	return e != NULL;
}

/* ---- each type ---- */

bool member_add_admit(
    const struct relay_range *range, struct relay_event *event, struct err *err)
{
	const struct conversation *c = range_conversation(range, event);
	const struct group_news *news = event->detail;
	bool known = c && !range_is_abandoned(range, c);

	if (!event_may_act(range, event, err) ||
	    !person_exists(event->people[0].person, err))
		return false;
	if (!known && (news->has_roster || !begins_before(range, event))) {
		if (c && !group_may_renew(range, event, c))
			return err_set(err, ERR_FORBIDDEN,
			    "the peer has no part in this group");
		return admit_start(range, event, err);
	}
	/* A stranger's word makes nobody a row. */
	if (may_add_by_then(range, event, c))
		event->people[0].person->wanted = true;
	return true;
}

/* Who is not here any more has left. */
bool member_remove_admit(
    const struct relay_range *range, struct relay_event *event, struct err *err)
{
	const struct person *actor = event->actor.person;

	if (actor == event->people[0].person && !can_be_member(actor)) {
		event_accept(event);
		return true;
	}
	return event_may_act(range, event, err);
}

bool ownership_transfer_admit(
    const struct relay_range *range, struct relay_event *event, struct err *err)
{
	return event_may_act(range, event, err) &&
	    person_exists(event->people[0].person, err);
}
