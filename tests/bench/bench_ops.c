/*
 * bench_ops -- what an operator looks at while a million entries and a
 * million activities wait.
 *
 * Milliseconds a view takes to answer in full, as a person's psql asks it: the
 * median of LOOKS, at once after the entries came (nothing is vacuumed yet)
 * and again once the tables are. Each is held against 200 ms. Then the time a
 * call of the functions takes. The database is thrown away at the end.
 */
#include <time.h>

#include "common/pg/sql.h"
#include "tests/lib/test_db.h"

enum { ENTRIES = 1000000, PEERS = 1000, LOOKS = 7, LIMIT_MS = 200 };

struct look {
	const char *name;
	const char *query;
};

/* clang-format off */
static const struct look views[] = {
	{ "queue",        "SELECT count(q::text) AS n FROM ops.queue q" },
	{ "peers",        "SELECT count(p::text) AS n FROM ops.peers p" },
	{ "stuck",        "SELECT count(s::text) AS n FROM ops.stuck s" },
	{ "workers",      "SELECT count(w::text) AS n FROM ops.workers w" },
	{ "dead_letters", "SELECT count(d::text) AS n FROM ops.dead_letters d" },
	{ "audit",        "SELECT count(a::text) AS n FROM ops.audit a" },
	{ "domains",      "SELECT count(d::text) AS n FROM ops.domains d" },
	{ "activities",   "SELECT count(q::text) AS n FROM ops.fediverse_queue q" },
};

static const struct look calls[] = {
	{ "peer_pause",  "SELECT waiting AS n FROM ops.peer_pause('peer1.example', 'bench')" },
	{ "peer_resume", "SELECT waiting AS n FROM ops.peer_resume('peer1.example')" },
	{ "retry_now",   "SELECT entries AS n FROM ops.retry_now()" },
	{ "discard_dry", "SELECT entries AS n FROM ops.discard(type => 'create', why => 'bench', dry_run => true)" },
	{ "discard",     "SELECT entries AS n FROM ops.discard(type => 'create', why => 'bench')" },
	{ "replay",      "SELECT entries AS n FROM ops.replay(type => 'create', why => 'bench')" },
	{ "fediverse_retry_now", "SELECT entries AS n FROM ops.fediverse_retry_now('d7.example')" },
	{ "fediverse_discard",   "SELECT entries AS n FROM ops.fediverse_discard('d1.example', why => 'bench')" },
	{ "fediverse_replay",    "SELECT entries AS n FROM ops.fediverse_replay(older_than => '0', why => 'bench')" },
};
/* clang-format on */

/* Of the peers every tenth is silent; of the entries every thousandth is set
 * aside; twenty thousand are dead. */
static const char world[] =
    "INSERT INTO federation_peers (id, origin, host, status, hmac_secret,"
    " transport_failures, next_attempt_at, lease_worker, lease_token,"
    " lease_until) SELECT n, 'https://peer' || n || '.example',"
    " 'peer' || n || '.example', CASE n %% 10 WHEN 0 THEN 'unreachable' ELSE"
    " 'active' END, 'x', CASE n %% 10 WHEN 0 THEN 10 ELSE 0 END,"
    " now() + CASE n %% 10 WHEN 0 THEN interval '1 hour' ELSE '0' END,"
    " n %% 5, gen_random_uuid(), now() + interval '1 hour'"
    " FROM generate_series(1, %d) n;"
    "INSERT INTO workers (id, daemon, instance, host, pid, version, schema)"
    " SELECT n, 'outboxd', n, 'host', n, '1', 1 FROM generate_series(0, 4) n;"
    "INSERT INTO federation_outbox (peer_id, context_type, context_id,"
    " event_type, entity_id, payload, expires_at, retry_at, refusals, reason)"
    " SELECT 1 + n %% %d, 'dm', (n %% 5000)::text,"
    " CASE n %% 10 WHEN 0 THEN 'update' ELSE 'create' END, n::text,"
    " repeat('x', 300), now() + interval '30 days',"
    " CASE WHEN n %% 1000 = 7 THEN now() + interval '1 hour' END,"
    " (n %% 1000 = 7)::int, CASE WHEN n %% 1000 = 7 THEN 'unknown_message' END"
    " FROM generate_series(1, %d) n;"
    "INSERT INTO dead_letters (queue, peer_id, peer, entry_id, context_type,"
    " context_id, event_type, entity_id, payload, created_at, why)"
    " SELECT 'outbox', 1 + n %% %d, 'https://peer' || 1 + n %% %d ||"
    " '.example', -n, 'dm', '1', 'create', n::text, 'x', now(),"
    " 'refused too often' FROM generate_series(1, 20000) n;"
    "INSERT INTO audit (action, target, reason, rows) SELECT 'discard', 'x',"
    " 'x', n FROM generate_series(1, 1000) n";

/* As many activities for as many domains. Every hundredth row failed, every
 * hundredth died, a tenth waits for its time. */
static const char fediverse[] =
    "INSERT INTO fediverse_domains (domain, state, failures, not_before)"
    " SELECT 'd' || n || '.example', CASE n %% 10 WHEN 0 THEN 'open' ELSE"
    " 'closed' END, CASE n %% 10 WHEN 0 THEN 5 ELSE 0 END,"
    " now() + CASE n %% 10 WHEN 0 THEN interval '1 hour' ELSE '0' END"
    " FROM generate_series(0, %d - 1) n;"
    "INSERT INTO fediverse_outbound_queue (activity_id, payload_json,"
    " target_inbox, target_domain, status, attempts, next_retry_at,"
    " created_at, last_error)"
    " SELECT 'https://here.example/activities/' || n, repeat('x', 300),"
    " 'https://d' || n %% %d || '.example/inbox', 'd' || n %% %d ||"
    " '.example', CASE n / 1000 %% 100 WHEN 1 THEN 'failed' WHEN 2 THEN"
    " 'dead' ELSE 'pending' END, (n / 1000 %% 10 = 7)::int,"
    " CASE WHEN n / 1000 %% 10 = 7 THEN now() + make_interval(mins => n %% 99)"
    " END, now() - make_interval(secs => n / 100), 'it is so'"
    " FROM generate_series(1, %d) n";

static int compare(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a;
	int64_t right = *(const int64_t *)b;

	return (left > right) - (left < right);
}

static int64_t ask_us(const char *database, const char *query)
{
	struct timespec from;
	struct timespec to;

	clock_gettime(CLOCK_MONOTONIC, &from);
	test_db_number(database, query);
	clock_gettime(CLOCK_MONOTONIC, &to);
	return (to.tv_sec - from.tv_sec) * 1000000LL +
	    (to.tv_nsec - from.tv_nsec) / 1000;
}

static void view_measure(
    const char *database, const struct look *view, const char *when)
{
	int64_t us[LOOKS];

	for (int i = 0; i < LOOKS; i++)
		us[i] = ask_us(database, view->query);
	qsort(us, LOOKS, sizeof(us[0]), compare);
	printf("figure=ops_%s_%s value=%.1f unit=ms limit=%d max=%.1f\n",
	    view->name, when, (double)us[LOOKS / 2] / 1000, LIMIT_MS,
	    (double)us[LOOKS - 1] / 1000);
}

int main(void)
{
	struct arena *arena;
	char *database;

	if (!test_db_available()) {
		fprintf(stderr, "bench_ops: POSTRIDER_TEST_DB is not set\n");
		return 1;
	}
	arena = arena_new();
	database = test_db_create();
	test_db_script(database,
	    arena_printf(arena, world, PEERS, PEERS, ENTRIES, PEERS, PEERS));
	test_db_script(database,
	    arena_printf(arena, fediverse, PEERS, PEERS, PEERS, ENTRIES));
	for (size_t i = 0; i < COUNT(views); i++)
		view_measure(database, &views[i], "at_once");
	test_db_script(database, "VACUUM ANALYZE");
	for (size_t i = 0; i < COUNT(views); i++)
		view_measure(database, &views[i], "settled");
	for (size_t i = 0; i < COUNT(calls); i++)
		printf("figure=ops_call_%s value=%.1f unit=ms\n", calls[i].name,
		    (double)ask_us(database, calls[i].query) / 1000);
	test_db_drop(&database);
	arena_free(&arena);
	return 0;
}
