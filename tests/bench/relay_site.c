#include "tests/bench/relay_site.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/federation/peer.h"
#include "common/pg/notify.h"

enum { EMPTY_MS = 10000 };

void must(bool good, const char *what, const struct err *err)
{
	if (good)
		return;
	fprintf(stderr, "bench_relay: %s: %s\n", what, err->text);
	exit(1);
}

static int by_value(const void *a, const void *b)
{
	double left = *(const double *)a;
	double right = *(const double *)b;

	return (left > right) - (left < right);
}

double median(double *values, size_t count)
{
	qsort(values, count, sizeof(double), by_value);
	return values[count / 2];
}

static void site_peer(struct bench *bench, int place)
{
	static const struct stmt add = { "bench_peer",
		"INSERT INTO federation_peers (id, origin, host, status, "
		"hmac_secret) VALUES ($1, $2, $3, 'active', $4)",
		SQL_NONE, 4 };
	AUTO(conn_free) struct conn *conn = test_db_conn(bench->conninfo);
	AUTO(tx_end) struct tx *tx = tx_new(conn, bench->arena);
	int64_t id = place + 1;
	const char *host = arena_printf(bench->arena, "p%d.localhost", place);
	const char *origin = arena_printf(
	    bench->arena, "http://%s:%d", host, relay_sink_port(bench->sink));
	struct err err = { 0 };

	bench->peers[place] = id;
	must(
	    sql_none(tx, &add, &err, v_id(id), v_text(origin), v_text(host),
		v_bytes(peer_seal(bench->arena, &bench->node, id, "secret"))) &&
		tx_commit(tx, &err),
	    "peer", &err);
}

void site_begin(struct bench *bench)
{
	struct err err = { 0 };

	bench->arena = arena_new();
	bench->conninfo = test_db_create();
	bench->sink = relay_sink_new();
	bench->origin = "http://bench.localhost:1";
	bench->key = arena_printf(
	    bench->arena, "/tmp/bench-relay-%d.key", (int)getpid());
	must(node_key_create(bench->key, &err) &&
		node_load(bench->arena, bench->origin, bench->key, &bench->node,
		    &err),
	    "node", &err);
	for (int i = 0; i < SITE_PEERS; i++)
		site_peer(bench, i);
}

void site_end(struct bench *bench)
{
	node_key_free(&bench->node.key);
	relay_sink_free(&bench->sink);
	test_db_drop(&bench->conninfo);
	unlink(bench->key);
	arena_free(&bench->arena);
}

void site_fill(struct bench *bench, int peers, int entries)
{
	test_db_script(bench->conninfo,
	    arena_printf(bench->arena,
		"SET postrider.signals = 'after';"
		"INSERT INTO federation_outbox (peer_id, context_type, "
		"context_id, event_type, entity_id, payload, expires_at) "
		"SELECT 1 + n %% %d, 'dm', 'c' || n %% 997, 'create', "
		"'m' || n, '\"message\":\"' || repeat('x', 450) || '\"', "
		"now() + interval '1 day' FROM generate_series(1, %d) n",
		peers, entries));
}

/* clang-format off */
static const struct stmt insert_entry = { "bench_insert",
	"INSERT INTO federation_outbox (peer_id, context_type, context_id, "
	"event_type, entity_id, payload, expires_at) VALUES ($1, 'dm', 'c', "
	"'create', $2, '\"message\":\"' || repeat('x', 450) || '\"', "
	"now() + interval '1 day')",
	SQL_NONE, 2 };
/* clang-format on */

void site_insert(struct conn *conn, struct arena *arena, int64_t peer,
    bool signals, int place)
{
	AUTO(tx_end) struct tx *tx = tx_new(conn, arena);
	struct err err = { 0 };

	must(sql_none(tx, &insert_entry, &err, v_id(peer),
		 v_text(arena_printf(arena, "m%d", place))),
	    "insert", &err);
	if (signals)
		signal_outbox_peer(tx, peer);
	must(tx_commit(tx, &err), "insert", &err);
}

void site_empty(struct bench *bench)
{
	test_db_script(bench->conninfo, "TRUNCATE federation_outbox");
}

static pid_t daemon_start(const struct bench *bench)
{
	const char *dir = getenv("POSTRIDER_BUILD_DIR");
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	setenv("POSTRIDER_ALLOW_ROOT", "1", 1);
	setenv("POSTRIDER_ORIGIN", bench->origin, 1);
	setenv("POSTRIDER_NODE_KEY_FILE", bench->key, 1);
	setenv("POSTRIDER_DATABASE", bench->conninfo, 1);
	setenv("POSTRIDER_ALLOW_PRIVATE_ADDRESSES", "on", 1);
	setenv("POSTRIDER_LOG_LEVEL", "error", 1);
	execl(
	    arena_printf(bench->arena, "%s/postrider-outboxd", dir ? dir : "."),
	    "postrider-outboxd", (char *)NULL);
	_exit(127);
}

/* Words of /proc/PID/stat behind the name; they count from 3. */
static int64_t stat_word(int64_t pid, int place)
{
	char path[64];
	char line[1024];
	FILE *file;
	const char *word;

	snprintf(path, sizeof(path), "/proc/%" PRId64 "/stat", pid);
	file = fopen(path, "r");
	if (!file)
		return 0;
	word = fgets(line, sizeof(line), file) ? strrchr(line, ')') : NULL;
	fclose(file);
	for (int i = 2; word && i < place; i++)
		word = strchr(word + 1, ' ');
	return word ? strtoll(word + 1, NULL, 10) : 0;
}

/* What backends took that have ended: the postmaster knows. 0: another
 * machine's. */
static double database_us(const struct bench *bench)
{
	enum { PARENT = 4, CHILDREN_USER = 16, CHILDREN_SYSTEM = 17 };
	static const struct stmt who = { "bench_backend",
		"SELECT pg_backend_pid()::bigint AS value", SQL_ONE, 0 };
	struct number {
		int64_t value;
	} backend;
	static const struct shape shape[] = {
		SHAPE(INT, struct number, value, NULL),
		SHAPE_END(struct number),
	};
	AUTO(arena_free) struct arena *arena = arena_new();
	AUTO(conn_free) struct conn *conn = test_db_conn(bench->conninfo);
	AUTO(tx_end) struct tx *tx = tx_new(conn, arena);
	struct err err = { 0 };
	int64_t postmaster;

	must(sql_one(tx, &who, shape, &backend, &err), "backend", &err);
	postmaster = stat_word(backend.value, PARENT);
	return (double)(stat_word(postmaster, CHILDREN_USER) +
		   stat_word(postmaster, CHILDREN_SYSTEM)) *
	    1e6 / (double)sysconf(_SC_CLK_TCK);
}

void site_start(struct bench *bench, int daemons)
{
	bench->database_before_us = database_us(bench);
	bench->daemon_count = daemons;
	for (int i = 0; i < daemons; i++)
		bench->daemons[i] = daemon_start(bench);
}

static double micros(struct timeval time)
{
	return (double)time.tv_sec * 1e6 + (double)time.tv_usec;
}

void site_stop(struct bench *bench)
{
	struct rusage use;

	bench->cpu_us = 0;
	for (int i = 0; i < bench->daemon_count; i++) {
		kill(bench->daemons[i], SIGTERM);
		wait4(bench->daemons[i], NULL, 0, &use);
		bench->cpu_us += micros(use.ru_utime) + micros(use.ru_stime);
	}
	bench->daemon_count = 0;
	while (test_db_number(bench->conninfo,
	    "SELECT count(*) AS n FROM pg_stat_activity WHERE datname = "
	    "current_database() AND application_name LIKE 'outboxd%'"))
		usleep(1000);
	bench->database_cpu_us = database_us(bench) - bench->database_before_us;
}

double site_drain(struct bench *bench, int peers, int entries, int daemons)
{
	double rate;

	site_fill(bench, peers, entries);
	relay_sink_reset(bench->sink, entries);
	site_start(bench, daemons);
	rate = relay_sink_rate(bench->sink);
	/* The sink has them before they are acknowledged; a stop waits for that
	 * less long than a busy machine may take. */
	if (!test_db_until(bench->conninfo,
		"SELECT NOT EXISTS (SELECT FROM federation_outbox) AS b",
		EMPTY_MS))
		fputs(
		    "bench_relay: the outbox does not become empty\n", stderr);
	site_stop(bench);
	return rate;
}
