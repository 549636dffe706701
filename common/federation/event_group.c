#include "common/federation/event_group.h"

#include "common/base/clock.h"
#include "common/federation/heard.h"
#include "common/federation/outbox_group.h"
#include "common/federation/outbox_profile.h"

#include "common/federation/event_group.sql.h"

static const struct group_news *news_of(const struct relay_event *event)
{
	return event->detail;
}

static const struct person *person_of(const struct relay_event *event)
{
	return event->people[0].person;
}

static void deny(const struct relay_range *run, struct relay_event *event,
    const char *reason, const char *why)
{
	event_deny(run->batch, event, ERR_FORBIDDEN, reason, why);
}

static void deny_absent(
    const struct relay_range *run, struct relay_event *event)
{
	event_deny(run->batch, event, ERR_ABSENT, "channel_not_found",
	    "no such group");
}

/* Accepted about this conversation, whether it changes anything or not. */
static void accept(
    struct relay_event *event, const struct conversation *conversation)
{
	event->channel = conversation->id;
	event_accept(event);
}

static struct membership membership_of(const struct relay_event *event)
{
	return (struct membership){
		.channel = event->channel,
		.person = person_of(event)->id,
		.actor = event->actor.person->id,
		.reason = news_of(event)->reason,
		.at = news_of(event)->at,
	};
}

/* What came homeward goes on once, and never back. */
static struct outbox_group onward(
    const struct relay_range *run, int64_t channel)
{
	return (struct outbox_group){
		.node = run->batch->node,
		.channel = channel,
		.except_host = run->batch->source.host,
	};
}

/* ---- groups that begin, or begin again ---- */

struct beginning {
	struct relay_event *event;
	struct group_start start;
};

struct beginnings {
	struct beginning *items;
	size_t count;
};

static bool is_begun(
    const struct beginnings *all, const struct relay_event *event)
{
	for (size_t i = 0; i < all->count; i++)
		if (strcmp(all->items[i].start.federated_id,
			event->federated_id) == 0)
			return true;
	return false;
}

/* False: somebody of the roster has no row, since the group was there when it
 * was looked at. The sender tries again. */
static bool start_fill(struct relay_range *run, const struct relay_event *event,
    struct group_start *start)
{
	const struct person *people[GROUP_MEMBERS_MAX];
	size_t count = group_people(event, people, COUNT(people));
	int64_t *ids = arena_array(tx_arena(run->tx), count, sizeof(*ids));

	*start = (struct group_start){
		.federated_id = event->federated_id,
		.owner = event->people[1].person->id,
		.actor = event->actor.person->id,
		.people = ids,
	};
	for (size_t i = 0; i < count; i++) {
		if (!people[i]->id)
			return false;
		ids[start->count++] = people[i]->id;
	}
	return true;
}

/* Settles what may not begin; true: start is to be made. */
static bool start_stage(struct relay_range *run, struct relay_event *event,
    const struct conversation *c, struct group_start *start)
{
	struct err err = { 0 };

	if (!group_may_start(run, event, &err)) {
		event_refuse(run->batch, event, &err);
		return false;
	}
	if (!start_fill(run, event, start)) {
		deny_absent(run, event);
		return false;
	}
	if (!c)
		return true;
	start->id = c->id;
	if (group_may_renew(run, event, c))
		return true;
	deny(run, event, NULL, "the peer has no part in this group");
	return false;
}

/* The events of a run whose groups are to be made, or made anew. */
static struct beginnings stage_starts(struct relay_range *run, bool known)
{
	struct beginnings all = {
		.items = arena_array(
		    tx_arena(run->tx), run->count, sizeof(*all.items)),
	};

	for (size_t i = 0; i < run->count; i++) {
		struct relay_event *event = &run->events[i];
		const struct conversation *c;
		struct beginning *next = &all.items[all.count];

		if (event->state != EVENT_OPEN)
			continue;
		c = range_conversation(run, event);
		if ((c != NULL) != known || is_begun(&all, event) ||
		    (c && !range_is_abandoned(run, c)) ||
		    !start_stage(run, event, c, &next->start))
			continue;
		next->event = event;
		all.count++;
	}
	return all;
}

static struct group_start *starts_of(
    struct arena *arena, const struct beginnings *all)
{
	struct group_start *starts =
	    arena_array(arena, all->count, sizeof(*starts));

	for (size_t i = 0; i < all->count; i++)
		starts[i] = all->items[i].start;
	return starts;
}

static void range_take_start(struct relay_range *run,
    const struct relay_event *event, const struct group_start *start)
{
	const struct mention *owner = &event->people[1];
	const struct person *people[GROUP_MEMBERS_MAX];
	size_t count = group_people(event, people, COUNT(people));
	const struct conversation c = {
		.id = start->id,
		.is_group = true,
		.owner_id = start->owner,
		.owner_host = owner->person->is_native ? NULL : owner->host,
		.federated_id = event->federated_id,
		.known_since = clock_wall_ms(),
	};

	if (range_conversation_by_id(run, c.id))
		range_set_conversation(run, &c);
	else
		range_add_conversation(run, &c);
	for (size_t i = 0; i < count; i++)
		if (!range_is_member(run, &c, people[i]->id))
			range_add_member(run, c.id, people[i]);
}

static bool begin_groups(struct relay_range *run, struct err *err)
{
	struct beginnings all = stage_starts(run, false);
	struct group_start *starts = starts_of(tx_arena(run->tx), &all);

	if (!groups_start(run->tx, starts, all.count, err))
		return false;
	for (size_t i = 0; i < all.count; i++) {
		struct relay_event *event = all.items[i].event;
		struct outbox_group out = onward(run, starts[i].id);
		int64_t person = person_of(event)->id;

		range_take_start(run, event, &starts[i]);
		accept(event, range_conversation(run, event));
		if (event->is_homeward &&
		    !outbox_add_joins(
			run->tx, &out, starts[i].actor, &person, 1, err))
			return false;
	}
	return true;
}

static void range_drop_all(struct relay_range *run, int64_t channel)
{
	for (size_t i = run->member_count; i > 0; i--)
		if (run->members[i - 1].dm_channel_id == channel)
			range_drop_member(
			    run, channel, run->members[i - 1].user_id);
}

/*
 * A roster that renews a group tells who of the others is in it. Who of ours is
 * we know better: nobody, or it would not be renewed. The roster may not have
 * heard yet that one has left. Each joins by an event of his own.
 */
static bool joins_alone(const struct person *person,
    const struct relay_event *event, const struct group_start *start)
{
	return person->id != start->owner &&
	    (person->is_native || person == person_of(event));
}

static void leave_out(struct relay_range *run, const struct relay_event *event,
    struct group_start *start)
{
	const struct person *people[GROUP_MEMBERS_MAX];
	size_t count = group_people(event, people, COUNT(people));
	int64_t *ids = arena_array(tx_arena(run->tx), count, sizeof(*ids));

	start->count = 0;
	for (size_t i = 0; i < count; i++)
		if (!joins_alone(people[i], event, start))
			ids[start->count++] = people[i]->id;
	start->people = ids;
}

static void range_renew(struct relay_range *run,
    const struct relay_event *event, const struct group_start *start)
{
	const struct person *people[GROUP_MEMBERS_MAX];
	size_t count = group_people(event, people, COUNT(people));

	range_drop_all(run, start->id);
	range_take_start(run, event, start);
	for (size_t i = 0; i < count; i++)
		if (joins_alone(people[i], event, start))
			range_drop_member(run, start->id, people[i]->id);
}

static bool renew_groups(struct relay_range *run, struct err *err)
{
	struct beginnings all = stage_starts(run, true);
	struct group_start *starts = starts_of(tx_arena(run->tx), &all);

	for (size_t i = 0; i < all.count; i++)
		leave_out(run, all.items[i].event, &starts[i]);
	if (!groups_renew(run->tx, starts, all.count, err))
		return false;
	for (size_t i = 0; i < all.count; i++)
		range_renew(run, all.items[i].event, &starts[i]);
	return true;
}

/* ---- member_add ---- */

struct departure {
	int64_t dm_channel_id;
	int64_t user_id;
	int64_t left_at;
};

static const struct shape departure_shape[] = {
	SHAPE(ID, struct departure, dm_channel_id, NULL),
	SHAPE(ID, struct departure, user_id, NULL),
	SHAPE(TIME, struct departure, left_at, NULL),
	SHAPE_END(struct departure),
};

static bool departures_read(
    struct relay_range *run, struct rows *departures, struct err *err)
{
	struct arena *arena = tx_arena(run->tx);
	int64_t *channels = arena_array(arena, run->count, sizeof(int64_t));
	int64_t *people = arena_array(arena, run->count, sizeof(int64_t));
	size_t count = 0;

	for (size_t i = 0; i < run->count; i++) {
		const struct relay_event *event = &run->events[i];
		const struct conversation *c;

		if (event->state != EVENT_OPEN)
			continue;
		c = range_conversation(run, event);
		if (!c || !person_of(event)->id)
			continue;
		channels[count] = c->id;
		people[count++] = person_of(event)->id;
	}
	*departures = (struct rows){ 0 };
	return count == 0 ||
	    sql_many(run->tx, &SQL_departures_find, departure_shape, departures,
		err, v_ids(channels, count), v_ids(people, count));
}

/* He has left since this was said. */
static bool has_left(const struct rows *departures,
    const struct relay_event *event, int64_t channel)
{
	const struct departure *all = departures->items;

	for (size_t i = 0; i < departures->count; i++)
		if (all[i].dm_channel_id == channel &&
		    all[i].user_id == person_of(event)->id)
			return news_of(event)->at <= all[i].left_at;
	return false;
}

/* Settles the event; true: somebody joins. */
static bool join_stage(struct relay_range *run, struct relay_event *event,
    const struct rows *departures)
{
	const struct conversation *c = range_conversation(run, event);
	int64_t actor = event->actor.person->id;
	int64_t person = person_of(event)->id;

	if (!c) {
		deny_absent(run, event);
		return false;
	}
	if (!range_is_member(run, c, actor) && c->owner_id != actor) {
		deny(run, event, NULL, "who adds is not in the group");
		return false;
	}
	if (!person) {
		deny_absent(run, event);
		return false;
	}
	if (range_is_member(run, c, person) ||
	    has_left(departures, event, c->id)) {
		accept(event, c);
		return false;
	}
	if (range_member_count(run, c->id) >= GROUP_MEMBERS_MAX) {
		deny(run, event, "max_members_exceeded", "the group is full");
		return false;
	}
	accept(event, c);
	range_add_member(run, c->id, person_of(event));
	return true;
}

static bool joins_send_on(struct relay_range *run,
    struct relay_event *const *joined, size_t count, struct err *err)
{
	for (size_t i = 0; i < count; i++) {
		const struct relay_event *event = joined[i];
		struct outbox_group out = onward(run, event->channel);
		int64_t person = person_of(event)->id;

		if (event->is_homeward &&
		    !outbox_add_joins(run->tx, &out, event->actor.person->id,
			&person, 1, err))
			return false;
	}
	return true;
}

static bool join_groups(struct relay_range *run, struct err *err)
{
	struct arena *arena = tx_arena(run->tx);
	struct relay_event **joined =
	    arena_array(arena, run->count, sizeof(struct relay_event *));
	struct membership *joins =
	    arena_array(arena, run->count, sizeof(*joins));
	struct rows departures;
	size_t n = 0;

	if (!departures_read(run, &departures, err))
		return false;
	for (size_t i = 0; i < run->count; i++) {
		struct relay_event *event = &run->events[i];

		if (event->state != EVENT_OPEN ||
		    !join_stage(run, event, &departures))
			continue;
		joined[n] = event;
		joins[n++] = membership_of(event);
	}
	return members_join(run->tx, joins, n, err) &&
	    joins_send_on(run, joined, n, err);
}

/* Who is new in a group hears where those of ours have accounts; what came
 * homeward has been sent on with that. */
static bool accounts_tell(struct relay_range *run, struct err *err)
{
	int64_t *channels =
	    arena_array(tx_arena(run->tx), run->count, sizeof(*channels));
	size_t count = 0;

	for (size_t i = 0; i < run->count; i++)
		if (run->events[i].state == EVENT_ACCEPTED &&
		    run->events[i].channel && !run->events[i].is_homeward)
			channels[count++] = run->events[i].channel;
	return outbox_tell_accounts(
	    run->tx, run->batch->node, channels, count, err);
}

bool member_add_apply(struct relay_range *run, struct err *err)
{
	return heard_skip(run, err) && begin_groups(run, err) &&
	    renew_groups(run, err) && join_groups(run, err) &&
	    accounts_tell(run, err) && heard_keep(run, err);
}

/* ---- member_remove ---- */

struct removals {
	struct relay_event **events;
	struct membership *leaves;
	size_t count;
	struct membership *absent; /* were no members */
	size_t absent_count;
};

static bool may_remove(
    const struct conversation *c, const struct relay_event *event)
{
	const struct person *actor = event->actor.person;

	return actor == person_of(event) ||
	    (actor->id && actor->id == c->owner_id);
}

static void removal_stage(struct relay_range *run, struct relay_event *event,
    struct removals *removals)
{
	const struct conversation *c = range_conversation(run, event);
	int64_t person = person_of(event)->id;
	struct conversation gone;

	if (!c) {
		event_accept(event);
		return;
	}
	if (!may_remove(c, event)) {
		deny(run, event, NULL, "only the owner removes others");
		return;
	}
	accept(event, c);
	if (!person)
		return;
	if (!range_is_member(run, c, person)) {
		removals->absent[removals->absent_count++] =
		    membership_of(event);
		return;
	}
	removals->events[removals->count] = event;
	removals->leaves[removals->count++] = membership_of(event);
	range_drop_member(run, c->id, person);
	gone = *c;
	gone.is_gone = range_member_count(run, c->id) == 0;
	range_set_conversation(run, &gone);
}

static bool removals_send_on(
    struct relay_range *run, const struct removals *removals, struct err *err)
{
	for (size_t i = 0; i < removals->count; i++) {
		const struct relay_event *event = removals->events[i];
		struct outbox_group out = onward(run, event->channel);

		if (event->is_homeward &&
		    !outbox_add_leave(run->tx, &out, &removals->leaves[i], err))
			return false;
	}
	return true;
}

static bool absent_note(
    struct relay_range *run, const struct removals *removals, struct err *err)
{
	struct arena *arena = tx_arena(run->tx);
	size_t count = removals->absent_count;
	int64_t *channels = arena_array(arena, count, sizeof(*channels));
	int64_t *people = arena_array(arena, count, sizeof(*people));
	int64_t *times = arena_array(arena, count, sizeof(*times));

	for (size_t i = 0; i < count; i++) {
		channels[i] = removals->absent[i].channel;
		people[i] = removals->absent[i].person;
		times[i] = removals->absent[i].at;
	}
	return count == 0 ||
	    sql_none(run->tx, &SQL_departures_note, err, v_ids(channels, count),
		v_ids(people, count), v_times(times, count));
}

bool member_remove_apply(struct relay_range *run, struct err *err)
{
	struct arena *arena = tx_arena(run->tx);
	struct removals removals = {
		.events = arena_array(arena, run->count, sizeof(void *)),
		.leaves =
		    arena_array(arena, run->count, sizeof(struct membership)),
		.absent =
		    arena_array(arena, run->count, sizeof(struct membership)),
	};

	if (!heard_skip(run, err))
		return false;
	for (size_t i = 0; i < run->count; i++)
		if (run->events[i].state == EVENT_OPEN)
			removal_stage(run, &run->events[i], &removals);
	/* Others are told while those who leave are still among them. */
	return removals_send_on(run, &removals, err) &&
	    members_leave(run->tx, removals.leaves, removals.count, err) &&
	    absent_note(run, &removals, err) && heard_keep(run, err);
}

/* ---- ownership_transfer ---- */

/*
 * The roster with which we came to know the group had it already. Otherwise an
 * owner that is the new one already has it from an earlier change, and gave it
 * away meanwhile: that change is still on its way from another node.
 */
static bool is_in_roster(
    const struct conversation *c, const struct relay_event *event)
{
	return c->owner_id == person_of(event)->id &&
	    news_of(event)->at <= c->known_since;
}

static bool owner_stage(struct relay_range *run, struct relay_event *event)
{
	const struct conversation *c = range_conversation(run, event);
	const struct person *owner = person_of(event);
	struct conversation changed;

	if (!c || c->is_gone) {
		event_accept(event);
		return false;
	}
	if (is_in_roster(c, event)) {
		accept(event, c);
		return false;
	}
	if (c->owner_id != event->actor.person->id) {
		deny(run, event, NULL, "only the owner passes the group on");
		return false;
	}
	if (!owner->id || !range_is_member(run, c, owner->id)) {
		deny(run, event, NULL, "the new owner is not in the group");
		return false;
	}
	accept(event, c);
	changed = *c;
	changed.owner_id = owner->id;
	changed.owner_host = owner->is_native ? NULL : owner->host;
	range_set_conversation(run, &changed);
	return true;
}

bool ownership_transfer_apply(struct relay_range *run, struct err *err)
{
	struct arena *arena = tx_arena(run->tx);
	struct ownership *changes =
	    arena_array(arena, run->count, sizeof(*changes));
	size_t n = 0;

	if (!heard_skip(run, err))
		return false;
	for (size_t i = 0; i < run->count; i++) {
		struct relay_event *event = &run->events[i];
		struct outbox_group out;

		if (event->state != EVENT_OPEN || !owner_stage(run, event))
			continue;
		changes[n] = (struct ownership){ event->channel,
			person_of(event)->id, event->actor.person->id };
		out = onward(run, event->channel);
		if (event->is_homeward &&
		    !outbox_add_owner(run->tx, &out, &changes[n], err))
			return false;
		n++;
	}
	return owners_change(run->tx, changes, n, err) && heard_keep(run, err);
}
