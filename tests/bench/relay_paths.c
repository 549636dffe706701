#include "tests/bench/relay_paths.h"

#include <pthread.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/pg/notify.h"
#include "outboxd/drain.h"

enum {
	EVENTS = 2000,
	CLAIMS = 100,
	SHALLOW = 1000,
	DEEP = 1000000,
	CONNECTIONS = 16,
	INSERT_MS = 2000,
	CLAIM_WORKER = 1
};

/* ---- one event ---- */

/* Insert, commit, signal, claim, read, mark, sign, POST, received. */
void figure_latency(struct bench *bench)
{
	const struct conn_def def = {
		.conninfo = bench->conninfo,
		.application = "bench",
		.signals_after = true,
	};
	struct notifier *notifier = notifier_new(bench->conninfo, "bench");
	AUTO(conn_free) struct conn *conn = conn_new(&def);
	AUTO(arena_free) struct arena *arena = arena_new();
	double committed[EVENTS];
	double received[EVENTS];
	double commit;
	double whole;

	conn_notifier_set(conn, notifier);
	site_empty(bench);
	site_start(bench, 1);
	for (int i = 0; i < EVENTS; i++) {
		int64_t before;

		relay_sink_reset(bench->sink, 1);
		before = clock_steady_us();
		site_insert(conn, arena, bench->peers[i % SITE_PEERS], true, i);
		committed[i] = (double)(clock_steady_us() - before);
		received[i] =
		    (double)(relay_sink_last_us(bench->sink) - before);
		arena_reset(arena);
	}
	site_stop(bench);
	notifier_free(&notifier);
	commit = median(committed, EVENTS) / 1000;
	whole = median(received, EVENTS) / 1000;
	printf("figure=relay_insert_commit_p50 value=%.2f unit=ms\n", commit);
	printf("figure=relay_insert_received_p50 value=%.2f unit=ms "
	       "baseline=relay_insert_commit_p50 ratio=%.2f\n",
	    whole, whole / commit);
	printf("figure=relay_commit_received_p50 value=%.2f unit=ms "
	       "baseline=0.5 ratio=%.2f\n",
	    whole - commit, (whole - commit) / 0.5);
}

/* ---- a claim ---- */

static double claim_once(struct bench *bench, struct conn *conn)
{
	AUTO(arena_free) struct arena *arena = arena_new();
	const struct claim_def claim = { .worker = CLAIM_WORKER, .room = 1 };
	struct rows leases;
	struct drain *drain;
	struct err err = { 0 };
	int64_t before = clock_steady_us();
	double took;

	must(claim_peers(conn, arena, &claim, &leases, &err) &&
		leases.count == 1,
	    "claim", &err);
	took = (double)(clock_steady_us() - before);
	drain = drain_new(leases.items, &bench->node);
	must(drain_step(conn, drain, &err), "step", &err);
	must(drain_release(conn, drain, &err), "release", &err);
	drain_free(&drain);
	return took;
}

static double claim_cost(struct bench *bench, int peers, int depth)
{
	const struct conn_def def = {
		.conninfo = bench->conninfo,
		.application = "bench",
		.by_index = true, /* as outboxd */
	};
	AUTO(conn_free) struct conn *conn = conn_new(&def);
	double took[CLAIMS];

	site_empty(bench);
	site_fill(bench, peers, depth);
	test_db_script(bench->conninfo, "ANALYZE federation_outbox");
	for (int i = 0; i < CLAIMS; i++)
		took[i] = claim_once(bench, conn);
	return median(took, CLAIMS) / 1000;
}

/* A peer that is claimed has a window's worth of entries in both cases. */
void figure_claim_cost(struct bench *bench)
{
	double shallow = claim_cost(bench, SHALLOW / DRAIN_WINDOW, SHALLOW);
	double deep = claim_cost(bench, SITE_PEERS, DEEP);

	site_empty(bench);
	printf("figure=relay_claim_1e3 value=%.2f unit=ms\n", shallow);
	printf("figure=relay_claim_1e6 value=%.2f unit=ms "
	       "baseline=relay_claim_1e3 ratio=%.2f\n",
	    deep, deep / shallow);
}

/* ---- inserts ---- */

struct inserter {
	pthread_t thread;
	struct bench *bench;
	struct notifier *notifier; /* NULL: no signals */
	int64_t until;
	int64_t count;
};

static void *insert_all(void *arg)
{
	struct inserter *inserter = arg;
	const struct conn_def def = {
		.conninfo = inserter->bench->conninfo,
		.application = "bench",
		.signals_after = true,
	};
	AUTO(conn_free) struct conn *conn = conn_new(&def);
	AUTO(arena_free) struct arena *arena = arena_new();

	if (inserter->notifier)
		conn_notifier_set(conn, inserter->notifier);
	while (clock_steady_ms() < inserter->until) {
		site_insert(conn, arena,
		    inserter->bench->peers[inserter->count % SITE_PEERS],
		    inserter->notifier, (int)inserter->count);
		inserter->count++;
		arena_reset(arena);
	}
	return NULL;
}

static double insert_rate(struct bench *bench, bool signals)
{
	struct inserter inserters[CONNECTIONS];
	struct notifier *notifier =
	    signals ? notifier_new(bench->conninfo, "bench") : NULL;
	int64_t count = 0;

	for (int i = 0; i < CONNECTIONS; i++) {
		inserters[i] = (struct inserter){
			.bench = bench,
			.notifier = notifier,
			.until = clock_steady_ms() + INSERT_MS,
		};
		pthread_create(
		    &inserters[i].thread, NULL, insert_all, &inserters[i]);
	}
	for (int i = 0; i < CONNECTIONS; i++) {
		pthread_join(inserters[i].thread, NULL);
		count += inserters[i].count;
	}
	if (notifier)
		notifier_free(&notifier);
	site_empty(bench);
	return (double)count * 1000 / INSERT_MS;
}

void figure_inserts(struct bench *bench)
{
	enum { ROUNDS = 3 };
	double plain[ROUNDS];
	double signalled[ROUNDS];

	for (int i = 0; i < ROUNDS; i++) {
		plain[i] = insert_rate(bench, false);
		signalled[i] = insert_rate(bench, true);
	}
	printf("figure=relay_insert_plain_16 value=%.0f unit=tx/s\n",
	    median(plain, ROUNDS));
	printf("figure=relay_insert_signals_16 value=%.0f unit=tx/s "
	       "baseline=relay_insert_plain_16 ratio=%.2f\n",
	    signalled[ROUNDS / 2],
	    median(signalled, ROUNDS) / plain[ROUNDS / 2]);
}

/* ---- another queue ---- */

/* Of one run mean something for another only if they are the same. */
#define GRAPHILE_VERSION "0.17.3"
#define NODE_PG_VERSION "8.16.3"

static const char script[] =
    "import pg from 'pg';\n"
    "import { run, runMigrations } from 'graphile-worker';\n"
    "const N = 20000;\n"
    "const pgPool = new pg.Pool(JSON.parse(process.argv[2]));\n"
    "let done = 0, finish;\n"
    "const all = new Promise((resolve) => { finish = resolve; });\n"
    "const preset = { worker: { concurrentJobs: 24, completeJobBatchDelay: 0,\n"
    "  failJobBatchDelay: 0,\n"
    "  localQueue: { size: 500, refetchDelay: { durationMs: 10 } } } };\n"
    "const logger = undefined;\n"
    "await runMigrations({ pgPool, preset });\n"
    "await pgPool.query(`SELECT graphile_worker.add_job('t', "
    "json_build_object(\n"
    "  'n', n, 'message', repeat('x', 450))) FROM generate_series(1, $1) n`, "
    "[N]);\n"
    "const begin = process.hrtime.bigint();\n"
    "const runner = await run({ pgPool, preset, noHandleSignals: true, "
    "logger,\n"
    "  taskList: { t: async () => { if (++done === N) finish(); } } });\n"
    "await all;\n"
    "console.log('rate', N * 1e9 / Number(process.hrtime.bigint() - begin));\n"
    "await runner.stop();\n"
    "process.exit(0);\n";

static bool graphile_install(const char *dir, struct arena *arena)
{
	const char *path = arena_printf(arena, "%s/drain.mjs", dir);
	FILE *file = fopen(path, "w");

	if (!file)
		return false;
	fputs(script, file);
	fclose(file);
	return system(arena_printf(arena,
		   "cd %s && command -v npm >/dev/null && timeout 120 npm "
		   "install --silent --no-fund --no-audit "
		   "graphile-worker@" GRAPHILE_VERSION " pg@" NODE_PG_VERSION
		   " "
		   ">/dev/null 2>&1",
		   dir)) == 0;
}

/* libpq's keyword form as an object of node's client. */
static const char *node_config(struct arena *arena, const char *conninfo)
{
	char host[200] = "";
	char name[100] = "";
	const char *at = strstr(conninfo, "host=");
	const char *db = strstr(conninfo, "dbname=");

	if (at)
		sscanf(at, "host=%199s", host);
	if (db)
		sscanf(db, "dbname=%99s", name);
	return arena_printf(arena,
	    "{\"host\":\"%s\",\"database\":\"%s\",\"user\":\"postgres\","
	    "\"max\":26,\"options\":\"-c synchronous_commit=off\"}",
	    host, name);
}

static double graphile_rate(
    struct bench *bench, const char *dir, const char *conninfo)
{
	FILE *out = popen(arena_printf(bench->arena,
			      "cd %s && NO_LOG_SUCCESS=1 timeout 120 node "
			      "drain.mjs '%s' 2>%s/errors",
			      dir, node_config(bench->arena, conninfo), dir),
	    "r");
	char line[200];
	double rate = 0;

	while (out && fgets(line, sizeof(line), out))
		sscanf(line, "rate %lf", &rate);
	if (out)
		pclose(out);
	return rate;
}

void figure_graphile(struct bench *bench, double rate)
{
	char dir[] = "/tmp/bench-relay-XXXXXX";
	char *database;
	double theirs = 0;

	if (!mkdtemp(dir))
		return;
	if (!graphile_install(dir, bench->arena)) {
		puts("bench_relay: graphile-worker is skipped: npm or the "
		     "network is not there");
	} else {
		database = test_db_create_empty();
		theirs = graphile_rate(bench, dir, database);
		test_db_drop(&database);
	}
	if (theirs > 0)
		printf("figure=relay_graphile_worker value=%.0f unit=jobs/s "
		       "version=" GRAPHILE_VERSION "\n"
		       "figure=relay_drain_beside_graphile value=%.0f "
		       "unit=events/s baseline=relay_graphile_worker "
		       "ratio=%.1f\n",
		    theirs, rate, rate / theirs);
	if (system(arena_printf(bench->arena, "rm -rf %s", dir)) != 0)
		perror(dir);
}
