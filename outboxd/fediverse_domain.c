#include <utlist.h>

#include "common/base/clock.h"
#include "common/queue/lease.h"
#include "outboxd/fediverse_figures.h"
#include "outboxd/fediverse_parts.h"

enum {
	READ_BELOW = 16, /* rows are wanted when fewer are ready */
	SETTLE_AT = 16,
	SETTLE_MS = 500,
	TURN_MS = 5000,
	AGAIN_MS = 1000
};

static bool busy(const struct fediverse_domain *d)
{
	return d->stepping || d->releasing || d->away_count > 0;
}

static void domain_free(struct fediverse_domain *d)
{
	struct fediverse *all = d->all;
	struct arena *arena = d->arena;

	attempts_drop(&d->ready, &d->ready_count);
	attempts_drop(&d->ended, &d->ended_count);
	DL_DELETE(all->domains, d);
	all->held--;
	metric_set(&figure_domains, 0, (double)all->held);
	arena_free(&arena);
}

/* ---- giving it back ---- */

static void release_run(void *item, void *state)
{
	struct fediverse_domain *d = item;
	struct outboxd_worker *worker = state;
	AUTO(tx_end) struct tx *tx = outboxd_tx(worker);
	struct err err = { 0 };

	tx_lazy(tx);
	tx_closing(tx);
	d->unreleased =
	    !outbound_release(tx, &d->lease, &err) || !tx_commit(tx, &err);
	if (d->unreleased)
		log_warn("lease.unreleased", F("peer", v_text(d->lease.domain)),
		    F("err", v_text(err.text)));
}

static void release_done(void *item)
{
	struct fediverse_domain *d = item;
	struct fediverse *all = d->all;
	bool again = d->hints != all->hints || all->crowded;

	all->unsure |= d->unreleased;
	domain_free(d);
	if (again)
		fediverse_look(all);
}

static void release_begin(struct fediverse_domain *d)
{
	if (work_submit(d->all->def.pool, release_run, release_done, d))
		d->releasing = true;
	else
		d->not_before = clock_steady_ms() + AGAIN_MS;
}

/* ---- what is next ---- */

/* While half of all places are taken, nobody has more than one. */
static int places(const struct fediverse_domain *d)
{
	const struct fediverse *all = d->all;
	int64_t most = *all->def.at_once_max;

	if (all->away >= most)
		return 0;
	return all->away >= most / 2 && d->room > 1 ? 1 : d->room;
}

static void leave(struct fediverse_domain *d, struct attempt *a)
{
	DL_DELETE(d->ready, a);
	d->ready_count--;
	DL_APPEND(d->away, a);
	d->away_count++;
	d->all->away++;
}

static void begin_ready(struct fediverse_domain *d)
{
	/* A probe is alone until it is known what came of it. */
	if (d->room == 1 && (d->ended_count > 0 || d->stepping))
		return;
	while (d->ready && d->away_count < (size_t)places(d) &&
	    attempt_begin(d->ready))
		leave(d, d->ready);
}

/*
 * Deliveries are written a few at a time while others are on their way: what
 * a crash loses is sent again. Whatever else became of a row is written at
 * once, for it may be that the domain must be left alone.
 */
static bool wants_settling(const struct fediverse_domain *d)
{
	if (d->ended_count == 0)
		return false;
	return d->news || d->room == 1 || d->ended_count >= SETTLE_AT ||
	    (d->away_count == 0 && d->ready_count == 0) ||
	    clock_steady_ms() - d->ended_since >= SETTLE_MS;
}

bool fediverse_domain_wants_rows(const struct fediverse_domain *d)
{
	return !d->dry && !d->closing && !d->all->draining &&
	    d->ready_count < READ_BELOW;
}

bool fediverse_domain_wants_step(const struct fediverse_domain *d)
{
	return !d->lost && !d->stepping && !d->releasing &&
	    clock_steady_ms() >= d->not_before &&
	    (!d->stepped || wants_settling(d) || d->burying ||
		fediverse_domain_wants_rows(d));
}

static bool is_over(const struct fediverse_domain *d)
{
	return d->stepped && !busy(d) && d->ready_count == 0 &&
	    d->ended_count == 0 && clock_steady_ms() >= d->not_before;
}

void fediverse_domain_go(struct fediverse_domain *d)
{
	if (d->lost) {
		if (!busy(d))
			domain_free(d);
		return;
	}
	if (d->all->crowded && clock_steady_ms() - d->since > TURN_MS)
		d->closing = true;
	if (d->closing || d->all->draining || (d->stepped && d->room == 0))
		attempts_drop(&d->ready, &d->ready_count);
	begin_ready(d);
	if (fediverse_domain_wants_step(d))
		fediverse_step_soon(d->all);
	else if (is_over(d))
		release_begin(d);
}

void fediverse_domain_back(struct attempt *attempt, bool dropped)
{
	struct fediverse_domain *d = attempt->domain;

	/* Every place was taken: somebody else may wait for this one. */
	if (d->all->away >= *d->all->def.at_once_max)
		loop_timer_arm(d->all->kick, 0);
	DL_DELETE(d->away, attempt);
	d->away_count--;
	d->all->away--;
	if (dropped || d->lost) {
		attempt_free(&attempt);
	} else {
		if (d->ended_count++ == 0)
			d->ended_since = clock_steady_ms();
		DL_APPEND(d->ended, attempt);
		d->news =
		    d->news || attempt->hop.outcome.fate != FATE_DELIVERED;
	}
	fediverse_domain_go(d);
}

void fediverse_domain_abort(struct fediverse_domain *d)
{
	struct attempt *a = d->away;

	d->closing = true;
	while (a) {
		struct client_call *call = a->call;

		a = a->next;
		/* Its done may free the domain when it was the last. */
		if (call)
			client_abort(call);
	}
}

void fediverse_domain_lose(struct fediverse_domain *d)
{
	if (d->lost)
		return;
	log_warn("lease.lost", F("peer", v_text(d->lease.domain)));
	d->lost = true;
	attempts_drop(&d->ready, &d->ready_count);
	attempts_drop(&d->ended, &d->ended_count);
	if (busy(d))
		fediverse_domain_abort(d);
	else
		domain_free(d);
}

struct fediverse_domain *fediverse_domain_new(
    struct fediverse *all, const struct outbound_lease *lease, int64_t began)
{
	struct arena *arena = arena_new();
	struct fediverse_domain *d = ARENA_NEW(arena, struct fediverse_domain);

	d->arena = arena;
	d->all = all;
	d->lease.domain = arena_text(arena, lease->domain);
	d->lease.token = arena_text(arena, lease->token);
	d->since = began;
	d->lease_ends = began + LEASE_MS;
	DL_APPEND(all->domains, d);
	all->held++;
	metric_set(&figure_domains, 0, (double)all->held);
	return d;
}
