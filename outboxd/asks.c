#include "outboxd/asks.h"

#include "common/base/clock.h"
#include "common/pg/notify.h"
#include "outboxd/asks.sql.h"
#include "outboxd/asks_run.h"
#include "outboxd/figures.h"

enum { RETRY_MS = 100, TRIES_MAX = 50 };

struct asks {
	struct asks_def def;
	struct loop_timer *timer;
	struct asks_run *ready;	  /* go on at their time, by the timer */
	struct asks_run *claimed; /* the claiming job's */
	size_t running;
	size_t room;
	int64_t reap_ms; /* steady: not before; the claiming job's */
	bool claiming;
	bool again; /* somebody woke us while claiming */
	bool draining;
};

/* ---- runs: every completion ends here, the timer goes on ---- */

static void timer_set(struct asks *asks)
{
	int64_t first_ms = INT64_MAX;

	for (struct asks_run *run = asks->ready; run; run = run->next)
		if (run->due_ms < first_ms)
			first_ms = run->due_ms;
	if (first_ms < INT64_MAX)
		loop_timer_arm(asks->timer, first_ms - clock_steady_ms());
}

static void run_ready(struct asks_run *run, int64_t wait_ms)
{
	struct asks *asks = run->asks;

	run->due_ms = clock_steady_ms() + wait_ms;
	run->next = asks->ready;
	asks->ready = run;
	timer_set(asks);
}

static void job_log(const struct asks_run *run, const struct err *err)
{
	log_warn("ask.not_written", F("peer", v_text(run->ask.origin)),
	    F("attempt", v_int(run->tries)), F("err", v_text(err->text)));
}

static void keep_run(void *item, void *state)
{
	struct asks_run *run = item;
	struct outboxd_worker *worker = state;
	struct err err;

	run->ok = asks_run_keep(run, worker->conn, &err);
	if (!run->ok)
		job_log(run, &err);
}

static void keep_done(void *item)
{
	struct asks_run *run = item;

	run->kept_done = run->ok;
	run->tries += !run->ok;
	run_ready(run, run->ok ? 0 : RETRY_MS);
}

static void prepare_run(void *item, void *state)
{
	struct asks_run *run = item;
	struct outboxd_worker *worker = state;

	asks_run_prepare(run, worker->conn, run->asks->def.node);
}

static void prepare_done(void *item)
{
	run_ready(item, 0);
}

static void write_run(void *item, void *state)
{
	struct asks_run *run = item;
	struct outboxd_worker *worker = state;
	struct err err;

	run->ok = asks_run_write(run, worker->conn, &err);
	if (!run->ok)
		job_log(run, &err);
}

/* What can't be written down is forgotten: it counts as unknown. */
static void write_done(void *item)
{
	struct asks_run *run = item;
	struct asks *asks = run->asks;

	if (!run->ok && ++run->tries < TRIES_MAX) {
		run_ready(run, RETRY_MS);
		return;
	}
	figure_asked(run->ask.kind, run->ask.outcome);
	asks->running--;
	asks->again = true;
	loop_timer_arm(asks->timer, 0);
	asks_run_free(&run);
}

static void answered(void *arg, const struct client_result *result)
{
	struct asks_run *run = arg;

	asks_run_answered(run, result);
	metric_observe_us(&figure_ask_duration,
	    metric_place(&figure_ask_duration, run->ask.kind),
	    result->took_ms * 1000);
	log_info("ask.answered", F("peer", v_text(run->ask.origin)),
	    F("class", v_text(run->ask.kind)), F("code", v_int(result->status)),
	    F("ms", v_int(result->took_ms)), F("reason", v_text(result->text)));
	run_ready(run, 0);
}

static void run_submit(
    struct asks_run *run, void (*job)(void *, void *), void (*done)(void *))
{
	if (!work_submit(run->asks->def.pool, job, done, run))
		run_ready(run, RETRY_MS);
}

static void run_go_on(struct asks_run *run)
{
	struct asks *asks = run->asks;

	if (run->step == ASKS_AGAIN) {
		run_submit(run, prepare_run, prepare_done);
		return;
	}
	if (run->step != ASKS_DONE && run->kept && !run->kept_done) {
		run_submit(run, keep_run, keep_done);
		return;
	}
	if (run->step != ASKS_DONE && asks_run_request(run, asks->def.node)) {
		client_send(asks->def.client, &run->request, answered, run);
		return;
	}
	run_submit(run, write_run, write_done);
}

/* ---- claiming ---- */

struct reaped {
	int64_t id;
};

static const struct shape reaped_shape[] = {
	SHAPE(ID, struct reaped, id, NULL),
	SHAPE_END(struct reaped),
};

/* What dead workers had claimed holds places, and somebody may wait for it. */
static bool reap(struct asks *asks, struct tx *tx, struct err *err)
{
	struct rows rows;
	const struct reaped *reaped;

	if (clock_steady_ms() < asks->reap_ms)
		return true;
	asks->reap_ms = clock_steady_ms() + WORKER_REAP_MS;
	if (!sql_many(tx, &SQL_asks_reap, reaped_shape, &rows, err))
		return false;
	reaped = rows.items;
	for (size_t i = 0; i < rows.count; i++)
		signal_reply(tx, reaped[i].id);
	return true;
}

static bool claim(struct asks *asks, struct conn *conn, struct arena *arena,
    struct rows *rows)
{
	AUTO(tx_end) struct tx *tx = tx_new(conn, arena);
	struct err err;

	if (reap(asks, tx, &err) &&
	    sql_none(
		tx, &SQL_asks_drop_ephemeral, &err, v_int(ASKS_PER_PEER)) &&
	    sql_many(tx, &SQL_asks_claim, ask_shape, rows, &err,
		v_int((int64_t)asks->room), v_int(ASKS_PER_PEER),
		v_id(asks->def.self->id), v_int(ASKS_OF_STRANGERS)) &&
	    tx_commit(tx, &err))
		return true;
	log_warn("ask.not_claimed", F("err", v_text(err.text)));
	return false;
}

static void claim_run(void *item, void *state)
{
	struct asks *asks = item;
	struct outboxd_worker *worker = state;
	struct rows rows;
	const struct ask *found;

	if (claim(asks, worker->conn, worker->arena, &rows)) {
		found = rows.items;
		for (size_t i = 0; i < rows.count; i++) {
			struct asks_run *run = asks_run_new(asks, &found[i]);

			asks_run_prepare(run, worker->conn, asks->def.node);
			run->next = asks->claimed;
			asks->claimed = run;
		}
	}
	arena_reset(worker->arena);
}

static void claim_done(void *item)
{
	struct asks *asks = item;

	asks->claiming = false;
	while (asks->claimed) {
		struct asks_run *run = asks->claimed;

		asks->claimed = run->next;
		asks->running++;
		run_ready(run, 0);
	}
	if (asks->again)
		loop_timer_arm(asks->timer, 0);
}

void asks_wake(struct asks *asks)
{
	asks->again = true;
	if (asks->claiming || asks->draining || asks->running >= ASKS_AT_ONCE)
		return;
	asks->again = false;
	asks->room = ASKS_AT_ONCE - asks->running;
	asks->claiming =
	    work_submit(asks->def.pool, claim_run, claim_done, asks);
}

static void asks_tick(void *arg)
{
	struct asks *asks = arg;
	struct asks_run *ready = asks->ready;
	int64_t now_ms = clock_steady_ms();

	asks->ready = NULL;
	while (ready) {
		struct asks_run *run = ready;

		ready = run->next;
		if (run->due_ms <= now_ms)
			run_go_on(run);
		else
			run_ready(run, run->due_ms - now_ms);
	}
	if (asks->again)
		asks_wake(asks);
}

/* ---- from outside ---- */

void asks_drain(struct asks *asks)
{
	asks->draining = true;
}

bool asks_drained(const struct asks *asks)
{
	return !asks->claiming && asks->running == 0;
}

size_t asks_running(const struct asks *asks)
{
	return asks->running;
}

struct asks *asks_new(const struct asks_def *def)
{
	struct asks *asks = calloc(1, sizeof(*asks));

	if (!asks)
		abort();
	asks->def = *def;
	asks->timer = loop_timer_new(def->loop, asks_tick, asks);
	return asks;
}

void asks_free(struct asks **asks)
{
	if (!*asks)
		return;
	while ((*asks)->ready) {
		struct asks_run *run = (*asks)->ready;

		(*asks)->ready = run->next;
		asks_run_free(&run);
	}
	loop_timer_free(&(*asks)->timer);
	free(*asks);
	*asks = NULL;
}
