/*
 * bench_relay -- events a second that real outboxd bring to peers that take
 * everything at once, next to the bare statement that acknowledges fifty
 * entries and reads the next fifty, on the same database in turns; then what
 * relay_paths.h names. One line a figure.
 *
 *     bench_relay [SECONDS [ENTRIES]] | latency
 *
 * SECONDS: how long a snapshot is held open (5); ENTRIES: 100,000; latency:
 * only how long one event takes.
 *
 * The queue is filled before the clock starts; the drain is timed from the
 * first request to the last event. Nothing else should run.
 */
#include "common/base/clock.h"
#include "tests/bench/relay_others.h"
#include "tests/bench/relay_paths.h"

enum { ENTRIES = 100000, BATCH = 50, ROUNDS = 3, HELD_S = 5 };

struct sizes {
	int seconds;
	int entries;
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

static double bare(struct bench *bench, int peers, int entries)
{
	AUTO(conn_free) struct conn *conn = test_db_conn(bench->conninfo);
	int64_t before;

	site_fill(bench, peers, entries);
	/* Planned for what is there: else ANY may be a filter of all of it. */
	test_db_script(bench->conninfo, "ANALYZE federation_outbox");
	before = clock_steady_us();
	for (int i = 0; i < peers; i++)
		bare_peer(conn, bench->peers[i]);
	return entries * 1e6 / (double)(clock_steady_us() - before);
}

/* ---- drains ---- */

/* The median rate of one outboxd. */
static double compare(struct bench *bench, int peers, int entries)
{
	double bares[ROUNDS];
	double drains[SITE_DAEMONS_MAX][ROUNDS];
	double cpu[ROUNDS];
	double ceiling;

	for (int i = 0; i < ROUNDS; i++) {
		bares[i] = bare(bench, peers, entries);
		drains[0][i] = site_drain(bench, peers, entries, 1);
		cpu[i] = bench->cpu_us / entries;
		drains[1][i] = site_drain(bench, peers, entries, 2);
	}
	ceiling = median(bares, ROUNDS);
	printf("figure=relay_sticky_%d_peers value=%.0f unit=events/s\n", peers,
	    ceiling);
	for (int i = 0; i < SITE_DAEMONS_MAX; i++)
		printf("figure=relay_drain_%d_peers_%d_outboxd value=%.0f "
		       "unit=events/s baseline=relay_sticky_%d_peers "
		       "ratio=%.2f\n",
		    peers, i + 1, median(drains[i], ROUNDS), peers,
		    median(drains[i], ROUNDS) / ceiling);
	printf("figure=relay_cpu_%d_peers value=%.1f unit=us/event "
	       "baseline=6 ratio=%.2f\n",
	    peers, median(cpu, ROUNDS), median(cpu, ROUNDS) / 6);
	return drains[0][ROUNDS / 2];
}

/* Dead rows cannot be removed while somebody's snapshot is open. */
static void held_snapshot(
    struct bench *bench, double free_rate, struct sizes sizes)
{
	AUTO(conn_free) struct conn *conn = test_db_conn(bench->conninfo);
	int64_t until = clock_steady_ms() + sizes.seconds * INT64_C(1000);
	struct err err = { 0 };
	double rate;

	must(conn_script(conn,
		 "BEGIN ISOLATION LEVEL REPEATABLE READ;"
		 "SELECT count(*) FROM federation_outbox",
		 &err),
	    "snapshot", &err);
	do
		rate = site_drain(bench, SITE_PEERS, sizes.entries, 1);
	while (clock_steady_ms() < until);
	printf("figure=relay_drain_held_%ds value=%.0f unit=events/s "
	       "baseline=relay_drain_100_peers_1_outboxd ratio=%.2f\n",
	    sizes.seconds, rate, rate / free_rate);
}

int main(int argc, char **argv)
{
	struct bench bench = { 0 };
	const struct sizes sizes = {
		.seconds = argc > 1 ? (int)strtol(argv[1], NULL, 10) : HELD_S,
		.entries = argc > 2 ? (int)strtol(argv[2], NULL, 10) : ENTRIES,
	};
	double rate;

	if (!test_db_available()) {
		puts("bench_relay: POSTRIDER_TEST_DB is not set");
		return 0;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	site_begin(&bench);
	if (argc > 1 && strcmp(argv[1], "latency") == 0) {
		figure_latency(&bench);
		site_end(&bench);
		return 0;
	}
	compare(&bench, 1, sizes.entries);
	rate = compare(&bench, SITE_PEERS, sizes.entries);
	held_snapshot(&bench, rate, sizes);
	figure_latency(&bench);
	figure_claim_cost(&bench);
	figure_inserts(&bench);
	figure_graphile(&bench, rate);
	figure_others(&bench);
	site_end(&bench);
	return 0;
}
