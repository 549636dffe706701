#include <utlist.h>

#include "common/base/clock.h"
#include "common/queue/lease.h"
#include "outboxd/fediverse_figures.h"
#include "outboxd/fediverse_parts.h"

enum {
	READ_MAX = 16,	/* rows a step reads */
	READ_BELOW = 8, /* a step reads when fewer are ready */
	SETTLE_AT = 4,
	SETTLE_MS = 500,
	TURN_MS = 5000,
	AGAIN_MS = 1000
};

/* What a worker does for a domain: write, bury, read. */
struct step {
	struct fediverse_domain *domain;
	struct arena *arena;
	struct outbound_result *results;
	size_t count;
	struct attempt *settling;
	const char **under_way;
	size_t under_way_count;
	bool reads;
	/* what it found */
	struct outbound_domain row;
	bool held;
	int room;
	struct rows items;
	bool more_dead;
	bool dry;
	bool failed;
	struct err err;
};

/* ---- lists ---- */

static void drop_all(struct attempt **list, size_t *count)
{
	struct attempt *a;
	struct attempt *next;

	DL_FOREACH_SAFE(*list, a, next)
	attempt_free(&a);
	*list = NULL;
	*count = 0;
}

static bool busy(const struct fediverse_domain *d)
{
	return d->stepping || d->releasing || d->away_count > 0;
}

static void domain_free(struct fediverse_domain *d)
{
	struct fediverse *all = d->all;
	struct arena *arena = d->arena;

	drop_all(&d->ready, &d->ready_count);
	drop_all(&d->ended, &d->ended_count);
	DL_DELETE(all->domains, d);
	all->held--;
	metric_set(&figure_domains, 0, (double)all->held);
	arena_free(&arena);
}

/* ---- a step ---- */

static bool step_read(struct step *step, struct tx *tx, struct err *err)
{
	int64_t limit = step->room == 1 ? 1 : READ_MAX;

	if (!step->reads || step->room == 0) {
		step->dry = step->room == 0;
		return true;
	}
	if (!outbound_read(tx, &step->row, limit, step->under_way,
		step->under_way_count, &step->items, err))
		return false;
	step->dry = (int64_t)step->items.count < limit;
	return true;
}

static bool step_do(struct step *step, struct tx *tx, struct err *err)
{
	struct breaker *breaker = &step->row.breaker;

	if (!outbound_lock(
		tx, &step->domain->lease, &step->row, &step->held, err))
		return false;
	if (!step->held)
		return true;
	if (!outbound_settle(tx, &step->row, step->results, step->count, err))
		return false;
	step->room = step->row.on
	    ? breaker_room(breaker, clock_wall_ms(), FEDIVERSE_PER_DOMAIN)
	    : 0;
	if ((breaker->state == BREAKER_DEAD || step->row.blocked) &&
	    !outbound_bury(tx, &step->row, &step->more_dead, err))
		return false;
	return step_read(step, tx, err);
}

static void step_run(void *item, void *state)
{
	struct step *step = item;
	struct outboxd_worker *worker = state;
	AUTO(tx_end) struct tx *tx = tx_new(worker->conn, step->arena);

	/* What is lost with a crash is sent again, and known as a repeat. */
	tx_lazy(tx);
	step->failed =
	    !step_do(step, tx, &step->err) || !tx_commit(tx, &step->err);
}

/* What could not be written is kept, and written later. */
static void step_undo(struct step *step)
{
	struct fediverse_domain *d = step->domain;

	log_warn("activity.unwritten", F("peer", v_text(d->lease.domain)),
	    F("err", v_text(step->err.text)));
	DL_CONCAT(d->ended, step->settling);
	d->ended_count += step->count;
	d->news = true;
	d->not_before = clock_steady_ms() + AGAIN_MS;
}

static void count_ended(const struct step *step)
{
	int64_t ended = 0;

	for (size_t i = 0; step->held && i < step->count; i++)
		ended += step->results[i].outcome.fate != FATE_RETRY;
	metric_add(&figure_activities_ended, 0, ended);
}

static void step_take(struct step *step)
{
	struct fediverse_domain *d = step->domain;
	const struct outbound_item *items = step->items.items;
	size_t settled = step->count;

	count_ended(step);
	drop_all(&step->settling, &settled);
	d->room = step->room;
	d->well = step->row.well && step->row.breaker.failure_days == 0;
	d->burying = step->more_dead;
	d->dry = step->dry && d->hints == d->all->hints;
	for (size_t i = 0; i < step->items.count; i++) {
		struct attempt *a = attempt_new(d, &step->row, &items[i]);

		DL_APPEND(d->ready, a);
		d->ready_count++;
	}
}

static void step_done(void *item)
{
	struct step *step = item;
	struct fediverse_domain *d = step->domain;
	struct arena *arena = step->arena;

	d->stepping = false;
	d->stepped = true;
	if (step->failed)
		step_undo(step);
	else
		step_take(step);
	if (!step->failed && !step->held)
		fediverse_domain_lose(d);
	else
		fediverse_domain_go(d);
	arena_free(&arena);
}

static void under_way_list(struct step *step, const struct fediverse_domain *d)
{
	const struct attempt *a;

	step->under_way = arena_array(step->arena,
	    d->ready_count + d->away_count + d->ended_count, sizeof(char *));
	DL_FOREACH(d->ready, a)
	step->under_way[step->under_way_count++] = a->item.id;
	DL_FOREACH(d->away, a)
	step->under_way[step->under_way_count++] = a->item.id;
}

static struct step *step_new(struct fediverse_domain *d, bool reads)
{
	struct arena *arena = arena_new();
	struct step *step = ARENA_NEW(arena, struct step);
	const struct attempt *a;

	step->arena = arena;
	step->domain = d;
	step->reads = reads;
	step->results =
	    arena_array(arena, d->ended_count, sizeof(*step->results));
	DL_FOREACH(d->ended, a)
	step->results[step->count++] = delivery_result(&a->hop);
	under_way_list(step, d);
	return step;
}

/* The names of what is under way are copied: attempts may end meanwhile. */
static void names_copy(struct step *step)
{
	for (size_t i = 0; i < step->under_way_count; i++)
		step->under_way[i] =
		    arena_text(step->arena, step->under_way[i]);
}

static bool wants_rows(const struct fediverse_domain *d)
{
	return !d->dry && !d->closing && !d->all->draining &&
	    d->ready_count < READ_BELOW;
}

static void step_begin(struct fediverse_domain *d)
{
	struct step *step = step_new(d, wants_rows(d));
	struct arena *arena = step->arena;

	names_copy(step);
	if (!work_submit(d->all->def.pool, step_run, step_done, step)) {
		d->not_before = clock_steady_ms() + AGAIN_MS;
		arena_free(&arena);
		return;
	}
	step->settling = d->ended;
	d->ended = NULL;
	d->ended_count = 0;
	d->news = false;
	d->hints = d->all->hints;
	d->stepping = true;
}

/* ---- giving it back ---- */

static void release_run(void *item, void *state)
{
	struct fediverse_domain *d = item;
	struct outboxd_worker *worker = state;
	AUTO(tx_end) struct tx *tx = outboxd_tx(worker);
	struct err err = { 0 };

	tx_lazy(tx);
	if (!outbound_release(tx, &d->lease, &err) || !tx_commit(tx, &err))
		log_warn("lease.unreleased", F("peer", v_text(d->lease.domain)),
		    F("err", v_text(err.text)));
}

static void release_done(void *item)
{
	struct fediverse_domain *d = item;
	struct fediverse *all = d->all;
	bool again = d->hints != all->hints || all->crowded;

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

static bool wants_step(const struct fediverse_domain *d)
{
	return !d->stepping && !d->releasing &&
	    clock_steady_ms() >= d->not_before &&
	    (!d->stepped || wants_settling(d) || d->burying || wants_rows(d));
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
		drop_all(&d->ready, &d->ready_count);
	begin_ready(d);
	if (wants_step(d))
		step_begin(d);
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
	drop_all(&d->ready, &d->ready_count);
	drop_all(&d->ended, &d->ended_count);
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
