#include "tests/bench/relay_others.h"

#include "common/base/clock.h"
#include "common/pg/notify.h"
#include "tests/lib/test_peer.h"

enum {
	OTHERS = 48,
	ROUNDS = 20,
	SAMPLES = OTHERS * ROUNDS,
	DEAD_ENTRIES = 100000,
	SLOW_ENTRIES = 1000,
	SLOW_MS = 25000,
	SOON_MS = 10000
};

/* What one event each to the others takes, from before its insert to the POST.
 */
struct sampling {
	struct bench *bench;
	struct conn *conn;
	struct arena *arena;
	struct notifier *notifier;
	double took[SAMPLES];
};

static void sampling_begin(struct sampling *sampling, struct bench *bench)
{
	const struct conn_def def = {
		.conninfo = bench->conninfo,
		.application = "bench",
		.signals_after = true,
	};

	sampling->bench = bench;
	sampling->conn = conn_new(&def);
	sampling->arena = arena_new();
	sampling->notifier = notifier_new(bench->conninfo, "bench");
	conn_notifier_set(sampling->conn, sampling->notifier);
}

static void sampling_end(struct sampling *sampling)
{
	notifier_free(&sampling->notifier);
	conn_free(&sampling->conn);
	arena_free(&sampling->arena);
}

static double sample(struct sampling *sampling, int64_t peer, int place)
{
	struct bench *bench = sampling->bench;
	int64_t before;

	relay_sink_reset(bench->sink, 1);
	before = clock_steady_us();
	site_insert(sampling->conn, sampling->arena, peer, true, place);
	arena_reset(sampling->arena);
	return (double)(relay_sink_last_us(bench->sink) - before);
}

/* The dead peer is tried anew all the time. */
static void sample_all(struct sampling *sampling)
{
	struct bench *bench = sampling->bench;

	for (int i = 0; i < SAMPLES; i++) {
		if (i % OTHERS == 0)
			test_db_script(bench->conninfo,
			    "UPDATE federation_peers SET next_attempt_at = "
			    "now() WHERE next_attempt_at > now()");
		sampling->took[i] =
		    sample(sampling, bench->peers[i % OTHERS], i);
	}
}

static void print(struct sampling *sampling, const char *name,
    const double *base, double *figures)
{
	static const char *const parts[] = { "p50", "p99" };

	figures[0] = median(sampling->took, SAMPLES) / 1000;
	figures[1] = sampling->took[SAMPLES * 99 / 100] / 1000;
	for (size_t i = 0; i < COUNT(parts); i++) {
		printf("figure=relay_48_peers%s_%s value=%.2f unit=ms", name,
		    parts[i], figures[i]);
		if (base)
			printf(" baseline=relay_48_peers_%s ratio=%.2f",
			    parts[i], figures[i] / base[i]);
		puts("");
	}
}

static void slowly(void *arg UNUSED, struct arena *arena UNUSED,
    const struct test_peer_request *request UNUSED,
    struct test_peer_answer *answer)
{
	answer->hold_ms = SLOW_MS;
}

/* A peer moves to server, and so many entries wait for it. */
static void owe(
    struct bench *bench, int place, struct test_peer *server, int entries)
{
	test_db_script(bench->conninfo,
	    arena_printf(bench->arena,
		"UPDATE federation_peers SET origin = '%s' WHERE id = %" PRId64
		"; SET postrider.signals = 'after'; INSERT INTO "
		"federation_outbox (peer_id, context_type, context_id, "
		"event_type, entity_id, payload, expires_at) SELECT %" PRId64
		", 'dm', 'c', 'create', 'm' || n, '', now() + "
		"interval '1 day' FROM generate_series(1, %d) n",
		test_peer_origin(server), bench->peers[place],
		bench->peers[place], entries));
}

void figure_others(struct bench *bench)
{
	static struct sampling sampling;
	struct test_peer *dead = test_peer_new("dead.localhost", NULL, NULL);
	struct test_peer *slow = test_peer_new("slow.localhost", slowly, NULL);
	double alone[2];
	double beside[2];

	site_empty(bench);
	sampling_begin(&sampling, bench);
	site_start(bench, 1);
	sample_all(&sampling);
	print(&sampling, "", NULL, alone);
	owe(bench, OTHERS, dead, DEAD_ENTRIES);
	test_peer_free(&dead);
	owe(bench, OTHERS + 1, slow, SLOW_ENTRIES);
	if (!test_peer_got(slow, "/api/federation/relay", 1, SOON_MS))
		fputs("bench_relay: the slow peer was not sent to\n", stderr);
	sample_all(&sampling);
	print(&sampling, "_beside_a_dead_and_a_slow_one", alone, beside);
	site_stop(bench);
	sampling_end(&sampling);
	test_peer_free(&slow);
	site_empty(bench);
}
