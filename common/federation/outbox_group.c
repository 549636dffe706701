#include "common/federation/outbox_group.h"

#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/federation/outbox_people.h"
#include "common/federation/outbox_profile.h"

#include "common/federation/outbox_group.sql.h"

struct head {
	int64_t owner_id;
	const char *federated_id;
};

static const struct shape head_shape[] = {
	SHAPE(ID, struct head, owner_id, NULL),
	SHAPE(TEXT, struct head, federated_id, NULL),
	SHAPE_END(struct head),
};

/* All that the events of one change have in common. */
struct telling {
	struct tx *tx;
	const struct outbox_group *group;
	struct head head;
	struct rows members;
	struct rows people; /* whom the events name */
	const struct outbox_person *actor;
	struct targets targets;
};

static const struct outbox_person *named(
    const struct telling *t, int64_t person)
{
	const struct outbox_person *who =
	    outbox_person_find(&t->people, person);

	assert(who);
	return who;
}

/* person may be 0. A local group's federated id is NULL: tell nobody. */
static bool telling_open(
    struct telling *t, int64_t actor, int64_t person, struct err *err)
{
	int64_t names[] = { actor, person, 0 };

	targets_init(&t->targets, tx_arena(t->tx), t->group->node,
	    t->group->except_host);
	if (!sql_one(t->tx, &SQL_outbox_group, head_shape, &t->head, err,
		v_id(t->group->channel)))
		return false;
	if (!t->head.federated_id)
		return true;
	names[2] = t->head.owner_id;
	if (!outbox_members(t->tx, t->group->channel, &t->members, err) ||
	    !outbox_people(t->tx, names, COUNT(names), &t->people, err))
		return false;
	t->actor = named(t, actor);
	targets_add_for(&t->targets, t->actor, &t->members);
	return true;
}

static bool add(struct telling *t, const char *type, int64_t person,
    const char *payload, struct err *err)
{
	struct arena *arena = tx_arena(t->tx);
	const struct outbox_event event = {
		.event_type = type,
		.context_type = "dm",
		.context_id = id_text(arena, t->group->channel),
		.entity_id = arena_printf(arena, "%s:%" PRId64 ":%" PRId64,
		    type, person, clock_wall_ms()),
		.payload = payload,
		.homeward = t->actor->home_instance != NULL,
	};

	return outbox_add(t->tx, &event, &t->targets, err);
}

static void put_place(struct json_out *out, const struct telling *t)
{
	json_put_id(out, "dmChannelId", t->group->channel);
	json_put_text(out, "federatedId", t->head.federated_id);
}

static void put_who(struct json_out *out, const char *name,
    const struct telling *t, const struct outbox_person *who)
{
	put_identity(out, name, tx_arena(t->tx), t->group->node, who);
}

/* ---- joining ---- */

static void put_roster(struct json_out *out, const struct telling *t)
{
	const struct outbox_person *members = t->members.items;

	json_open(out, "group");
	put_who(out, "owner", t, named(t, t->head.owner_id));
	json_open_list(out, "members");
	for (size_t i = 0; i < t->members.count; i++)
		put_participant(
		    out, NULL, tx_arena(t->tx), t->group->node, &members[i]);
	json_close_list(out);
	json_close(out);
}

static const char *join_payload(
    const struct telling *t, const struct outbox_person *who)
{
	struct json_out out;
	struct buf text;

	payload_open(&out, &text, tx_arena(t->tx));
	put_place(&out, t);
	json_open(&out, "membership");
	put_who(&out, "user", t, who);
	put_who(&out, "addedBy", t, t->actor);
	json_close(&out);
	put_roster(&out, t);
	return payload_close(&out);
}

static bool tell_joins(
    struct telling *t, const int64_t *people, size_t count, struct err *err)
{
	for (size_t i = 0; i < count; i++) {
		const struct outbox_person *who =
		    outbox_person_find(&t->members, people[i]);

		if (who &&
		    !add(t, "member_add", who->id, join_payload(t, who), err))
			return false;
	}
	return true;
}

/* Each home has to know where else to tell. */
static bool tell_accounts(struct telling *t, struct err *err)
{
	const struct outbox_person *members = t->members.items;
	bool any = false;

	for (size_t i = 0; i < t->members.count; i++)
		any |= !members[i].home_instance &&
		    strcmp(members[i].replicated_instances, "[]") != 0;
	return !any ||
	    outbox_tell_accounts(
		t->tx, t->group->node, &t->group->channel, 1, err);
}

bool outbox_add_joins(struct tx *tx, const struct outbox_group *group,
    int64_t actor, const int64_t *people, size_t count, struct err *err)
{
	struct telling t = { .tx = tx, .group = group };

	return telling_open(&t, actor, 0, err) &&
	    (!t.head.federated_id ||
		(tell_joins(&t, people, count, err) && tell_accounts(&t, err)));
}

bool outbox_add_start(struct tx *tx, const struct outbox_group *group,
    int64_t owner, struct err *err)
{
	struct telling t = { .tx = tx, .group = group };
	const struct outbox_person *members;
	int64_t *told;
	size_t count = 0;
	int64_t first = 0;

	if (!telling_open(&t, owner, 0, err))
		return false;
	if (!t.head.federated_id)
		return true;
	members = t.members.items;
	told = arena_array(tx_arena(tx), t.members.count + 1, sizeof(*told));
	for (size_t i = 0; i < t.members.count; i++) {
		if (members[i].id == owner)
			continue;
		if (!first)
			first = members[i].id;
		if (members[i].home_instance)
			told[count++] = members[i].id;
	}
	/* Only the owner is: one event must bring the group there. */
	if (count == 0)
		told[count++] = first;
	return tell_joins(&t, told, count, err) && tell_accounts(&t, err);
}

struct arrival {
	int64_t channel;
	int64_t actor;
};

static const struct shape arrival_shape[] = {
	SHAPE(ID, struct arrival, channel, NULL),
	SHAPE(ID, struct arrival, actor, NULL),
	SHAPE_END(struct arrival),
};

static bool tell_arrival(struct tx *tx, const struct outbox_group *group,
    const struct membership *arrival, const struct targets *fresh,
    struct err *err)
{
	struct telling t = { .tx = tx, .group = group };

	if (!group_federate(tx, group->channel, err) ||
	    !telling_open(&t, arrival->actor, 0, err))
		return false;
	t.targets = *fresh;
	return tell_joins(&t, &arrival->person, 1, err);
}

bool outbox_add_arrival(struct tx *tx, const struct node *node, int64_t person,
    const struct targets *fresh, struct err *err)
{
	struct rows rows;
	const struct arrival *all;

	if (!sql_many(tx, &SQL_outbox_arrivals, arrival_shape, &rows, err,
		v_id(person)))
		return false;
	all = rows.items;
	for (size_t i = 0; i < rows.count; i++) {
		const struct outbox_group group = {
			.node = node,
			.channel = all[i].channel,
		};
		const struct membership arrival = {
			.person = person,
			.actor = all[i].actor,
		};

		if (!tell_arrival(tx, &group, &arrival, fresh, err))
			return false;
	}
	return true;
}

/* ---- leaving, passing on ---- */

bool outbox_add_leave(struct tx *tx, const struct outbox_group *group,
    const struct membership *leave, struct err *err)
{
	struct telling t = { .tx = tx, .group = group };
	struct json_out out;
	struct buf text;

	if (!telling_open(&t, leave->actor, leave->person, err))
		return false;
	if (!t.head.federated_id)
		return true;
	payload_open(&out, &text, tx_arena(tx));
	put_place(&out, &t);
	json_open(&out, "membership");
	put_who(&out, "user", &t, named(&t, leave->person));
	put_who(&out, "removedBy", &t, t.actor);
	json_put_text(&out, "reason", leave->reason);
	json_close(&out);
	return add(
	    &t, "member_remove", leave->person, payload_close(&out), err);
}

bool outbox_add_owner(struct tx *tx, const struct outbox_group *group,
    const struct ownership *change, struct err *err)
{
	struct telling t = { .tx = tx, .group = group };
	struct json_out out;
	struct buf text;

	if (!telling_open(&t, change->actor, change->owner, err))
		return false;
	if (!t.head.federated_id)
		return true;
	payload_open(&out, &text, tx_arena(tx));
	put_place(&out, &t);
	json_open(&out, "ownership");
	put_who(&out, "newOwner", &t, named(&t, change->owner));
	put_who(&out, "previousOwner", &t, t.actor);
	json_close(&out);
	return add(
	    &t, "ownership_transfer", change->owner, payload_close(&out), err);
}
