#include "common/federation/range.h"

#include "common/federation/outbox_profile.h"

#include "common/federation/range.sql.h"

/* clang-format off */
static const struct shape conversation_shape[] = {
	SHAPE(ID,   struct conversation, id, NULL),
	SHAPE(BOOL, struct conversation, is_group, NULL),
	SHAPE(BOOL, struct conversation, is_gone, NULL),
	SHAPE(ID,   struct conversation, owner_id, NULL),
	SHAPE(TEXT, struct conversation, owner_host, NULL),
	SHAPE(ID,   struct conversation, pair_low, NULL),
	SHAPE(ID,   struct conversation, pair_high, NULL),
	SHAPE(TEXT, struct conversation, federated_id, NULL),
	SHAPE(TIME, struct conversation, known_since, NULL),
	SHAPE_END(struct conversation),
};

static const struct shape member_shape[] = {
	SHAPE(ID,   struct member, dm_channel_id, NULL),
	SHAPE(ID,   struct member, user_id, NULL),
	SHAPE(TEXT, struct member, host, NULL),
	SHAPE(BOOL, struct member, is_stub, NULL),
	SHAPE_END(struct member),
};
/* clang-format on */

/* ---- what the range needs, each conversation once ---- */

struct need {
	struct channel_pair *pairs;
	size_t pair_count;
	const char **groups;
	size_t group_count;
	const char **federated; /* groups or the pair of a person */
	int64_t *persons;
	size_t federated_count;
	int64_t *ids; /* of messages */
	size_t id_count;
};

static void event_pair(
    const struct relay_event *event, int64_t *low, int64_t *high)
{
	int64_t a = event->people[0].person->id;
	int64_t b = event->people[1].person->id;

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
	federated_id_of_pair(
	    event->people[0].home_user_id, event->people[1].home_user_id, id);
	pair->federated_id = id;
	pair->opener = event->actor.person->id;
	need->pair_count++;
}

static void need_event(
    struct arena *arena, struct need *need, const struct relay_event *event)
{
	switch (event->place) {
	case PLACE_FRIENDS:
	case PLACE_NONE:
		return;
	case PLACE_PAIR:
		need_pair(arena, need, event);
		return;
	case PLACE_FEDERATED:
		need->federated[need->federated_count] = event->federated_id;
		need->persons[need->federated_count++] =
		    event->actor.person->id;
		/* fall through */
	case PLACE_GROUP:
	case PLACE_ROSTER:
		need->groups[need->group_count++] = event->federated_id;
		return;
	}
}

static struct need range_need(const struct relay_range *range)
{
	struct arena *arena = tx_arena(range->tx);
	size_t count = range->count;
	struct need need = {
		.pairs = arena_array(arena, count, sizeof(*need.pairs)),
		.groups = arena_array(arena, count, sizeof(char *)),
		.federated = arena_array(arena, count, sizeof(char *)),
		.persons = arena_array(arena, count, sizeof(int64_t)),
		.ids =
		    arena_array(arena, range->message_count, sizeof(int64_t)),
	};

	for (size_t i = 0; i < count; i++)
		if (range->events[i].state == EVENT_OPEN)
			need_event(arena, &need, &range->events[i]);
	for (size_t i = 0; i < range->message_count; i++)
		if (range->messages[i].id)
			need.ids[need.id_count++] =
			    range->messages[i].dm_channel_id;
	return need;
}

/* ---- reading, locking, making ---- */

static void take_conversations(
    struct relay_range *range, const struct rows *rows)
{
	range->conversations = rows->items;
	range->conversation_count = rows->count;
	range->conversation_room = rows->count;
}

static bool find(
    struct relay_range *range, const struct need *need, struct err *err)
{
	struct rows rows;

	if (!sql_many(range->tx, &SQL_conversations_find, conversation_shape,
		&rows, err, v_texts(need->groups, need->group_count),
		v_texts(need->federated, need->federated_count),
		v_ids(need->persons, need->federated_count)))
		return false;
	take_conversations(range, &rows);
	return true;
}

static bool lock(
    struct relay_range *range, const struct need *need, struct err *err)
{
	struct arena *arena = tx_arena(range->tx);
	int64_t *lows = arena_array(arena, need->pair_count, sizeof(*lows));
	int64_t *highs = arena_array(arena, need->pair_count, sizeof(*highs));
	struct rows rows;

	for (size_t i = 0; i < need->pair_count; i++) {
		lows[i] = need->pairs[i].low;
		highs[i] = need->pairs[i].high;
	}
	if (!sql_many(range->tx, &SQL_conversations_lock, conversation_shape,
		&rows, err, v_ids(lows, need->pair_count),
		v_ids(highs, need->pair_count),
		v_texts(need->groups, need->group_count),
		v_ids(need->ids, need->id_count),
		v_texts(need->federated, need->federated_count),
		v_ids(need->persons, need->federated_count)))
		return false;
	take_conversations(range, &rows);
	return true;
}

static const struct conversation *find_pair(
    const struct relay_range *range, int64_t low, int64_t high)
{
	for (size_t i = 0; i < range->conversation_count; i++) {
		const struct conversation *c = &range->conversations[i];

		if (!c->is_group && c->pair_low == low && c->pair_high == high)
			return c;
	}
	return NULL;
}

static bool has_accounts(const struct relay_range *range, int64_t id)
{
	for (size_t i = 0; i < range->people_count; i++) {
		const struct person *p = &range->people[i];

		if (p->id == id)
			return p->is_native && p->replicated_instances &&
			    strcmp(p->replicated_instances, "[]") != 0;
	}
	return false;
}

/* Whoever meets one of ours hears where else to tell. */
static bool tell_accounts(const struct relay_range *range,
    const struct channel_pair *pairs, size_t count, struct err *err)
{
	int64_t *ids = arena_array(tx_arena(range->tx), count, sizeof(*ids));
	size_t n = 0;

	for (size_t i = 0; i < count; i++) {
		const struct conversation *c =
		    find_pair(range, pairs[i].low, pairs[i].high);

		if (c &&
		    (has_accounts(range, pairs[i].low) ||
			has_accounts(range, pairs[i].high)))
			ids[n++] = c->id;
	}
	return outbox_tell_accounts(range->tx, range->batch->node, ids, n, err);
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
		lock(range, need, err) &&
		tell_accounts(range, pairs, count, err));
}

static bool read_members(struct relay_range *range, struct err *err)
{
	int64_t *groups = arena_array(
	    tx_arena(range->tx), range->conversation_count, sizeof(*groups));
	struct rows rows;
	size_t count = 0;

	for (size_t i = 0; i < range->conversation_count; i++)
		if (range->conversations[i].is_group)
			groups[count++] = range->conversations[i].id;
	if (count == 0)
		return true;
	if (!sql_many(range->tx, &SQL_members_of_groups, member_shape, &rows,
		err, v_ids(groups, count)))
		return false;
	range->members = rows.items;
	range->member_count = rows.count;
	range->member_room = rows.count;
	return true;
}

bool range_look_at_groups(struct relay_range *range, struct err *err)
{
	struct need need = { .groups = arena_array(tx_arena(range->tx),
				 range->count, sizeof(char *)) };

	for (size_t i = 0; i < range->count; i++)
		if (range->events[i].state == EVENT_OPEN &&
		    range->events[i].place == PLACE_ROSTER)
			need.groups[need.group_count++] =
			    range->events[i].federated_id;
	return need.group_count == 0 ||
	    (find(range, &need, err) && read_members(range, err));
}

bool range_conversations(
    struct relay_range *range, bool with_lock, struct err *err)
{
	struct need need = range_need(range);

	range->conversation_count = 0;
	range->member_count = 0;
	if (need.pair_count + need.group_count + need.id_count == 0)
		return true;
	if (with_lock
		? !lock(range, &need, err) || !make_missing(range, &need, err)
		: !find(range, &need, err))
		return false;
	return read_members(range, err);
}

/* ---- asking ---- */

const struct conversation *range_conversation_by_id(
    const struct relay_range *range, int64_t id)
{
	for (size_t i = 0; i < range->conversation_count; i++)
		if (range->conversations[i].id == id)
			return &range->conversations[i];
	return NULL;
}

static const struct conversation *find_federated(
    const struct relay_range *range, const struct relay_event *event,
    bool groups_only)
{
	for (size_t i = 0; i < range->conversation_count; i++) {
		const struct conversation *c = &range->conversations[i];

		if (!c->federated_id ||
		    strcmp(c->federated_id, event->federated_id) != 0)
			continue;
		if (c->is_group ||
		    (!groups_only &&
			range_is_member(range, c, event->actor.person->id)))
			return c;
	}
	return NULL;
}

const struct conversation *range_conversation(
    const struct relay_range *range, const struct relay_event *event)
{
	int64_t low, high;

	switch (event->place) {
	case PLACE_PAIR:
		event_pair(event, &low, &high);
		return find_pair(range, low, high);
	case PLACE_GROUP:
	case PLACE_ROSTER:
		return find_federated(range, event, true);
	case PLACE_FEDERATED:
		return find_federated(range, event, false);
	case PLACE_FRIENDS:
	case PLACE_NONE:
		break;
	}
	return NULL;
}

bool range_is_member(const struct relay_range *range,
    const struct conversation *conversation, int64_t person)
{
	if (!conversation->is_group)
		return person &&
		    (person == conversation->pair_low ||
			person == conversation->pair_high);
	for (size_t i = 0; i < range->member_count; i++)
		if (range->members[i].dm_channel_id == conversation->id &&
		    range->members[i].user_id == person)
			return true;
	return false;
}

size_t range_member_count(const struct relay_range *range, int64_t conversation)
{
	size_t count = 0;

	for (size_t i = 0; i < range->member_count; i++)
		count += range->members[i].dm_channel_id == conversation;
	return count;
}

bool range_is_abandoned(
    const struct relay_range *range, const struct conversation *conversation)
{
	for (size_t i = 0; i < range->member_count; i++) {
		const struct member *m = &range->members[i];

		if (m->dm_channel_id == conversation->id &&
		    (!m->host || !m->is_stub))
			return false;
	}
	return true;
}

bool range_has_stake(
    const struct relay_range *range, const struct conversation *conversation)
{
	const char *source = range->batch->source.host;

	if (conversation->owner_host &&
	    strcmp(conversation->owner_host, source) == 0)
		return true;
	for (size_t i = 0; i < range->member_count; i++) {
		const struct member *m = &range->members[i];

		if (m->dm_channel_id == conversation->id && m->host &&
		    strcmp(m->host, source) == 0)
			return true;
	}
	return false;
}

/* ---- telling ---- */

/* Room for one more record in an array of the arena. */
static void *grown(
    struct arena *arena, void *items, size_t count, size_t *room, size_t size)
{
	void *more;

	if (count < *room)
		return items;
	*room = *room ? *room * 2 : 16;
	more = arena_array(arena, *room, size);
	if (count)
		memcpy(more, items, count * size);
	return more;
}

void range_add_conversation(
    struct relay_range *range, const struct conversation *conversation)
{
	range->conversations = grown(tx_arena(range->tx), range->conversations,
	    range->conversation_count, &range->conversation_room,
	    sizeof(*range->conversations));
	range->conversations[range->conversation_count++] = *conversation;
}

void range_set_conversation(
    struct relay_range *range, const struct conversation *conversation)
{
	for (size_t i = 0; i < range->conversation_count; i++)
		if (range->conversations[i].id == conversation->id)
			range->conversations[i] = *conversation;
}

void range_add_member(struct relay_range *range, int64_t conversation,
    const struct person *person)
{
	range->members = grown(tx_arena(range->tx), range->members,
	    range->member_count, &range->member_room, sizeof(*range->members));
	range->members[range->member_count++] = (struct member){
		.dm_channel_id = conversation,
		.user_id = person->id,
		.host = person->is_native ? NULL : person->host,
		.is_stub = person->is_stub,
	};
}

void range_drop_member(
    struct relay_range *range, int64_t conversation, int64_t person)
{
	for (size_t i = 0; i < range->member_count; i++)
		if (range->members[i].dm_channel_id == conversation &&
		    range->members[i].user_id == person)
			range->members[i--] =
			    range->members[--range->member_count];
}
