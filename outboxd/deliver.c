#include "outboxd/deliver.h"

#include <utlist.h>

#include "common/base/clock.h"
#include "common/queue/lease.h"
#include "outboxd/drain.h"
#include "outboxd/figures.h"

enum {
	TICK_MS = 1000,
	DRAIN_PATIENCE_MS = 700,
	RELEASE_AGAIN_MS = 500,
	/* While others wait for room a peer gives way after so long. */
	TURN_MS = 5000,
	/* So many peers silent in a row, none answering: it is our network. */
	SILENT_MAX = 3
};

enum delivery_state { STEPPING, SENDING, RELEASING };

/* A leased peer. */
struct delivery {
	struct deliverer *all;
	struct drain *drain; /* a worker's while stepping or releasing */
	enum delivery_state state;
	struct client_call *call;
	struct loop_timer *again;
	int64_t number;
	int64_t peer;
	const char *token;
	int64_t since; /* steady ms */
	int64_t lease_ends;
	uint64_t hints; /* how many there were when it last read */
	bool lost;
	bool leave;
	bool fresh_secret;
	bool failed;
	struct err err;
	struct delivery *prev;
	struct delivery *next;
};

struct deliverer {
	struct deliver_def def;
	struct loop_timer *tick;
	struct loop_timer *renew;
	struct loop_timer *patience;
	struct delivery *deliveries;
	int64_t held;
	int64_t numbers;
	int64_t silent[SILENT_MAX];
	size_t silent_count;
	uint64_t hints;
	uint64_t epoch; /* of the lock: what an earlier one leased is void */
	size_t pending; /* work of ours beside the deliveries */
	bool locked;	/* our lock is held */
	bool up;	/* and nothing of an earlier one is left */
	bool claiming;
	bool claim_again;
	bool crowded; /* the last look found no room for all */
	bool draining;
	bool renewing;
	bool renew_again;
};

/* A look for due peers. */
struct claim {
	struct deliverer *all;
	struct arena *arena;
	uint64_t epoch;
	int64_t room;
	int64_t started;
	struct drain **drains;
	size_t count;
	bool failed;
	struct err err;
};

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

/* Rounds close here: the end of a delivery makes room for the next, and what
 * an answer brings is the next step's. */
static void look(struct deliverer *all);
static void step(struct delivery *d);

/* ---- the end of a delivery ---- */

static void delivery_delete(void *arg)
{
	struct delivery *d = arg;

	loop_timer_free(&d->again);
	drain_free(&d->drain);
	free(d);
}

static void finish(struct delivery *d)
{
	struct deliverer *all = d->all;

	DL_DELETE(all->deliveries, d);
	all->held--;
	metric_set(&figure_leases, 0, (double)all->held);
	if (d->hints != all->hints || all->crowded)
		look(all);
	loop_after_turn(all->def.loop, delivery_delete, d);
}

static void release_run(void *item, void *state)
{
	struct delivery *d = item;
	struct outboxd_worker *worker = state;

	d->err = (struct err){ 0 };
	d->failed = !drain_release(worker->conn, d->drain, &d->err);
}

static void release_done(void *item)
{
	struct delivery *d = item;

	if (d->failed && !d->lost && clock_steady_ms() < d->lease_ends)
		loop_timer_arm(d->again, RELEASE_AGAIN_MS);
	else
		finish(d);
}

/* The database or the queue refused a step: nothing is known to be booked. */
static void release(void *arg)
{
	struct delivery *d = arg;

	d->state = RELEASING;
	if (d->lost)
		finish(d);
	else if (!work_submit(d->all->def.pool, release_run, release_done, d))
		loop_timer_arm(d->again, RELEASE_AGAIN_MS);
}

/* ---- the round of a delivery ---- */

/* Is it the peer, or is it us? Whoever answers clears everybody's doubt. */
static void note_outcome(
    struct deliverer *all, int64_t peer, const struct client_result *result)
{
	if (result->outcome == CLIENT_ANSWERED)
		all->silent_count = 0;
	if (result->outcome == CLIENT_ANSWERED ||
	    result->outcome == CLIENT_ABORTED)
		return;
	for (size_t i = 0; i < all->silent_count; i++)
		if (all->silent[i] == peer)
			return;
	if (all->silent_count < SILENT_MAX)
		all->silent[all->silent_count++] = peer;
}

static void on_answer(void *arg, const struct client_result *result)
{
	struct delivery *d = arg;
	struct deliverer *all = d->all;

	d->call = NULL;
	note_outcome(all, d->peer, result);
	if (d->lost) {
		finish(d);
		return;
	}
	d->drain->answer = answer_keep(d->drain->arena, result);
	d->drain->has_answer = true;
	step(d);
}

static void post(struct delivery *d)
{
	struct drain *drain = d->drain;
	const struct client_request request = {
		.method = "POST",
		.url = drain->url,
		.headers = drain->headers,
		.header_count = DRAIN_HEADERS,
		.body = drain->body,
		.timeout_ms = outboxd_conf.answer_timeout,
		.answer_max = ANSWER_BYTES_MAX,
	};

	d->state = SENDING;
	d->call = client_send(d->all->def.client, &request, on_answer, d);
}

static void step_run(void *item, void *state)
{
	struct delivery *d = item;
	struct outboxd_worker *worker = state;

	d->err = (struct err){ 0 };
	d->failed = !drain_step(worker->conn, d->drain, &d->err);
}

static void step_done(void *item)
{
	struct delivery *d = item;

	if (d->failed) {
		log_warn("outbox.interrupted",
		    F("peer", v_text(d->drain->lease.origin)),
		    F("err", v_text(d->err.text)));
		release(d);
	} else if (d->drain->again && !d->lost) {
		step(d);
	} else if (!d->drain->sending) {
		finish(d);
	} else if (d->lost || d->leave || d->all->draining) {
		release(d);
	} else {
		post(d);
	}
}

static bool turn_is_over(const struct delivery *d)
{
	return d->all->crowded && clock_steady_ms() - d->since >= TURN_MS;
}

static void step(struct delivery *d)
{
	struct deliverer *all = d->all;
	struct drain *drain = d->drain;

	d->state = STEPPING;
	d->hints = all->hints;
	drain->leaving = d->leave || all->draining || turn_is_over(d);
	drain->fresh_secret |= d->fresh_secret;
	drain->uncounted = all->silent_count == SILENT_MAX;
	d->fresh_secret = false;
	if (!work_submit(all->def.pool, step_run, step_done, d))
		release(d);
}

/* ---- looking for peers that are due ---- */

static struct delivery *delivery_new(struct claim *claim, struct drain *drain)
{
	struct deliverer *all = claim->all;
	struct delivery *d = calloc(1, sizeof(*d));

	if (!d)
		abort();
	d->all = all;
	d->drain = drain;
	d->number = ++all->numbers;
	d->peer = drain->lease.peer;
	d->token = drain->lease.token;
	d->since = claim->started;
	d->lease_ends = claim->started + LEASE_MS;
	d->again = loop_timer_new(all->def.loop, release, d);
	DL_APPEND(all->deliveries, d);
	all->held++;
	metric_set(&figure_leases, 0, (double)all->held);
	return d;
}

static void claim_run(void *item, void *state)
{
	struct claim *claim = item;
	struct outboxd_worker *worker = state;
	const struct deliver_def *def = &claim->all->def;
	const struct drain_lease *leases;
	struct rows rows;

	claim->failed = !drain_claim(worker->conn, claim->arena, def->self->id,
	    claim->room, &rows, &claim->err);
	if (claim->failed)
		return;
	leases = rows.items;
	claim->drains =
	    arena_array(claim->arena, rows.count, sizeof(struct drain *));
	for (size_t i = 0; i < rows.count; i++)
		claim->drains[i] = drain_new(&leases[i], def->node);
	claim->count = rows.count;
}

static void claim_done(void *item)
{
	struct claim *claim = item;
	struct deliverer *all = claim->all;
	struct arena *arena = claim->arena;
	bool again = all->claim_again;

	all->pending--;
	all->claiming = false;
	all->claim_again = false;
	metric_observe_us(
	    &figure_claim, 0, (clock_steady_ms() - claim->started) * 1000);
	if (claim->failed)
		log_warn("outbox.unlooked", F("err", v_text(claim->err.text)));
	else
		all->crowded = (int64_t)claim->count == claim->room;
	for (size_t i = 0; i < claim->count; i++) {
		struct delivery *d = delivery_new(claim, claim->drains[i]);

		if (claim->epoch == all->epoch && !all->draining)
			step(d);
		else
			release(d);
	}
	arena_free(&arena);
	if (again)
		look(all);
}

static void claim_begin(struct deliverer *all)
{
	struct arena *arena = arena_new();
	struct claim *claim = ARENA_NEW(arena, struct claim);

	claim->all = all;
	claim->arena = arena;
	claim->epoch = all->epoch;
	claim->room = outboxd_conf.peers_max - all->held;
	claim->started = clock_steady_ms();
	if (!work_submit(all->def.pool, claim_run, claim_done, claim)) {
		arena_free(&arena);
		return;
	}
	all->claiming = true;
	all->pending++;
}

static void look(struct deliverer *all)
{
	if (!all->up || all->draining)
		return;
	if (all->claiming)
		all->claim_again = true;
	else if (all->held >= outboxd_conf.peers_max)
		all->crowded = true;
	else
		claim_begin(all);
}

void deliver_wake(struct deliverer *all)
{
	all->hints++;
	look(all);
}

/* ---- keeping leases ---- */

static void lose(struct delivery *d)
{
	if (d->lost)
		return;
	d->lost = true;
	if (d->state != SENDING)
		return;
	metric_add(&figure_leases_lost, 0, 1);
	log_warn("lease.lost", F("peer", v_text(d->drain->lease.origin)));
	client_abort(d->call);
}

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
		lose(d);
		return;
	}
	d->lease_ends = renewal->started + LEASE_MS;
	if (!kept->may_go_on)
		d->leave = true;
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

static void renew_all(struct deliverer *all)
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
	renew_all(all);
}

/* ---- timers ---- */

static void on_tick(void *arg)
{
	struct deliverer *all = arg;
	int64_t now = clock_steady_ms();
	struct delivery *d;
	struct delivery *next;

	DL_FOREACH_SAFE(all->deliveries, d, next)
	if (now >= d->lease_ends)
		lose(d);
	deliver_wake(all);
	loop_timer_arm(all->tick, TICK_MS);
}

static void on_renew(void *arg)
{
	struct deliverer *all = arg;

	renew_all(all);
	loop_timer_arm(all->renew, LEASE_RENEW_MS);
}

static void on_patience(void *arg)
{
	struct deliverer *all = arg;
	struct delivery *d;
	struct delivery *next;

	DL_FOREACH_SAFE(all->deliveries, d, next)
	if (d->state == SENDING)
		client_abort(d->call);
}

/* ---- our lock ---- */

static void drop_run(void *item, void *state)
{
	struct deliverer *all = item;
	struct outboxd_worker *worker = state;
	AUTO(tx_end) struct tx *tx = outboxd_tx(worker);
	struct err err = { 0 };

	if (!lease_drop_peers(tx, all->def.self->id, &err) ||
	    !tx_commit(tx, &err))
		log_warn("lease.undropped", F("err", v_text(err.text)));
}

static void drop_done(void *item)
{
	struct deliverer *all = item;

	all->pending--;
	all->up = all->locked;
	deliver_wake(all);
}

void deliver_up(struct deliverer *all)
{
	all->locked = true;
	if (work_submit(all->def.pool, drop_run, drop_done, all))
		all->pending++;
}

void deliver_down(struct deliverer *all)
{
	struct delivery *d;
	struct delivery *next;

	all->locked = false;
	all->up = false;
	all->epoch++;
	DL_FOREACH_SAFE(all->deliveries, d, next)
	lose(d);
}

/* ---- life ---- */

struct deliverer *deliver_new(const struct deliver_def *def)
{
	struct deliverer *all = calloc(1, sizeof(*all));

	if (!all)
		abort();
	all->def = *def;
	all->tick = loop_timer_new(def->loop, on_tick, all);
	all->renew = loop_timer_new(def->loop, on_renew, all);
	all->patience = loop_timer_new(def->loop, on_patience, all);
	loop_timer_arm(all->tick, TICK_MS);
	loop_timer_arm(all->renew, LEASE_RENEW_MS);
	return all;
}

void deliver_free(struct deliverer **deliverer)
{
	struct deliverer *all = *deliverer;

	if (!all)
		return;
	loop_timer_free(&all->tick);
	loop_timer_free(&all->renew);
	loop_timer_free(&all->patience);
	free(all);
	*deliverer = NULL;
}

void deliver_drain(struct deliverer *all)
{
	all->draining = true;
	loop_timer_arm(all->patience, DRAIN_PATIENCE_MS);
}

bool deliver_drained(const struct deliverer *all)
{
	return all->held == 0 && all->pending == 0;
}
