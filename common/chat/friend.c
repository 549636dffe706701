#include "common/chat/friend.h"

#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/chat/event.h"

#include "common/chat/friend.sql.h"

struct standing {
	int64_t place;
	struct friend_state state;
};

struct person_row {
	int64_t id;
	bool is_deleted;
};

/* clang-format off */
#define STATE(kind, member) \
	{ \
		SHAPE_##kind, \
		    offsetof(struct standing, state) + \
		    offsetof(struct friend_state, member), \
		    #member, NULL, false, NULL \
	}

static const struct shape standing_shape[] = {
	SHAPE(INT, struct standing, place, NULL),
	STATE(ID, request),
	STATE(ID, asker),
	STATE(TIME, asked_at),
	STATE(TIME, since),
	STATE(TIME, low_over_at),
	STATE(TIME, high_over_at),
	STATE(TIME, ended_at),
	SHAPE_END(struct standing),
};

static const struct shape person_row_shape[] = {
	SHAPE(ID,   struct person_row, id, NULL),
	SHAPE(BOOL, struct person_row, is_deleted, NULL),
	SHAPE_END(struct person_row),
};

const struct shape friend_request_shape[] = {
	SHAPE(ID,   struct friend_request, id, "id"),
	SHAPE(ID,   struct friend_request, from_id, "fromId"),
	SHAPE(ID,   struct friend_request, to_id, "toId"),
	SHAPE(TEXT, struct friend_request, status, "status"),
	SHAPE(TIME, struct friend_request, created_at, "createdAt"),
	SHAPE_END(struct friend_request),
};
/* clang-format on */

struct friend_pair friend_pair_of(int64_t a, int64_t b)
{
	return (struct friend_pair){
		.low = a < b ? a : b,
		.high = a < b ? b : a,
	};
}

int64_t friend_other(const struct friend_pair *pair, int64_t person)
{
	return person == pair->low ? pair->high : pair->low;
}

static void raise_to(int64_t *mark, int64_t at)
{
	if (*mark < at)
		*mark = at;
}

int64_t friend_time(const struct friend_pair *pair)
{
	const struct friend_state *is = &pair->is;
	int64_t now = clock_wall_ms();

	raise_to(&now, is->low_over_at + 1);
	raise_to(&now, is->high_over_at + 1);
	raise_to(&now, is->ended_at + 1);
	raise_to(&now, is->since + 1);
	return now;
}

/* ---- deciding ---- */

static int64_t *over_at(struct friend_pair *pair, int64_t asker)
{
	return asker == pair->low ? &pair->is.low_over_at
				  : &pair->is.high_over_at;
}

/* The pending request ends. */
static void settle(struct friend_pair *pair, const char *answer)
{
	raise_to(over_at(pair, pair->is.asker), pair->is.asked_at);
	pair->answer = answer;
	pair->is.request = 0;
	pair->is.asker = 0;
	pair->is.asked_at = 0;
}

static void begin(struct friend_pair *pair, int64_t asker, int64_t at)
{
	pair->is.since = at > pair->is.ended_at ? at : pair->is.ended_at + 1;
	pair->accepter = friend_other(pair, asker);
}

/* Is a request of that time the pending one, or one that it replaced? */
static bool is_pending(
    const struct friend_pair *pair, int64_t asker, int64_t asked_at)
{
	return pair->is.asker == asker && pair->is.asked_at <= asked_at;
}

enum friend_outcome friend_ask(
    struct friend_pair *pair, int64_t asker, int64_t at)
{
	struct friend_state *is = &pair->is;

	if (pair->is_dead || is->since || at <= *over_at(pair, asker))
		return FRIEND_SAME;
	if (is->asker == asker) {
		raise_to(&is->asked_at, at);
		return FRIEND_SAME;
	}
	if (is->asker) {
		int64_t first = is->asker;

		settle(pair, "accepted");
		raise_to(over_at(pair, asker), at);
		begin(pair, first, friend_time(pair));
		return FRIEND_CROSSED;
	}
	is->asker = asker;
	is->asked_at = at;
	return FRIEND_CHANGED;
}

enum friend_outcome friend_accept(
    struct friend_pair *pair, int64_t asker, int64_t asked_at, int64_t at)
{
	if (pair->is_dead || !is_pending(pair, asker, asked_at))
		return FRIEND_SAME;
	settle(pair, "accepted");
	begin(pair, asker, at);
	return FRIEND_CHANGED;
}

enum friend_outcome friend_decline(
    struct friend_pair *pair, int64_t asker, int64_t asked_at)
{
	if (pair->is_dead || !is_pending(pair, asker, asked_at))
		return FRIEND_SAME;
	settle(pair, "declined");
	return FRIEND_CHANGED;
}

/* Also remembered before the request has come. */
enum friend_outcome friend_withdraw(
    struct friend_pair *pair, int64_t asker, int64_t asked_at)
{
	bool pending = is_pending(pair, asker, asked_at);

	if (pair->is_dead)
		return FRIEND_SAME;
	if (pending)
		settle(pair, NULL);
	raise_to(over_at(pair, asker), asked_at);
	return pending ? FRIEND_CHANGED : FRIEND_SAME;
}

enum friend_outcome friend_begin(
    struct friend_pair *pair, int64_t asker, int64_t at, bool trusted)
{
	struct friend_state *is = &pair->is;

	if (pair->is_dead || at <= is->ended_at)
		return FRIEND_SAME;
	if (is->since) {
		raise_to(&is->since, at);
		return FRIEND_SAME;
	}
	if (is->asker != asker && !trusted) {
		raise_to(&is->ended_at, at + 1);
		return FRIEND_UNASKED;
	}
	if (is->asker)
		settle(pair, "accepted");
	begin(pair, asker, at);
	return FRIEND_CHANGED;
}

enum friend_outcome friend_end(struct friend_pair *pair, int64_t at)
{
	struct friend_state *is = &pair->is;
	bool friends = is->since != 0;

	/* It may mean an earlier friendship, if there was one. */
	if (pair->is_dead || at <= is->ended_at ||
	    (is->ended_at && at < is->since))
		return FRIEND_SAME;
	raise_to(&is->ended_at, at);
	raise_to(&is->ended_at, is->since);
	is->since = 0;
	return friends ? FRIEND_CHANGED : FRIEND_SAME;
}

/* ---- locking and reading ---- */

struct pair_ids {
	int64_t *lows, *highs;
};

static struct pair_ids pair_ids_of(
    struct arena *arena, const struct friend_pair *pairs, size_t count)
{
	struct pair_ids ids = {
		.lows = arena_array(arena, count, sizeof(int64_t)),
		.highs = arena_array(arena, count, sizeof(int64_t)),
	};

	for (size_t i = 0; i < count; i++) {
		ids.lows[i] = pairs[i].low;
		ids.highs[i] = pairs[i].high;
	}
	return ids;
}

static void mark_dead(struct friend_pair *pairs, size_t count, int64_t person)
{
	for (size_t i = 0; i < count; i++)
		if (pairs[i].low == person || pairs[i].high == person)
			pairs[i].is_dead = true;
}

static bool people_lock(
    struct tx *tx, struct friend_pair *pairs, size_t count, struct err *err)
{
	int64_t *ids = arena_array(tx_arena(tx), 2 * count, sizeof(*ids));
	struct rows rows;
	const struct person_row *people;

	for (size_t i = 0; i < count; i++) {
		ids[2 * i] = pairs[i].low;
		ids[2 * i + 1] = pairs[i].high;
	}
	if (!sql_many(tx, &SQL_friends_people, person_row_shape, &rows, err,
		v_ids(ids, 2 * count)))
		return false;
	people = rows.items;
	for (size_t i = 0; i < rows.count; i++)
		if (people[i].is_deleted)
			mark_dead(pairs, count, people[i].id);
	return true;
}

bool friends_lock(
    struct tx *tx, struct friend_pair *pairs, size_t count, struct err *err)
{
	struct pair_ids ids = pair_ids_of(tx_arena(tx), pairs, count);

	return count == 0 ||
	    (sql_none(tx, &SQL_friends_lock, err, v_ids(ids.lows, count),
		 v_ids(ids.highs, count)) &&
		people_lock(tx, pairs, count, err));
}

bool friends_read(
    struct tx *tx, struct friend_pair *pairs, size_t count, struct err *err)
{
	struct pair_ids ids = pair_ids_of(tx_arena(tx), pairs, count);
	struct rows rows;
	const struct standing *standing;

	if (count == 0)
		return true;
	if (!sql_many(tx, &SQL_friends_read, standing_shape, &rows, err,
		v_ids(ids.lows, count), v_ids(ids.highs, count)))
		return false;
	standing = rows.items;
	for (size_t i = 0; i < rows.count; i++) {
		struct friend_pair *pair = &pairs[standing[i].place - 1];

		pair->was = standing[i].state;
		pair->is = standing[i].state;
	}
	return true;
}

/* ---- writing ---- */

/* Columns of what is written; each statement fills those it needs. */
struct columns {
	int64_t *ids, *others, *times, *more_times, *last_times;
	const char **texts;
	size_t count;
};

static struct columns columns_new(struct arena *arena, size_t room)
{
	return (struct columns){
		.ids = arena_array(arena, room, sizeof(int64_t)),
		.others = arena_array(arena, room, sizeof(int64_t)),
		.times = arena_array(arena, room, sizeof(int64_t)),
		.more_times = arena_array(arena, room, sizeof(int64_t)),
		.last_times = arena_array(arena, room, sizeof(int64_t)),
		.texts = arena_array(arena, room, sizeof(char *)),
	};
}

static bool request_ended(const struct friend_pair *pair)
{
	return pair->was.request && pair->is.request != pair->was.request;
}

static bool requests_end(struct tx *tx, const struct friend_pair *pairs,
    size_t count, struct err *err)
{
	struct columns c = columns_new(tx_arena(tx), count);

	for (size_t i = 0; i < count; i++) {
		if (!request_ended(&pairs[i]))
			continue;
		c.texts[c.count] = pairs[i].answer;
		c.ids[c.count++] = pairs[i].was.request;
	}
	return c.count == 0 ||
	    sql_none(tx, &SQL_friend_requests_end, err, v_ids(c.ids, c.count),
		v_texts(c.texts, c.count));
}

/* The asker has withdrawn it, which we were not told, and asked anew. */
static bool requests_move(struct tx *tx, const struct friend_pair *pairs,
    size_t count, struct err *err)
{
	struct columns c = columns_new(tx_arena(tx), count);

	for (size_t i = 0; i < count; i++) {
		const struct friend_pair *pair = &pairs[i];

		if (!pair->is.request || request_ended(pair) ||
		    pair->is.asked_at == pair->was.asked_at)
			continue;
		c.times[c.count] = pair->is.asked_at;
		c.ids[c.count++] = pair->is.request;
	}
	return c.count == 0 ||
	    sql_none(tx, &SQL_friend_requests_move, err, v_ids(c.ids, c.count),
		v_times(c.times, c.count));
}

static void requests_name(
    struct friend_pair *pairs, size_t count, const struct rows *rows)
{
	const struct friend_request *made = rows->items;

	for (size_t r = 0; r < rows->count; r++)
		for (size_t i = 0; i < count; i++)
			if (pairs[i].is.asker == made[r].from_id &&
			    friend_other(&pairs[i], made[r].from_id) ==
				made[r].to_id)
				pairs[i].is.request = made[r].id;
}

static bool requests_add(
    struct tx *tx, struct friend_pair *pairs, size_t count, struct err *err)
{
	struct columns c = columns_new(tx_arena(tx), count);
	struct rows rows;

	for (size_t i = 0; i < count; i++) {
		const struct friend_pair *pair = &pairs[i];

		if (!pair->is.asker || pair->is.request)
			continue;
		c.ids[c.count] = pair->is.asker;
		c.others[c.count] = friend_other(pair, pair->is.asker);
		c.times[c.count++] = pair->is.asked_at;
	}
	if (c.count == 0)
		return true;
	if (!sql_many(tx, &SQL_friend_requests_add, friend_request_shape, &rows,
		err, v_ids(c.ids, c.count), v_ids(c.others, c.count),
		v_times(c.times, c.count)))
		return false;
	requests_name(pairs, count, &rows);
	return true;
}

static bool friendships_begin(struct tx *tx, const struct friend_pair *pairs,
    size_t count, struct err *err)
{
	struct columns c = columns_new(tx_arena(tx), count);

	for (size_t i = 0; i < count; i++) {
		const struct friend_pair *pair = &pairs[i];
		int64_t accepter = pair->accepter ? pair->accepter : pair->high;

		if (!pair->is.since || pair->is.since == pair->was.since)
			continue;
		c.ids[c.count] = friend_other(pair, accepter);
		c.others[c.count] = accepter;
		c.times[c.count++] = pair->is.since;
	}
	return c.count == 0 ||
	    sql_none(tx, &SQL_friends_begin, err, v_ids(c.ids, c.count),
		v_ids(c.others, c.count), v_times(c.times, c.count));
}

static bool friendships_end(struct tx *tx, const struct friend_pair *pairs,
    size_t count, struct err *err)
{
	struct columns c = columns_new(tx_arena(tx), count);

	for (size_t i = 0; i < count; i++) {
		if (!pairs[i].was.since || pairs[i].is.since)
			continue;
		c.ids[c.count] = pairs[i].low;
		c.others[c.count++] = pairs[i].high;
	}
	return c.count == 0 ||
	    sql_none(tx, &SQL_friends_end, err, v_ids(c.ids, c.count),
		v_ids(c.others, c.count));
}

static bool marks_moved(const struct friend_pair *pair)
{
	return pair->is.low_over_at != pair->was.low_over_at ||
	    pair->is.high_over_at != pair->was.high_over_at ||
	    pair->is.ended_at != pair->was.ended_at;
}

static bool marks_set(struct tx *tx, const struct friend_pair *pairs,
    size_t count, struct err *err)
{
	struct columns c = columns_new(tx_arena(tx), count);

	for (size_t i = 0; i < count; i++) {
		const struct friend_pair *pair = &pairs[i];

		if (!marks_moved(pair))
			continue;
		c.ids[c.count] = pair->low;
		c.others[c.count] = pair->high;
		c.times[c.count] = pair->is.low_over_at;
		c.more_times[c.count] = pair->is.high_over_at;
		c.last_times[c.count++] = pair->is.ended_at;
	}
	return c.count == 0 ||
	    sql_none(tx, &SQL_friend_marks_set, err, v_ids(c.ids, c.count),
		v_ids(c.others, c.count), v_times(c.times, c.count),
		v_times(c.more_times, c.count), v_times(c.last_times, c.count));
}

/* ---- telling ---- */

struct news {
	struct arena *arena;
	struct user_change *changes;
	size_t count;
};

static void news_add(struct news *news, int64_t person, const char *kind,
    int64_t request, int64_t actor)
{
	news->changes[news->count++] = (struct user_change){
		.user = person,
		.kind = kind,
		.entity = request ? id_text(news->arena, request) : NULL,
		.actor = actor,
	};
}

static void tell_of_answer(struct news *news, const struct friend_pair *pair)
{
	int64_t asker = pair->was.asker;
	int64_t asked = friend_other(pair, asker);

	if (!pair->answer)
		news_add(news, asked, "friend_request_cancelled",
		    pair->was.request, asker);
	else if (strcmp(pair->answer, "accepted") == 0)
		news_add(news, asker, "friend_request_accepted",
		    pair->was.request, asked);
	else
		news_add(news, asker, "friend_request_declined",
		    pair->was.request, asked);
}

static void tell_of_pair(struct news *news, const struct friend_pair *pair)
{
	if (request_ended(pair))
		tell_of_answer(news, pair);
	if (pair->is.request && pair->is.request != pair->was.request)
		news_add(news, friend_other(pair, pair->is.asker),
		    "friend_request_received", pair->is.request,
		    pair->is.asker);
	if (!pair->was.since || pair->is.since)
		return;
	if (pair->ender != pair->low)
		news_add(news, pair->low, "friend_removed", 0, pair->high);
	if (pair->ender != pair->high)
		news_add(news, pair->high, "friend_removed", 0, pair->low);
}

static bool tell(struct tx *tx, const struct friend_pair *pairs, size_t count,
    struct err *err)
{
	struct arena *arena = tx_arena(tx);
	struct news news = {
		.arena = arena,
		.changes =
		    arena_array(arena, 4 * count, sizeof(struct user_change)),
	};

	for (size_t i = 0; i < count; i++)
		tell_of_pair(&news, &pairs[i]);
	return news.count == 0 ||
	    user_changes_append(tx, news.changes, news.count, err);
}

bool friends_write(
    struct tx *tx, struct friend_pair *pairs, size_t count, struct err *err)
{
	return requests_end(tx, pairs, count, err) &&
	    requests_move(tx, pairs, count, err) &&
	    requests_add(tx, pairs, count, err) &&
	    friendships_end(tx, pairs, count, err) &&
	    friendships_begin(tx, pairs, count, err) &&
	    marks_set(tx, pairs, count, err) && tell(tx, pairs, count, err);
}

/* ---- looking ---- */

bool friend_request_by_id(
    struct tx *tx, int64_t id, struct friend_request *request, struct err *err)
{
	bool found;

	return sql_opt(tx, &SQL_friend_request_by_id, friend_request_shape,
		   request, &found, err, v_id(id)) &&
	    (found || err_set(err, ERR_ABSENT, "Friend request not found"));
}
