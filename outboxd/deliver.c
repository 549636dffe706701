#include "outboxd/deliver.h"

#include <utlist.h>

#include "common/base/clock.h"
#include "common/queue/lease.h"
#include "outboxd/delivery.h"
#include "outboxd/figures.h"

enum { TICK_MS = 1000, DRAIN_PATIENCE_MS = 700 };

/* A look for due peers. */
struct claim {
	struct deliverer *all;
	struct arena *arena;
	uint64_t epoch;
	int64_t room;
	int64_t started;
	bool wholly;
	struct wanted wanted;
	bool unsure; /* the last one may have leased unseen; what is known: */
	const char **tokens;
	size_t token_count;
	int64_t took_ms;
	struct rows busy; /* of those wanted: somebody else has them */
	struct err busy_err;
	bool may_linger;
	bool uncounted;
	struct drain **drains;
	size_t count;
	bool failed;
	struct err err;
	bool stepped; /* the only one has taken its first step */
	bool step_failed;
	struct err step_err;
};

/* ---- looking for peers that are due ---- */

static void look_on(struct deliverer *all);

static int64_t room(const struct deliverer *all)
{
	return outboxd_conf.peers_max - (all->held - all->warm);
}

/* One message for one peer need not go by the loop to be read. */
static void step_first(struct claim *claim, struct conn *conn)
{
	struct drain *drain = claim->drains[0];

	drain->brief = true;
	drain->may_linger = claim->may_linger;
	drain->uncounted = claim->uncounted;
	claim->stepped = true;
	claim->step_failed = !drain_step(conn, drain, &claim->step_err);
}

static bool drop_unknown(
    struct claim *claim, struct conn *conn, struct err *err)
{
	AUTO(tx_end) struct tx *tx = tx_new(conn, claim->arena);

	tx_lazy(tx);
	return lease_drop(tx, LEASE_PEERS, claim->all->def.self->id,
		   claim->tokens, claim->token_count, err) &&
	    tx_commit(tx, err);
}

static void drains_begin(struct claim *claim, const struct rows *rows)
{
	const struct peer_lease *leases = rows->items;

	claim->drains =
	    arena_array(claim->arena, rows->count, sizeof(struct drain *));
	for (size_t i = 0; i < rows->count; i++)
		claim->drains[i] = drain_new(&leases[i], claim->all->def.node);
	claim->count = rows->count;
}

static void claim_run(void *item, void *state)
{
	struct claim *claim = item;
	struct conn *conn = ((struct outboxd_worker *)state)->conn;
	const struct wanted *wanted = &claim->wanted;
	const struct claim_def def = {
		.worker = claim->all->def.self->id,
		.room = claim->room,
		.wholly = claim->wholly,
		.peers = wanted->any ? NULL : wanted->peers,
		.peer_count = wanted->count,
	};
	struct rows rows;

	claim->failed =
	    (claim->unsure && !drop_unknown(claim, conn, &claim->err)) ||
	    !claim_peers(conn, claim->arena, &def, &rows, &claim->err);
	claim->took_ms = clock_steady_ms() - claim->started;
	if (claim->failed)
		return;
	drains_begin(claim, &rows);
	if (claim->count == 1)
		step_first(claim, conn);
	/* Of no consequence if it fails. */
	if (!wanted->any && claim->count == 0 &&
	    !claim_elsewhere(
		conn, claim->arena, &def, &claim->busy, &claim->busy_err))
		claim->busy = (struct rows){ 0 };
}

static void busy_note(const struct claim *claim)
{
	const struct claim_busy *busy = claim->busy.items;

	for (size_t i = 0; i < claim->busy.count; i++)
		elsewhere_note(
		    &claim->all->elsewhere, busy[i].id, claim->started);
}

static void claim_done(void *item)
{
	struct claim *claim = item;
	struct deliverer *all = claim->all;
	struct arena *arena = claim->arena;

	all->pending--;
	all->claiming = false;
	all->unsure |= claim->failed;
	metric_observe_us(&figure_claim, 0, claim->took_ms * 1000);
	if (claim->failed)
		log_warn("outbox.unlooked", F("err", v_text(claim->err.text)));
	else if (claim->wanted.any || (int64_t)claim->count == claim->room)
		all->crowded = (int64_t)claim->count == claim->room;
	busy_note(claim);
	for (size_t i = 0; i < claim->count; i++) {
		struct delivery *d =
		    delivery_new(all, claim->drains[i], claim->started);

		elsewhere_forget(&all->elsewhere, d->peer);
		if (claim->epoch != all->epoch || all->draining)
			delivery_release(d);
		else if (claim->stepped)
			delivery_go_on(
			    d, claim->step_failed ? &claim->step_err : NULL);
		else
			delivery_go(d);
	}
	arena_free(&arena);
	look_on(all);
}

static void tokens_note(struct claim *claim)
{
	const struct delivery *d;

	claim->tokens =
	    arena_array(claim->arena, (size_t)claim->all->held, sizeof(char *));
	DL_FOREACH(claim->all->deliveries, d)
	claim->tokens[claim->token_count++] =
	    arena_text(claim->arena, d->token);
}

static void claim_begin(struct deliverer *all)
{
	struct arena *arena = arena_new();
	struct claim *claim = ARENA_NEW(arena, struct claim);

	claim->all = all;
	claim->arena = arena;
	claim->epoch = all->epoch;
	claim->room = room(all);
	claim->started = clock_steady_ms();
	claim->unsure = all->unsure;
	if (claim->unsure)
		tokens_note(claim);
	claim->wanted = all->wanted;
	all->wanted = (struct wanted){ 0 };
	claim->wholly = claim->wanted.any &&
	    claim->started - all->wholly_at >= DRAIN_WHOLLY_MS;
	if (claim->wholly)
		all->wholly_at = claim->started;
	claim->may_linger = !all->crowded;
	claim->uncounted = silence_is_ours(&all->silence);
	if (!work_submit(all->def.pool, claim_run, claim_done, claim)) {
		arena_free(&arena);
		return;
	}
	all->unsure = false;
	all->claiming = true;
	all->pending++;
}

static struct delivery *held(const struct deliverer *all, int64_t peer)
{
	struct delivery *d;

	DL_FOREACH(all->deliveries, d)
	if (d->peer == peer && !d->lost)
		return d;
	return NULL;
}

/* What is ours need not be claimed. */
static void hint_held(struct deliverer *all)
{
	struct wanted *wanted = &all->wanted;
	size_t count = wanted->count;
	struct delivery *d;

	wanted->count = 0;
	for (size_t i = 0; i < count; i++) {
		d = held(all, wanted->peers[i]);
		if (d)
			delivery_hint(d);
		else
			wanted->peers[wanted->count++] = wanted->peers[i];
	}
	if (!wanted->hint)
		return;
	wanted->hint = false;
	DL_FOREACH(all->deliveries, d)
	delivery_hint(d);
}

/* A claim is one at a time; what is wanted meanwhile comes after it. */
static void look_on(struct deliverer *all)
{
	if (!all->up || all->draining || all->claiming)
		return;
	hint_held(all);
	if (!all->wanted.any && all->wanted.count == 0)
		return;
	if (room(all) <= 0)
		all->crowded = true;
	else
		claim_begin(all);
}

/* Who is held needs none: a warm one reads when its second ends, a busy one
 * each second. */
void deliverer_look(struct deliverer *all)
{
	all->wanted.any = true;
	look_on(all);
}

void deliver_wake(struct deliverer *all)
{
	all->wanted.hint = true;
	deliverer_look(all);
}

void deliver_wake_peer(struct deliverer *all, int64_t peer)
{
	struct wanted *wanted = &all->wanted;
	struct delivery *d = held(all, peer);

	if (d) {
		delivery_hint(d);
		return;
	}
	/* What is being claimed may be it. */
	if (!all->claiming &&
	    elsewhere_is(&all->elsewhere, peer, clock_steady_ms()))
		return;
	for (size_t i = 0; i < wanted->count; i++)
		if (wanted->peers[i] == peer)
			return;
	if (wanted->count == COUNT(wanted->peers))
		wanted->any = wanted->hint = true;
	else
		wanted->peers[wanted->count++] = peer;
	look_on(all);
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
		delivery_lose(d);
	deliverer_look(all);
	loop_timer_arm(all->tick, TICK_MS);
}

static void on_renew(void *arg)
{
	struct deliverer *all = arg;

	deliverer_renew(all);
	loop_timer_arm(all->renew, LEASE_RENEW_MS);
}

static void on_patience(void *arg)
{
	struct deliverer *all = arg;
	struct delivery *d;
	struct delivery *next;

	DL_FOREACH_SAFE(all->deliveries, d, next)
	delivery_abort(d);
}

/* ---- our lock ---- */

static void drop_run(void *item, void *state)
{
	struct deliverer *all = item;
	struct outboxd_worker *worker = state;
	AUTO(tx_end) struct tx *tx = outboxd_tx(worker);
	struct err err = { 0 };

	all->drop_failed =
	    !lease_drop(tx, LEASE_PEERS, all->def.self->id, NULL, 0, &err) ||
	    !tx_commit(tx, &err);
	if (all->drop_failed)
		log_warn("lease.undropped", F("err", v_text(err.text)));
}

static void drop_done(void *item)
{
	struct deliverer *all = item;

	all->pending--;
	all->up = all->locked;
	all->unsure |= all->drop_failed;
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
	delivery_lose(d);
}

/* ---- life ---- */

struct deliverer *deliver_new(const struct deliver_def *def)
{
	struct deliverer *all = calloc(1, sizeof(*all));

	if (!all)
		abort();
	all->def = *def;
	all->pace = pace_new();
	all->wholly_at = clock_steady_ms();
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
	pace_free(&all->pace);
	free(all);
	*deliverer = NULL;
}

void deliver_drain(struct deliverer *all)
{
	struct delivery *d;
	struct delivery *next;

	all->draining = true;
	loop_timer_arm(all->patience, DRAIN_PATIENCE_MS);
	DL_FOREACH_SAFE(all->deliveries, d, next)
	delivery_nudge(d);
}

bool deliver_drained(const struct deliverer *all)
{
	return all->held == 0 && all->pending == 0;
}
