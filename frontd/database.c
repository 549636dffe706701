#include "common/base/clock.h"
#include "common/base/daemon.h"
#include "common/base/work.h"
#include "common/pg/schema.h"
#include "frontd/database.h"

enum {
	ASK_MS = 5000,
	BACKOFF_MIN_MS = 250,
	KNOWN_MS = 30000,
	STALLED_MS = 10000,
	STATEMENT_MS = 5000
};

enum state { STARTING, FITS, AWAY, STALLED };

struct database {
	struct loop *loop;
	struct database_def def;
	struct work_pool *pool; /* one thread */
	struct loop_timer *timer;
	enum state state;
	bool was_fit;
	bool asking;
	int64_t asked_ms;   /* steady */
	int64_t settled_ms; /* steady: the last outcome, of whatever kind */
	int64_t backoff_ms;
	/* the probe's, while it is asking */
	bool ok;
	struct err err;
};

struct probe {
	struct conn *conn;
	struct arena *arena;
};

/* ---- on its thread ---- */

static void *probe_begin(void *ctx)
{
	const struct database *database = ctx;
	struct probe *probe = calloc(1, sizeof(*probe));
	const struct conn_def def = {
		.conninfo = database->def.conninfo,
		.application = database->def.application,
		.signals_after = true,
		.statement_timeout_ms = STATEMENT_MS,
	};

	if (!probe)
		abort();
	probe->conn = conn_new(&def);
	probe->arena = arena_new();
	return probe;
}

static void probe_end(void *state)
{
	struct probe *probe = state;

	conn_free(&probe->conn);
	arena_free(&probe->arena);
	free(probe);
}

static void probe_run(void *item, void *state)
{
	struct database *database = item;
	struct probe *probe = state;
	AUTO(tx_end) struct tx *tx = tx_new(probe->conn, probe->arena);

	database->ok =
	    schema_check(tx, &database->err) && tx_commit(tx, &database->err);
	arena_reset(probe->arena);
}

/* ---- on the loop ---- */

static void change(struct database *database, enum state state)
{
	enum state before = database->state;

	database->state = state;
	if (state == FITS)
		daemon_status("serving");
	else if (state == AWAY)
		daemon_status(
		    "waiting for the database: %s", database->err.text);
	else
		daemon_status("the database does not answer");
	if (state == before)
		return;
	if (state == FITS)
		log_info("database.up");
	else
		log_warn("database.away",
		    F("err",
			v_text(
			    state == AWAY ? database->err.text : "no answer")));
}

static void probe_done(void *item)
{
	struct database *database = item;

	database->asking = false;
	database->settled_ms = clock_steady_ms();
	/* Before the first fit only one that is away is worth waiting for. */
	if (!database->ok && !database->was_fit &&
	    database->err.code != ERR_BUSY)
		daemon_refuse(&database->err);
	if (!database->ok) {
		change(database, AWAY);
		loop_timer_arm(database->timer, database->backoff_ms);
		database->backoff_ms = database->backoff_ms * 2 < ASK_MS
		    ? database->backoff_ms * 2
		    : ASK_MS;
		return;
	}
	database->backoff_ms = BACKOFF_MIN_MS;
	change(database, FITS);
	loop_timer_arm(database->timer, ASK_MS);
	if (!database->was_fit) {
		database->was_fit = true;
		database->def.fits(database->def.arg);
	}
}

static void on_timer(void *arg)
{
	struct database *database = arg;
	int64_t now_ms = clock_steady_ms();

	if (database->asking) {
		if (now_ms - database->asked_ms > STALLED_MS)
			change(database, STALLED);
	} else if (work_submit(
		       database->pool, probe_run, probe_done, database)) {
		database->asking = true;
		database->asked_ms = now_ms;
	}
	loop_timer_arm(database->timer, ASK_MS);
}

struct database *database_new(struct loop *loop, const struct database_def *def)
{
	struct database *database = calloc(1, sizeof(*database));
	const struct work_def pool = {
		.threads = 1,
		.queue_max = 1,
		.worker_begin = probe_begin,
		.worker_end = probe_end,
		.ctx = database,
	};

	if (!database)
		abort();
	database->loop = loop;
	database->def = *def;
	database->backoff_ms = BACKOFF_MIN_MS;
	database->settled_ms = clock_steady_ms();
	database->timer = loop_timer_new(loop, on_timer, database);
	database->pool = work_pool_new(loop, &pool);
	daemon_status("waiting for the database");
	on_timer(database);
	return database;
}

void database_free(struct database **database)
{
	if (!*database)
		return;
	work_pool_free(&(*database)->pool);
	loop_timer_free(&(*database)->timer);
	free(*database);
	*database = NULL;
}

bool database_is_known(const struct database *database)
{
	return database->state == STALLED ||
	    clock_steady_ms() - database->settled_ms < KNOWN_MS;
}

bool database_answers(const struct database *database)
{
	return database->state == FITS;
}
