#include "janitord/sweep.h"

#include "common/base/log.h"
#include "janitord/figures.h"
#include "janitord/janitord.h"
#include "janitord/sweep.sql.h"

enum {
	MINUTE_MS = 60 * 1000,
	HOUR_MS = 60 * MINUTE_MS,
	DAY_MS = 24 * HOUR_MS,
	BATCHES_MAX = 500, /* of a task in one round: the others wait */
	SELDOM = 30	   /* rounds between looks at what only grows old */
};

/* One batch of a task: what it did and where it goes on. */
struct batch {
	const struct task *task;
	int64_t age_ms;
	int64_t cursor;
	int64_t gone;
	bool more;
};

struct task {
	const char *table;
	bool (*run)(struct tx *tx, struct batch *batch, struct err *err);
	const struct stmt *stmt;
	int64_t age_ms;
	const int64_t *setting; /* instead of age_ms */
	int every;		/* rounds */
};

/* ---- kinds of tasks ---- */

/* By age, an index leads to what is old. */
static bool purge(struct tx *tx, struct batch *batch, struct err *err)
{
	if (!sql_count(tx, batch->task->stmt, &batch->gone, err,
		v_int(SWEEP_BATCH), v_span(batch->age_ms)))
		return false;
	batch->more = batch->gone >= SWEEP_BATCH;
	return true;
}

static const struct shape walk_shape[] = {
	SHAPE(INT, struct batch, gone, NULL),
	SHAPE(INT, struct batch, cursor, NULL),
	SHAPE(BOOL, struct batch, more, NULL),
	SHAPE_END(struct batch),
};

/* By owner, some owners at a time. */
static bool walk(struct tx *tx, struct batch *batch, struct err *err)
{
	struct batch next = { 0 };

	if (!sql_one(tx, batch->task->stmt, walk_shape, &next, err,
		v_int(batch->cursor), v_int(SWEEP_BATCH),
		v_span(batch->age_ms)))
		return false;
	batch->gone = next.gone;
	batch->cursor = next.cursor;
	batch->more = next.more;
	return true;
}

struct expiry {
	int64_t peer;
	const char *origin;
	int64_t expired;
	int64_t gone;
};

static const struct shape next_shape[] = {
	SHAPE(ID, struct expiry, peer, NULL),
	SHAPE(TEXT, struct expiry, origin, NULL),
	SHAPE_END(struct expiry),
};

static const struct shape expired_shape[] = {
	SHAPE(INT, struct expiry, expired, NULL),
	SHAPE(INT, struct expiry, gone, NULL),
	SHAPE_END(struct expiry),
};

/* One peer's oldest entries. */
static bool expire(struct tx *tx, struct batch *batch, struct err *err)
{
	struct expiry next = { 0 };
	struct expiry done = { 0 };
	bool found;

	if (!sql_opt(tx, &SQL_expire_next, next_shape, &next, &found, err,
		v_int(batch->cursor)))
		return false;
	batch->more = found;
	if (!found)
		return true;
	if (!sql_one(tx, &SQL_expire_batch, expired_shape, &done, err,
		v_id(next.peer), v_int(SWEEP_BATCH)))
		return false;
	batch->gone = done.gone;
	batch->cursor = next.peer - (done.expired >= SWEEP_BATCH);
	if (batch->gone > 0)
		log_warn("outbox.expired", F("peer", v_text(next.origin)),
		    F("events", v_int(batch->gone)));
	return true;
}

/* clang-format off */
static const struct task tasks[] = {
	{ "nonces",              purge,  &SQL_sweep_nonces,      30 * MINUTE_MS, NULL, 1 },
	{ "s2s_requests",        purge,  &SQL_sweep_requests,    10 * MINUTE_MS, NULL, 1 },
	{ "sessions",            purge,  &SQL_sweep_sessions,    0, NULL, 1 },
	{ "message_tombstones",  purge,  &SQL_sweep_tombstones,  DAY_MS, NULL, 1 },
	{ "reaction_tombstones", purge,  &SQL_sweep_reaction_tombstones, DAY_MS, NULL, 1 },
	{ "dm_departures",       purge,  &SQL_sweep_departures,  DAY_MS, NULL, 1 },
	{ "events_heard",        purge,  &SQL_sweep_heard,       DAY_MS, NULL, 1 },
	{ "dm_messages",         purge,  &SQL_sweep_group_messages, DAY_MS, NULL, 1 },
	{ "dm_channels",         purge,  &SQL_sweep_groups,      DAY_MS, NULL, 1 },
	{ "typing_told",         purge,  &SQL_sweep_typing,      HOUR_MS, NULL, 1 },
	{ "dead_letters",        purge,  &SQL_sweep_dead_letters, 0, &janitord_conf.dead_letters_kept, 1 },
	{ "fediverse_outbound_queue", purge, &SQL_sweep_activities_delivered, 7 * (int64_t)DAY_MS, NULL, 1 },
	{ "fediverse_outbound_queue", purge, &SQL_sweep_activities_ended, 0, &janitord_conf.dead_letters_kept, 1 },
	{ "peer_rates",          purge,  &SQL_sweep_rates,       HOUR_MS, NULL, 1 },
	{ "fediverse_keys",      purge,  &SQL_sweep_keys,        30 * (int64_t)DAY_MS, NULL, 1 },
	{ "fediverse_keys",      purge,  &SQL_sweep_missing_keys, HOUR_MS, NULL, 1 },
	{ "fediverse_fetches",   purge,  &SQL_sweep_fetches,     HOUR_MS, NULL, 1 },
	{ "fediverse_moved_inboxes", purge, &SQL_sweep_moved_inboxes, 30 * (int64_t)DAY_MS, NULL, 1 },
	{ "fediverse_inbound",   purge,  &SQL_sweep_inbound,     30 * (int64_t)DAY_MS, NULL, 1 },
	{ "federation_outbox",   expire, NULL,                   0, NULL, 1 },
	{ "federation_mutation_log", walk, &SQL_sweep_mutation_log, 90 * (int64_t)DAY_MS, NULL, 1 },
	{ "conversation_events", walk,   &SQL_sweep_conversation_events, 0, &janitord_conf.events_kept, SELDOM },
	{ "user_events",         walk,   &SQL_sweep_user_events, 0, &janitord_conf.events_kept, SELDOM },
};
/* clang-format on */

/* ---- rounds ---- */

struct sweeper {
	struct loop *loop;
	struct work_pool *pool;
	struct loop_timer *timer;
	bool on;
	bool busy;
	int64_t round;
	size_t place; /* in tasks */
	int64_t cursors[COUNT(tasks)];
	int batches;  /* of this task in this round */
	int64_t rows; /* likewise */
	/* the batch under way */
	struct batch batch;
	bool failed;
	struct err err;
};

static void batch_run(void *item, void *state)
{
	struct sweeper *sweeper = item;
	struct janitord_worker *worker = state;
	AUTO(tx_end) struct tx *tx = janitord_tx(worker);
	struct batch *batch = &sweeper->batch;

	sweeper->err = (struct err){ 0 };
	tx_lazy(tx);
	sweeper->failed = !batch->task->run(tx, batch, &sweeper->err) ||
	    !tx_commit(tx, &sweeper->err);
}

static void round_end(struct sweeper *sweeper)
{
	sweeper->busy = false;
	sweeper->place = 0;
	sweeper->round++;
	if (sweeper->on)
		loop_timer_arm(sweeper->timer, janitord_conf.sweep_every);
}

static void batch_done(void *item);

static void batch_next(struct sweeper *sweeper)
{
	const struct task *task;

	while (sweeper->place < COUNT(tasks) &&
	    sweeper->round % tasks[sweeper->place].every != 0)
		sweeper->place++;
	if (!sweeper->on || sweeper->place == COUNT(tasks)) {
		round_end(sweeper);
		return;
	}
	task = &tasks[sweeper->place];
	sweeper->batch = (struct batch){
		.task = task,
		.age_ms = task->setting ? *task->setting : task->age_ms,
		.cursor = sweeper->cursors[sweeper->place],
	};
	if (!work_submit(sweeper->pool, batch_run, batch_done, sweeper))
		round_end(sweeper);
}

static void task_end(struct sweeper *sweeper)
{
	if (sweeper->rows > 0)
		log_info("rows.purged",
		    F("table", v_text(tasks[sweeper->place].table)),
		    F("events", v_int(sweeper->rows)));
	sweeper->rows = 0;
	sweeper->batches = 0;
	sweeper->place++;
}

static void batch_count(struct sweeper *sweeper)
{
	const struct batch *batch = &sweeper->batch;

	sweeper->cursors[sweeper->place] = batch->more ? batch->cursor : 0;
	sweeper->rows += batch->gone;
	sweeper->batches++;
	metric_add(&figure_purged,
	    metric_place(&figure_purged, batch->task->table), batch->gone);
	if (batch->task->run == expire)
		metric_add(&figure_removed, 0, batch->gone);
}

static void batch_done(void *item)
{
	struct sweeper *sweeper = item;

	if (sweeper->failed) {
		log_warn("sweep.failed",
		    F("table", v_text(sweeper->batch.task->table)),
		    F("err", v_text(sweeper->err.text)));
		task_end(sweeper);
		batch_next(sweeper);
		return;
	}
	batch_count(sweeper);
	if (!sweeper->batch.more || sweeper->batches >= BATCHES_MAX)
		task_end(sweeper);
	batch_next(sweeper);
}

static void on_timer(void *arg)
{
	struct sweeper *sweeper = arg;

	if (sweeper->busy || !sweeper->on)
		return;
	sweeper->busy = true;
	batch_next(sweeper);
}

void sweeper_run(struct sweeper *sweeper, bool on)
{
	sweeper->on = on;
	if (on)
		loop_timer_arm(sweeper->timer, 0);
	else
		loop_timer_disarm(sweeper->timer);
}

/* ---- life ---- */

struct sweeper *sweeper_new(struct loop *loop, struct work_pool *pool)
{
	struct sweeper *sweeper = calloc(1, sizeof(*sweeper));

	if (!sweeper)
		abort();
	sweeper->loop = loop;
	sweeper->pool = pool;
	sweeper->timer = loop_timer_new(loop, on_timer, sweeper);
	return sweeper;
}

void sweeper_free(struct sweeper **sweeper)
{
	if (!*sweeper)
		return;
	loop_timer_free(&(*sweeper)->timer);
	free(*sweeper);
	*sweeper = NULL;
}
