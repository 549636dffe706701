#include "outboxd/pace.h"

#include <uthash.h>

enum {
	MINUTE_MS = 60 * 1000,
	FORGET_MINUTES = 60,
	SWEEP_AT = 1024 /* peers: then those that say nothing are forgotten */
};

struct limit {
	int64_t peer;
	int64_t minute_at; /* when the minute began that is counted */
	int64_t count;
	int64_t before; /* the count of the minute before it */
	int64_t since;	/* sends without a minute's rest */
	int64_t sent_at;
	int64_t refused_at;
	int64_t ceiling; /* what it took before it refused; 0: it did not */
	UT_hash_handle hh;
};

struct pace {
	struct limit *limits;
};

/* NOLINTBEGIN(readability-function-size,clang-analyzer-unix.Malloc): uthash */
static struct limit *limit_find(const struct pace *pace, int64_t peer)
{
	struct limit *limit;

	HASH_FIND(hh, pace->limits, &peer, sizeof(peer), limit);
	return limit;
}

static void limit_add(struct pace *pace, struct limit *limit)
{
	HASH_ADD(hh, pace->limits, peer, sizeof(limit->peer), limit);
}

static void limit_remove(struct pace *pace, struct limit *limit)
{
	HASH_DELETE(hh, pace->limits, limit);
	free(limit);
}
/* NOLINTEND(readability-function-size,clang-analyzer-unix.Malloc) */

static int64_t within(int64_t value, int64_t least, int64_t most)
{
	if (value < least)
		return least;
	return value < most ? value : most;
}

/* Requests a minute; 0: no limit. A little nearer to the ceiling each minute,
 * and beyond it when it was met long ago. */
static int64_t rate_at(const struct limit *limit, int64_t now)
{
	int64_t minutes = (now - limit->refused_at) / MINUTE_MS;
	int64_t near = limit->ceiling * 95 / 100;
	int64_t rate = within(limit->ceiling * 9 / 10, PACE_LEAST, PACE_MOST);

	if (!limit->ceiling)
		return 0;
	if (rate < near)
		rate = within(rate + minutes, rate, near);
	for (; minutes >= FORGET_MINUTES && rate <= PACE_MOST; minutes--)
		rate += rate / 4 + 1;
	return rate <= PACE_MOST ? rate : 0;
}

static void sweep(struct pace *pace, int64_t now)
{
	struct limit *limit = pace->limits;

	while (limit) {
		struct limit *next = limit->hh.next;

		if (!rate_at(limit, now) &&
		    now - limit->sent_at > 2 * MINUTE_MS)
			limit_remove(pace, limit);
		limit = next;
	}
}

static struct limit *limit_of(struct pace *pace, int64_t peer, int64_t now)
{
	struct limit *limit = limit_find(pace, peer);

	if (limit)
		return limit;
	if (HASH_COUNT(pace->limits) % SWEEP_AT == SWEEP_AT - 1)
		sweep(pace, now);
	limit = calloc(1, sizeof(*limit));
	if (!limit)
		abort();
	limit->peer = peer;
	limit->minute_at = now;
	limit_add(pace, limit);
	return limit;
}

/* A new minute begins when the last one is over. */
static void turn_minute(struct limit *limit, int64_t now)
{
	if (now - limit->minute_at < MINUTE_MS)
		return;
	limit->before =
	    now - limit->minute_at < 2 * MINUTE_MS ? limit->count : 0;
	limit->count = 0;
	limit->minute_at = now;
}

void pace_sent(struct pace *pace, int64_t peer, int64_t now)
{
	struct limit *limit = limit_of(pace, peer, now);

	turn_minute(limit, now);
	if (!limit->sent_at || now - limit->sent_at >= MINUTE_MS)
		limit->since = now;
	limit->count++;
	limit->sent_at = now;
}

void pace_know(
    struct pace *pace, int64_t peer, int64_t ceiling, int64_t refused_at)
{
	struct limit *limit;

	if (!ceiling)
		return;
	limit = limit_of(pace, peer, refused_at);
	if (limit->ceiling && limit->refused_at >= refused_at)
		return;
	limit->ceiling = ceiling;
	limit->refused_at = refused_at;
}

/* Of what it took; the refused one was not taken. Whoever came a moment ago
 * has not sent all of it. */
static int64_t taken(const struct limit *limit, int64_t now)
{
	int64_t rate = rate_at(limit, now);
	int64_t took =
	    limit->count > limit->before ? limit->count - 1 : limit->before;

	if (!rate)
		return took;
	if (now - limit->since < MINUTE_MS)
		return limit->ceiling;
	return took < rate ? took : rate;
}

void pace_refused(struct pace *pace, int64_t peer, int64_t now)
{
	struct limit *limit = limit_of(pace, peer, now);

	turn_minute(limit, now);
	limit->ceiling = within(taken(limit, now), PACE_LEAST, PACE_MOST);
	limit->refused_at = now;
}

int64_t pace_wait_ms(struct pace *pace, int64_t peer, int64_t now)
{
	const struct limit *limit = limit_find(pace, peer);
	int64_t rate = limit ? rate_at(limit, now) : 0;
	int64_t next;

	if (!rate || !limit->sent_at)
		return 0;
	next = limit->sent_at + (MINUTE_MS + rate - 1) / rate;
	return next > now ? next - now : 0;
}

int64_t pace_ceiling(const struct pace *pace, int64_t peer)
{
	const struct limit *limit = limit_find(pace, peer);

	return limit ? limit->ceiling : 0;
}

int64_t pace_limit(const struct pace *pace, int64_t peer, int64_t now)
{
	const struct limit *limit = limit_find(pace, peer);

	return limit ? rate_at(limit, now) : 0;
}

struct pace *pace_new(void)
{
	struct pace *pace = calloc(1, sizeof(*pace));

	if (!pace)
		abort();
	return pace;
}

void pace_free(struct pace **pace)
{
	struct limit *limit;

	if (!*pace)
		return;
	limit = (*pace)->limits;
	HASH_CLEAR(hh, (*pace)->limits);
	while (limit) {
		struct limit *next = limit->hh.next;

		free(limit);
		limit = next;
	}
	free(*pace);
	*pace = NULL;
}
