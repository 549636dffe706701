#include "common/federation/event_message.h"

#include "common/federation/message_channel.sql.h"

struct conversation {
	int64_t id;
	bool is_group;
	int64_t pair_low;
	int64_t pair_high;
	const char *federated_id;
};

/* clang-format off */
static const struct shape conversation_shape[] = {
	SHAPE(ID,   struct conversation, id, NULL),
	SHAPE(BOOL, struct conversation, is_group, NULL),
	SHAPE(ID,   struct conversation, pair_low, NULL),
	SHAPE(ID,   struct conversation, pair_high, NULL),
	SHAPE(TEXT, struct conversation, federated_id, NULL),
	SHAPE_END(struct conversation),
};
/* clang-format on */

struct member {
	int64_t dm_channel_id;
	int64_t user_id;
};

static const struct shape member_shape[] = {
	SHAPE(ID, struct member, dm_channel_id, NULL),
	SHAPE(ID, struct member, user_id, NULL),
	SHAPE_END(struct member),
};

/* What the range needs, each conversation once. */
struct need {
	struct channel_pair *pairs;
	size_t pair_count;
	const char **groups;
	size_t group_count;
	int64_t *ids; /* of known messages */
	size_t id_count;
};

static bool is_open_create(const struct relay_event *event)
{
	return event->state == EVENT_OPEN && event->type->apply == create_apply;
}

static void event_pair(
    const struct relay_event *event, int64_t *low, int64_t *high)
{
	int64_t a = event->participants[0].person->id;
	int64_t b = event->participants[1].person->id;

	*low = a < b ? a : b;
	*high = a < b ? b : a;
}

static void need_pair(
    struct arena *arena, struct need *need, const struct relay_event *event)
{
	struct channel_pair *pair = &need->pairs[need->pair_count];
	char *id;

	event_pair(event, &pair->low, &pair->high);
	for (size_t i = 0; i < need->pair_count; i++)
		if (need->pairs[i].low == pair->low &&
		    need->pairs[i].high == pair->high)
			return;
	id = arena_alloc(arena, FEDERATED_ID_SIZE);
	federated_id_of_pair(event->participants[0].home_user_id,
	    event->participants[1].home_user_id, id);
	pair->federated_id = id;
	pair->opener = event->actor.person->id;
	need->pair_count++;
}

static struct need range_need(const struct relay_range *range)
{
	struct arena *arena = tx_arena(range->tx);
	struct need need = {
		.pairs = arena_array(arena, range->count, sizeof(*need.pairs)),
		.groups =
		    arena_array(arena, range->count, sizeof(*need.groups)),
		.ids =
		    arena_array(arena, range->known_count, sizeof(*need.ids)),
	};

	for (size_t i = 0; i < range->count; i++) {
		const struct relay_event *event = &range->events[i];

		if (!is_open_create(event))
			continue;
		if (event->federated_id)
			need.groups[need.group_count++] = event->federated_id;
		else
			need_pair(arena, &need, event);
	}
	for (size_t i = 0; i < range->known_count; i++)
		if (range->known[i].id)
			need.ids[need.id_count++] =
			    range->known[i].dm_channel_id;
	return need;
}

static bool lock(
    struct relay_range *range, const struct need *need, struct err *err)
{
	struct arena *arena = tx_arena(range->tx);
	int64_t *lows = arena_array(arena, need->pair_count, sizeof(*lows));
	int64_t *highs = arena_array(arena, need->pair_count, sizeof(*highs));

	for (size_t i = 0; i < need->pair_count; i++) {
		lows[i] = need->pairs[i].low;
		highs[i] = need->pairs[i].high;
	}
	return sql_many(range->tx, &SQL_conversations_lock, conversation_shape,
	    &range->conversations, err, v_ids(lows, need->pair_count),
	    v_ids(highs, need->pair_count),
	    v_texts(need->groups, need->group_count),
	    v_ids(need->ids, need->id_count));
}

static const struct conversation *find_pair(
    const struct relay_range *range, int64_t low, int64_t high)
{
	const struct conversation *all = range->conversations.items;

	for (size_t i = 0; i < range->conversations.count; i++)
		if (!all[i].is_group && all[i].pair_low == low &&
		    all[i].pair_high == high)
			return &all[i];
	return NULL;
}

static const struct conversation *find_group(
    const struct relay_range *range, const char *federated_id)
{
	const struct conversation *all = range->conversations.items;

	for (size_t i = 0; i < range->conversations.count; i++)
		if (all[i].is_group && all[i].federated_id &&
		    strcmp(all[i].federated_id, federated_id) == 0)
			return &all[i];
	return NULL;
}

/* Pairs that meet for the first time; somebody else may be faster. */
static bool make_missing(
    struct relay_range *range, const struct need *need, struct err *err)
{
	struct channel_pair *pairs =
	    arena_array(tx_arena(range->tx), need->pair_count, sizeof(*pairs));
	size_t count = 0;

	for (size_t i = 0; i < need->pair_count; i++)
		if (!find_pair(range, need->pairs[i].low, need->pairs[i].high))
			pairs[count++] = need->pairs[i];
	return count == 0 ||
	    (channels_make_pairs(range->tx, pairs, count, err) &&
		lock(range, need, err));
}

/* Who writes to a group must be in it. */
static bool members_read(
    struct relay_range *range, struct rows *members, struct err *err)
{
	struct arena *arena = tx_arena(range->tx);
	int64_t *channels = arena_array(arena, range->count, sizeof(int64_t));
	int64_t *people = arena_array(arena, range->count, sizeof(int64_t));
	size_t count = 0;

	*members = (struct rows){ 0 };
	for (size_t i = 0; i < range->count; i++) {
		const struct relay_event *event = &range->events[i];

		if (!is_open_create(event) || !event->federated_id ||
		    !event->channel)
			continue;
		channels[count] = event->channel;
		people[count++] = event->actor.person->id;
	}
	return count == 0 ||
	    sql_many(range->tx, &SQL_members_among, member_shape, members, err,
		v_ids(channels, count), v_ids(people, count));
}

static bool is_member(const struct rows *members, int64_t channel, int64_t user)
{
	const struct member *all = members->items;

	for (size_t i = 0; i < members->count; i++)
		if (all[i].dm_channel_id == channel && all[i].user_id == user)
			return true;
	return false;
}

static void assign(struct relay_range *range, struct relay_event *event)
{
	const struct conversation *found;
	struct err err = { 0 };
	int64_t low;
	int64_t high;

	if (event->federated_id) {
		found = find_group(range, event->federated_id);
	} else {
		event_pair(event, &low, &high);
		found = find_pair(range, low, high);
	}
	if (found) {
		event->channel = found->id;
		return;
	}
	err_refuse(&err, ERR_ABSENT, "channel_not_found", "no such channel");
	event_refuse(range->batch, event, &err);
}

static void members_check(struct relay_range *range, const struct rows *members)
{
	struct err err = { 0 };

	for (size_t i = 0; i < range->count; i++) {
		struct relay_event *event = &range->events[i];

		if (!is_open_create(event) || !event->federated_id ||
		    is_member(members, event->channel, event->actor.person->id))
			continue;
		err_refuse(&err, ERR_FORBIDDEN, "unauthorized_source",
		    "the author is not in the group");
		event_refuse(range->batch, event, &err);
	}
}

bool conversations_lock(struct relay_range *range, struct err *err)
{
	struct need need = range_need(range);
	struct rows members;

	if (need.pair_count + need.group_count + need.id_count == 0)
		return true;
	if (!lock(range, &need, err) || !make_missing(range, &need, err))
		return false;
	for (size_t i = 0; i < range->count; i++)
		if (is_open_create(&range->events[i]))
			assign(range, &range->events[i]);
	if (!members_read(range, &members, err))
		return false;
	members_check(range, &members);
	return true;
}
