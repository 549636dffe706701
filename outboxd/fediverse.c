#include "outboxd/fediverse.h"

#include <utlist.h>

#include "common/base/clock.h"
#include "common/queue/lease.h"
#include "outboxd/fediverse_parts.h"

enum { TICK_MS = 1000, PATIENCE_MS = 5000 };

/* A look for domains that have something due. */
struct claim {
	struct fediverse *all;
	struct arena *arena;
	uint64_t epoch;
	int64_t room;
	int64_t started;
	uint64_t hints;
	bool unsure; /* the last one may have leased unseen; what is known: */
	const char **tokens;
	size_t token_count;
	struct rows claimed; /* of struct outbound_claimed */
	bool failed;
	struct err err;
};

/* ---- looking ---- */

static bool claim_do(struct claim *claim, struct conn *conn)
{
	AUTO(tx_end) struct tx *tx = tx_new(conn, claim->arena);

	tx_lazy(tx);
	tx_closing(tx);
	return outbound_claim(tx, claim->room, claim->all->def.self->id,
		   &claim->claimed, &claim->err) &&
	    tx_commit(tx, &claim->err);
}

static bool drop_unknown(struct claim *claim, struct conn *conn)
{
	AUTO(tx_end) struct tx *tx = tx_new(conn, claim->arena);

	tx_lazy(tx);
	return lease_drop(tx, LEASE_DOMAINS, claim->all->def.self->id,
		   claim->tokens, claim->token_count, &claim->err) &&
	    tx_commit(tx, &claim->err);
}

static void claim_run(void *item, void *state)
{
	struct claim *claim = item;
	struct outboxd_worker *worker = state;

	claim->failed = (claim->unsure && !drop_unknown(claim, worker->conn)) ||
	    !claim_do(claim, worker->conn);
}

/* A domain that we may not have: the lease ends by itself, or is dropped. */
static void domains_take(struct claim *claim)
{
	struct fediverse *all = claim->all;
	const struct outbound_claimed *claimed = claim->claimed.items;

	for (size_t i = 0; i < claim->claimed.count; i++) {
		struct fediverse_domain *d = fediverse_domain_new(
		    all, &claimed[i].lease, claim->started);

		if (claim->epoch != all->epoch) {
			fediverse_domain_lose(d);
			continue;
		}
		fediverse_step_spare(d, &claimed[i], claim->hints);
		fediverse_domain_go(d);
	}
}

static void claim_done(void *item)
{
	struct claim *claim = item;
	struct fediverse *all = claim->all;
	struct arena *arena = claim->arena;
	bool again = all->claim_again;

	all->pending--;
	all->claiming = false;
	all->claim_again = false;
	/* What an earlier epoch leased is not given back one by one. */
	all->unsure |= claim->failed || claim->epoch != all->epoch;
	if (claim->failed) {
		log_warn(
		    "activities.unlooked", F("err", v_text(claim->err.text)));
	} else {
		all->crowded = (int64_t)claim->claimed.count == claim->room;
		domains_take(claim);
	}
	arena_free(&arena);
	if (again)
		fediverse_look(all);
}

static void tokens_note(struct claim *claim)
{
	const struct fediverse_domain *d;

	claim->tokens =
	    arena_array(claim->arena, (size_t)claim->all->held, sizeof(char *));
	DL_FOREACH(claim->all->domains, d)
	claim->tokens[claim->token_count++] =
	    arena_text(claim->arena, d->lease.token);
}

static void claim_begin(struct fediverse *all)
{
	struct arena *arena = arena_new();
	struct claim *claim = ARENA_NEW(arena, struct claim);

	claim->all = all;
	claim->arena = arena;
	claim->epoch = all->epoch;
	claim->room = *all->def.at_once_max - all->held;
	claim->started = clock_steady_ms();
	claim->hints = all->hints;
	claim->unsure = all->unsure;
	if (claim->unsure)
		tokens_note(claim);
	if (!work_submit(all->def.pool, claim_run, claim_done, claim)) {
		arena_free(&arena);
		return;
	}
	all->unsure = false;
	all->claiming = true;
	all->pending++;
}

void fediverse_look(struct fediverse *all)
{
	if (!all->up || all->draining || !all->client)
		return;
	if (all->claiming)
		all->claim_again = true;
	else if (all->held >= *all->def.at_once_max)
		all->crowded = true;
	else
		claim_begin(all);
}

static void go_all(struct fediverse *all)
{
	struct fediverse_domain *d;
	struct fediverse_domain *next;

	DL_FOREACH_SAFE(all->domains, d, next)
	fediverse_domain_go(d);
}

void fediverse_wake(struct fediverse *all)
{
	struct fediverse_domain *d;

	all->hints++;
	DL_FOREACH(all->domains, d)
	d->dry = false;
	go_all(all);
	fediverse_look(all);
}

/* ---- timers ---- */

static void on_tick(void *arg)
{
	struct fediverse *all = arg;
	int64_t now = clock_steady_ms();
	struct fediverse_domain *d;
	struct fediverse_domain *next;

	DL_FOREACH_SAFE(all->domains, d, next)
	if (now >= d->lease_ends && !d->releasing)
		fediverse_domain_lose(d);
	go_all(all);
	fediverse_look(all);
	loop_timer_arm(all->tick, TICK_MS);
}

static void on_renew(void *arg)
{
	struct fediverse *all = arg;

	fediverse_renew(all);
	loop_timer_arm(all->renew, LEASE_RENEW_MS);
}

static void on_kick(void *arg)
{
	go_all(arg);
}

static void on_patience(void *arg)
{
	struct fediverse *all = arg;
	struct fediverse_domain *d;
	struct fediverse_domain *next;

	DL_FOREACH_SAFE(all->domains, d, next)
	fediverse_domain_abort(d);
}

/* ---- our lock ---- */

static void drop_run(void *item, void *state)
{
	struct fediverse *all = item;
	struct outboxd_worker *worker = state;
	AUTO(tx_end) struct tx *tx = outboxd_tx(worker);
	struct err err = { 0 };

	all->drop_failed =
	    !lease_drop(tx, LEASE_DOMAINS, all->def.self->id, NULL, 0, &err) ||
	    !tx_commit(tx, &err);
	if (all->drop_failed)
		log_warn("lease.undropped", F("err", v_text(err.text)));
}

static void drop_done(void *item)
{
	struct fediverse *all = item;

	all->pending--;
	all->up = all->locked;
	all->unsure |= all->drop_failed;
	fediverse_wake(all);
}

void fediverse_up(struct fediverse *all)
{
	all->locked = true;
	if (work_submit(all->def.pool, drop_run, drop_done, all))
		all->pending++;
}

void fediverse_down(struct fediverse *all)
{
	struct fediverse_domain *d;
	struct fediverse_domain *next;

	all->locked = false;
	all->up = false;
	all->epoch++;
	DL_FOREACH_SAFE(all->domains, d, next)
	fediverse_domain_lose(d);
}

/* ---- life ---- */

struct fediverse *fediverse_new(const struct fediverse_def *def)
{
	struct fediverse *all = calloc(1, sizeof(*all));

	if (!all)
		abort();
	all->def = *def;
	all->client = client_new(def->loop, &def->client);
	all->keys = fediverse_keys_new();
	all->probes = fediverse_probes_new(all);
	all->tick = loop_timer_new(def->loop, on_tick, all);
	all->renew = loop_timer_new(def->loop, on_renew, all);
	all->patience = loop_timer_new(def->loop, on_patience, all);
	all->kick = loop_timer_new(def->loop, on_kick, all);
	all->step = loop_timer_new(def->loop, fediverse_steps_begin, all);
	loop_timer_arm(all->tick, TICK_MS);
	loop_timer_arm(all->renew, LEASE_RENEW_MS);
	return all;
}

/* The client goes first: nothing may be sent by what workers still bring. */
void fediverse_abort(struct fediverse *all)
{
	struct client *client = all->client;

	all->draining = true;
	all->client = NULL;
	fediverse_down(all);
	client_free(&client);
}

void fediverse_free(struct fediverse **fediverse)
{
	struct fediverse *all = *fediverse;

	if (!all)
		return;
	assert(!all->client && !all->domains && all->pending == 0);
	fediverse_keys_free(&all->keys);
	fediverse_probes_free(&all->probes);
	loop_timer_free(&all->tick);
	loop_timer_free(&all->renew);
	loop_timer_free(&all->patience);
	loop_timer_free(&all->kick);
	loop_timer_free(&all->step);
	free(all);
	*fediverse = NULL;
}

void fediverse_drain(struct fediverse *all)
{
	all->draining = true;
	loop_timer_arm(all->patience, PATIENCE_MS);
	go_all(all);
}

bool fediverse_drained(const struct fediverse *all)
{
	return all->held == 0 && all->pending == 0;
}
