#include <utlist.h>

#include "common/base/clock.h"
#include "common/queue/lease.h"
#include "outboxd/fediverse_parts.h"

/* A renewal of all leases. */
struct renewal {
	struct fediverse *all;
	struct arena *arena;
	int64_t started;
	int64_t *numbers;
	const char **domains;
	const char **tokens;
	size_t count;
	struct rows kept;
	bool failed;
	struct err err;
};

static bool is_kept(const struct renewal *renewal, const char *domain)
{
	const struct lease_kept_domain *kept = renewal->kept.items;

	for (size_t i = 0; i < renewal->kept.count; i++)
		if (strcmp(kept[i].domain, domain) == 0)
			return true;
	return false;
}

static bool was_asked(const struct renewal *renewal, int64_t number)
{
	for (size_t i = 0; i < renewal->count; i++)
		if (renewal->numbers[i] == number)
			return true;
	return false;
}

static void renew_run(void *item, void *state)
{
	struct renewal *renewal = item;
	struct outboxd_worker *worker = state;
	AUTO(tx_end) struct tx *tx = tx_new(worker->conn, renewal->arena);

	tx_lazy(tx);
	renewal->failed =
	    !lease_renew_domains(tx, renewal->domains, renewal->tokens,
		renewal->count, &renewal->kept, &renewal->err) ||
	    !tx_commit(tx, &renewal->err);
}

static void renew_done(void *item)
{
	struct renewal *renewal = item;
	struct fediverse *all = renewal->all;
	struct arena *arena = renewal->arena;
	struct fediverse_domain *d;
	struct fediverse_domain *next;

	all->pending--;
	all->renewing = false;
	if (renewal->failed)
		log_warn(
		    "lease.unrenewed", F("err", v_text(renewal->err.text)));
	DL_FOREACH_SAFE(all->domains, d, next)
	{
		if (renewal->failed || !was_asked(renewal, d->number))
			continue;
		if (is_kept(renewal, d->lease.domain))
			d->lease_ends = renewal->started + LEASE_MS;
		else if (!d->releasing)
			fediverse_domain_lose(d);
	}
	arena_free(&arena);
}

void fediverse_renew(struct fediverse *all)
{
	struct arena *arena;
	struct renewal *renewal;
	struct fediverse_domain *d;
	size_t most = (size_t)all->held;

	if (all->renewing || all->held == 0)
		return;
	arena = arena_new();
	renewal = ARENA_NEW(arena, struct renewal);
	renewal->all = all;
	renewal->arena = arena;
	renewal->started = clock_steady_ms();
	renewal->numbers = arena_array(arena, most, sizeof(int64_t));
	renewal->domains = arena_array(arena, most, sizeof(char *));
	renewal->tokens = arena_array(arena, most, sizeof(char *));
	DL_FOREACH(all->domains, d)
	{
		renewal->numbers[renewal->count] = d->number;
		renewal->domains[renewal->count] =
		    arena_text(arena, d->lease.domain);
		renewal->tokens[renewal->count++] =
		    arena_text(arena, d->lease.token);
	}
	if (!work_submit(all->def.pool, renew_run, renew_done, renewal)) {
		arena_free(&arena);
		return;
	}
	all->renewing = true;
	all->pending++;
}
