#include "tests/chaos/faults.h"

#include <signal.h>

#include "common/base/clock.h"
#include "common/pg/sql.h"
#include "tests/lib/test_db.h"

enum fault_kind {
	FAULT_CRASH_NODE,
	FAULT_KILL,
	FAULT_STOP,
	FAULT_BACKENDS,
	FAULT_PG_FAST,
	FAULT_PG_CRASH,
	FAULT_IDLE,
	FAULT_KINDS
};

enum { RETRY_EVERY_MS = 2000 };

#define BIT(kind) (1u << (kind))

/* clang-format off */
static const struct scenario scenarios[] = {
	{ "crash_recovery",   BIT(FAULT_CRASH_NODE), 1500, 0 },
	{ "postgres_restart", BIT(FAULT_PG_FAST) | BIT(FAULT_PG_CRASH), 2500, 0 },
	{ "repeated_kills",   BIT(FAULT_KILL) | BIT(FAULT_STOP), 200, 0 },
	{ "backend_kill",     BIT(FAULT_BACKENDS), 200, 0 },
	{ "pool_exhaustion",  BIT(FAULT_IDLE) | BIT(FAULT_BACKENDS), 500, 0 },
	{ "mixed",            BIT(FAULT_KINDS) - 1, 500, 50 },
	{ NULL, 0, 0, 0 },
};

/* How often each comes, next to the others of its scenario. */
static const int weights[FAULT_KINDS] = {
	[FAULT_CRASH_NODE] = 2,
	[FAULT_KILL] = 8,
	[FAULT_STOP] = 4,
	[FAULT_BACKENDS] = 8,
	[FAULT_PG_FAST] = 1,
	[FAULT_PG_CRASH] = 1,
	[FAULT_IDLE] = 1,
};
/* clang-format on */

const struct scenario *scenario_at(size_t place)
{
	return scenarios[place].name ? &scenarios[place] : NULL;
}

const struct scenario *scenario_named(const char *name)
{
	for (size_t i = 0; scenarios[i].name; i++)
		if (strcmp(scenarios[i].name, name) == 0)
			return &scenarios[i];
	return NULL;
}

static struct side *side_draw(struct faults *faults)
{
	return &faults->site
		    ->sides[dice_below(&faults->dice, faults->site->count)];
}

static struct chaos_daemon *daemon_draw(struct faults *faults)
{
	struct side *side = side_draw(faults);

	return &side->daemons[dice_below(&faults->dice, side->daemon_count)];
}

/* ---- each fault ---- */

static void crash_node(struct faults *faults)
{
	struct side *side = side_draw(faults);
	int after_ms = dice_between(&faults->dice, 50, 800);

	for (int i = 0; i < side->daemon_count; i++)
		daemon_kill(&side->daemons[i], after_ms);
}

static void terminate_backends(struct faults *faults)
{
	AUTO(arena_free) struct arena *arena = arena_new();
	const char *query = arena_printf(arena,
	    "SELECT count(pg_terminate_backend(pid)) AS n FROM ("
	    "SELECT pid FROM pg_stat_activity"
	    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
	    " AND usename LIKE 'postrider\\_%%'"
	    " AND application_name <> 'test'"
	    " ORDER BY md5(pid::text || '%d') LIMIT %d) AS chosen",
	    dice_below(&faults->dice, 1000), dice_between(&faults->dice, 1, 8));

	side_number(side_draw(faults), query);
}

static bool restart_cluster(struct faults *faults, int how, struct err *err)
{
	cluster_stop(&faults->site->cluster, how);
	pause_ms(dice_between(&faults->dice, 50, 1000));
	return cluster_start(&faults->site->cluster, err);
}

static void idle_end(struct faults *faults)
{
	while (faults->idle_count > 0)
		conn_free(&faults->idle[--faults->idle_count]);
}

/* Connections of a daemon's role that do nothing. */
static void idle_begin(struct faults *faults)
{
	struct arena *arena = faults->site->arena;
	const char *conninfo = test_db_as(
	    arena, faults->site->sides[0].database, "postrider_frontd");
	struct err err = { 0 };

	if (faults->idle_count > 0)
		return;
	while (faults->idle_count < IDLE_CONNECTIONS) {
		struct conn *conn = test_db_conn(conninfo);

		faults->idle[faults->idle_count++] = conn;
		if (!conn_script(conn, "SELECT 1", &err))
			break;
	}
	faults->idle_until =
	    clock_steady_ms() + dice_between(&faults->dice, 1000, 5000);
}

static bool is_kind(const struct faults *faults, int kind)
{
	return (faults->scenario->kinds & BIT(kind)) != 0;
}

static enum fault_kind kind_draw(struct faults *faults)
{
	int sum = 0;
	int drawn;
	int kind = 0;

	for (int k = 0; k < FAULT_KINDS; k++)
		sum += is_kind(faults, k) ? weights[k] : 0;
	drawn = dice_below(&faults->dice, sum);
	for (; kind < FAULT_KINDS - 1; kind++) {
		drawn -= is_kind(faults, kind) ? weights[kind] : 0;
		if (drawn < 0)
			break;
	}
	return (enum fault_kind)kind;
}

static bool inject(struct faults *faults, struct err *err)
{
	struct dice *dice = &faults->dice;

	faults->done++;
	switch (kind_draw(faults)) {
	case FAULT_CRASH_NODE:
		crash_node(faults);
		return true;
	case FAULT_KILL:
		daemon_kill(daemon_draw(faults), dice_between(dice, 20, 500));
		return true;
	case FAULT_STOP:
		daemon_stop(daemon_draw(faults), dice_between(dice, 100, 4000));
		return true;
	case FAULT_BACKENDS:
		terminate_backends(faults);
		return true;
	case FAULT_PG_FAST:
		return restart_cluster(faults, SIGINT, err);
	case FAULT_PG_CRASH:
		return restart_cluster(faults, SIGQUIT, err);
	case FAULT_IDLE:
		idle_begin(faults);
		return true;
	case FAULT_KINDS:
		break;
	}
	return true;
}

/* ---- */

void faults_retry(const struct site *site)
{
	for (int s = 0; s < site->count; s++)
		side_number(&site->sides[s],
		    "SELECT entries AS n FROM ops.retry_now(reason => "
		    "'chaos')");
}

void faults_begin(struct faults *faults, struct site *site,
    const struct scenario *scenario, const struct options *options)
{
	int64_t now = clock_steady_ms();

	*faults = (struct faults){
		.site = site,
		.scenario = scenario,
		.dice = { options->seed ^ (uint64_t)scenario->kinds << 32 },
		.next_at = now + scenario->gap_ms / 2,
		.retry_at = now + RETRY_EVERY_MS,
		.retry_every_ms = RETRY_EVERY_MS,
		.operator_retries = options->operator_retries,
	};
	for (int s = 0; s < site->count; s++)
		proxy_set_faults(site->sides[s].proxy, scenario->permille);
}

bool faults_turn(struct faults *faults, struct err *err)
{
	int64_t now = clock_steady_ms();

	if (now >= faults->idle_until)
		idle_end(faults);
	if (faults->operator_retries && now >= faults->retry_at) {
		faults->retry_at = now + faults->retry_every_ms;
		faults_retry(faults->site);
	}
	if (now < faults->next_at)
		return true;
	if (!inject(faults, err))
		return false;
	faults->next_at = clock_steady_ms() +
	    dice_between(&faults->dice, faults->scenario->gap_ms / 3,
		faults->scenario->gap_ms * 5 / 3);
	return true;
}

void faults_end(struct faults *faults)
{
	idle_end(faults);
	site_mend(faults->site);
}
