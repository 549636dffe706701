/*
 * bench_relay -- events a second that one real outboxd brings to a peer that
 * takes everything at once, next to the bare statement that acknowledges
 * fifty entries and reads the next fifty, on the same database in turns.
 *
 * The queue is filled before the clock starts; the drain is timed from the
 * first request to the moment the outbox is empty.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/federation/peer.h"
#include "tests/bench/relay_sink.h"
#include "tests/lib/test_db.h"

enum { ENTRIES = 100000, BATCH = 50, ROUNDS = 3, PEERS_MAX = 100 };

struct bench {
	struct arena *arena;
	char *conninfo;
	const char *key;
	const char *origin;
	struct relay_sink *sink;
	int64_t peers[PEERS_MAX];
	int peer_count;
};

struct acked {
	int64_t id;
	const char *payload;
};

/* clang-format off */
static const struct shape acked_shape[] = {
	SHAPE(ID,   struct acked, id, NULL),
	SHAPE(TEXT, struct acked, payload, NULL),
	SHAPE_END(struct acked),
};
/* clang-format on */

static void must(bool good, const char *what, const struct err *err)
{
	if (good)
		return;
	fprintf(stderr, "bench_relay: %s: %s\n", what, err->text);
	exit(1);
}

/* ---- the site ---- */

static void site_peer(struct bench *bench, const struct node *node, int place)
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
	must(sql_none(tx, &add, &err, v_id(id), v_text(origin), v_text(host),
		 v_bytes(peer_seal(bench->arena, node, id, "secret"))) &&
		tx_commit(tx, &err),
	    "peer", &err);
}

static void site_begin(struct bench *bench)
{
	struct node node;
	struct err err = { 0 };

	bench->arena = arena_new();
	bench->conninfo = test_db_create();
	bench->sink = relay_sink_new();
	bench->origin = "http://bench.localhost:1";
	bench->key = arena_printf(
	    bench->arena, "/tmp/bench-relay-%d.key", (int)getpid());
	must(node_key_create(bench->key, &err) &&
		node_load(bench->arena, bench->origin, bench->key, &node, &err),
	    "node", &err);
	for (int i = 0; i < PEERS_MAX; i++)
		site_peer(bench, &node, i);
	node_key_free(&node.key);
}

static void fill(struct bench *bench)
{
	test_db_script(bench->conninfo,
	    arena_printf(bench->arena,
		"INSERT INTO federation_outbox (peer_id, context_type, "
		"context_id, event_type, entity_id, payload, expires_at) "
		"SELECT 1 + n %% %d, 'dm', 'c' || n %% 997, 'create', "
		"'m' || n, '\"message\":\"' || repeat('x', 450) || '\"', "
		"now() + interval '1 day' FROM generate_series(1, %d) n",
		bench->peer_count, ENTRIES));
}

/* ---- the bare statement ---- */

static void bare_peer(struct conn *conn, int64_t peer)
{
	static const struct stmt sticky = { "bench_sticky",
		"WITH d AS (DELETE FROM federation_outbox WHERE peer_id = $1 "
		"AND id = ANY ($3::bigint[])) SELECT id, payload FROM "
		"federation_outbox WHERE peer_id = $1 AND id > $2 "
		"ORDER BY peer_id, id LIMIT 50",
		SQL_MANY, 3 };
	AUTO(arena_free) struct arena *arena = arena_new();
	int64_t ids[BATCH];
	size_t count = 0;
	int64_t cursor = 0;
	struct err err = { 0 };

	do {
		struct tx *tx = tx_new(conn, arena);
		struct rows rows;
		const struct acked *acked;

		tx_lazy(tx);
		must(sql_many(tx, &sticky, acked_shape, &rows, &err, v_id(peer),
			 v_int(cursor), v_ids(ids, count)) &&
			tx_commit(tx, &err),
		    "sticky", &err);
		acked = rows.items;
		count = rows.count;
		for (size_t i = 0; i < count; i++)
			ids[i] = acked[i].id;
		cursor = count > 0 ? ids[count - 1] : cursor;
		tx_end(&tx);
		arena_reset(arena);
	} while (count > 0);
}

static double bare(struct bench *bench)
{
	AUTO(conn_free) struct conn *conn = test_db_conn(bench->conninfo);
	int64_t before;

	fill(bench);
	before = clock_steady_us();
	for (int i = 0; i < bench->peer_count; i++)
		bare_peer(conn, bench->peers[i]);
	return ENTRIES * 1e6 / (double)(clock_steady_us() - before);
}

/* ---- the daemon ---- */

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

static double drain(struct bench *bench)
{
	pid_t pid;
	double rate;

	fill(bench);
	relay_sink_reset(bench->sink, ENTRIES);
	pid = daemon_start(bench);
	rate = relay_sink_rate(bench->sink);
	kill(pid, SIGTERM);
	waitpid(pid, NULL, 0);
	if (test_db_number(bench->conninfo,
		"SELECT count(*) AS n FROM federation_outbox") != 0)
		fprintf(stderr, "bench_relay: the outbox is not empty\n");
	return rate;
}

static int by_value(const void *a, const void *b)
{
	double left = *(const double *)a;
	double right = *(const double *)b;

	return (left > right) - (left < right);
}

static void compare(struct bench *bench, int peers)
{
	double bares[ROUNDS];
	double drains[ROUNDS];

	bench->peer_count = peers;
	for (int i = 0; i < ROUNDS; i++) {
		bares[i] = bare(bench);
		drains[i] = drain(bench);
	}
	qsort(bares, ROUNDS, sizeof(double), by_value);
	qsort(drains, ROUNDS, sizeof(double), by_value);
	printf("figure=relay_sticky_%d_peers value=%.0f unit=events/s\n", peers,
	    bares[ROUNDS / 2]);
	printf("figure=relay_drain_%d_peers value=%.0f unit=events/s "
	       "baseline=relay_sticky_%d_peers ratio=%.2f\n",
	    peers, drains[ROUNDS / 2], peers,
	    drains[ROUNDS / 2] / bares[ROUNDS / 2]);
	fflush(stdout);
}

int main(void)
{
	struct bench bench = { 0 };

	if (!test_db_available()) {
		puts("bench_relay: POSTRIDER_TEST_DB is not set");
		return 0;
	}
	site_begin(&bench);
	compare(&bench, 1);
	compare(&bench, PEERS_MAX);
	relay_sink_free(&bench.sink);
	test_db_drop(&bench.conninfo);
	unlink(bench.key);
	arena_free(&bench.arena);
	return 0;
}
