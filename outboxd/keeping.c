#include <utlist.h>

#include "common/base/clock.h"
#include "common/queue/lease.h"
#include "outboxd/delivery.h"

/* A renewal of all leases. */
struct renewal {
	struct deliverer *all;
	struct arena *arena;
	int64_t started;
	int64_t *numbers;
	int64_t *peers;
	const char **tokens;
	size_t count;
	struct rows kept;
	bool failed;
	struct err err;
};

static const struct lease_kept *kept_find(
    const struct renewal *renewal, int64_t peer)
{
	const struct lease_kept *kept = renewal->kept.items;

	for (size_t i = 0; i < renewal->kept.count; i++)
		if (kept[i].id == peer)
			return &kept[i];
	return NULL;
}

static void renewed(struct delivery *d, const struct renewal *renewal)
{
	const struct lease_kept *kept = kept_find(renewal, d->peer);

	if (!kept) {
		delivery_lose(d);
		return;
	}
	d->lease_ends = renewal->started + LEASE_MS;
	if (kept->may_go_on)
		return;
	d->leave = true;
	delivery_nudge(d);
}

static void renew_run(void *item, void *state)
{
	struct renewal *renewal = item;
	struct outboxd_worker *worker = state;
	AUTO(tx_end) struct tx *tx = tx_new(worker->conn, renewal->arena);

	tx_lazy(tx);
	renewal->failed =
	    !lease_renew_peers(tx, renewal->peers, renewal->tokens,
		renewal->count, &renewal->kept, &renewal->err) ||
	    !tx_commit(tx, &renewal->err);
}

static void renew_done(void *item)
{
	struct renewal *renewal = item;
	struct deliverer *all = renewal->all;
	struct arena *arena = renewal->arena;
	struct delivery *d;
	struct delivery *next;

	all->pending--;
	all->renewing = false;
	if (renewal->failed)
		log_warn(
		    "lease.unrenewed", F("err", v_text(renewal->err.text)));
	DL_FOREACH_SAFE(all->deliveries, d, next)
	for (size_t i = 0; i < renewal->count && !renewal->failed; i++)
		if (renewal->numbers[i] == d->number)
			renewed(d, renewal);
	arena_free(&arena);
	if (all->renew_again)
		deliver_recheck(all);
}

static struct renewal *renewal_new(struct deliverer *all)
{
	struct arena *arena = arena_new();
	struct renewal *renewal = ARENA_NEW(arena, struct renewal);
	size_t most = (size_t)all->held;
	struct delivery *d;

	renewal->all = all;
	renewal->arena = arena;
	renewal->started = clock_steady_ms();
	renewal->numbers = arena_array(arena, most, sizeof(int64_t));
	renewal->peers = arena_array(arena, most, sizeof(int64_t));
	renewal->tokens = arena_array(arena, most, sizeof(char *));
	DL_FOREACH(all->deliveries, d)
	{
		renewal->numbers[renewal->count] = d->number;
		renewal->peers[renewal->count] = d->peer;
		renewal->tokens[renewal->count] = arena_text(arena, d->token);
		renewal->count++;
	}
	return renewal;
}

void deliverer_renew(struct deliverer *all)
{
	struct renewal *renewal;
	struct arena *arena;

	all->renew_again = all->renewing;
	if (all->renewing || all->held == 0)
		return;
	renewal = renewal_new(all);
	arena = renewal->arena;
	if (!work_submit(all->def.pool, renew_run, renew_done, renewal)) {
		arena_free(&arena);
		return;
	}
	all->renewing = true;
	all->pending++;
}

void deliver_recheck(struct deliverer *all)
{
	struct delivery *d;

	DL_FOREACH(all->deliveries, d)
	d->fresh_secret = true;
	deliverer_renew(all);
}
