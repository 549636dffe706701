#include <criterion/criterion.h>

#include <signal.h>
#include <time.h>

#include "common/base/clock.h"
#include "tests/integration/delivery_site.h"

enum { SOON_MS = 10000, HEALTHY = 48, SERVED_MS = 2000, SEEN_MS = 25000 };

TestSuite(delivery_many, .timeout = 90);

/* ---- peers that answer in one way ---- */

struct manner {
	int status;
	const char *headers;
	int hold_ms;
	size_t after;		  /* so many requests are taken first */
	const char *refused_with; /* that request refuses the rest */
	size_t seen;
};

static void by_manner(void *arg, struct arena *arena UNUSED,
    const struct test_peer_request *request UNUSED,
    struct test_peer_answer *answer)
{
	struct manner *manner = arg;
	size_t place = manner->seen++;

	answer->hold_ms = manner->hold_ms;
	if (place < manner->after)
		return;
	if (manner->status && place == manner->after) {
		answer->status = manner->status;
		answer->headers = manner->headers;
		answer->body = "{}";
	}
	if (manner->refused_with)
		answer->body = manner->refused_with;
}

struct scene {
	struct site site;
	struct test_peer *peer;
	int64_t id;
	struct test_daemon *outboxd;
};

static struct scene scene_begin(struct manner *manner, const char *timeout)
{
	const char **settings;
	struct scene scene = { .site = site_begin() };
	struct arena *arena = scene.site.arena;

	settings = arena_array(arena, 2, sizeof(*settings));
	settings[0] = arena_printf(arena, "answer_timeout=%s", timeout);
	scene.peer = test_peer_new("orbit.localhost", by_manner, manner);
	scene.id = site_peer(&scene.site, test_peer_origin(scene.peer));
	scene.outboxd = test_outboxd(scene.site.node, settings);
	return scene;
}

static void scene_end(struct scene *scene)
{
	test_daemon_kill(scene->outboxd);
	test_peer_free(&scene->peer);
	site_end(&scene->site);
}

/* count more peers that are all served by one. */
static void peers_at(struct scene *scene, struct test_peer *server,
    const char *prefix, int count, int64_t *ids)
{
	for (int i = 0; i < count; i++)
		ids[i] = site_peer(&scene->site,
		    arena_printf(scene->site.arena, "http://%s%d.localhost:%d",
			prefix, i, test_peer_port(server)));
}

/* ---- asked to wait ---- */

Test(delivery_many, a_pause_is_as_long_as_asked_within_bounds)
{
	time_t then = time(NULL) + 300;
	struct tm tm;
	char date[64];
	/* clang-format off */
	const struct { const char *header; int least; int most; } cases[] = {
		{ "Retry-After: 1000000000\r\n", 3590, 3601 },
		{ "Retry-After: 120\r\n",        115,  121 },
		{ date,                          290,  302 },
		{ "Retry-After: -5\r\n",           0,    6 },
		{ "",                              0,    6 },
	};
	/* clang-format on */
	struct manner manner = { .status = 429 };
	struct scene scene;

	test_db_needed();
	gmtime_r(&then, &tm);
	strftime(date, sizeof(date),
	    "Retry-After: %a, %d %b %Y %H:%M:%S GMT\r\n", &tm);
	scene = scene_begin(&manner, "3s");
	site_enqueue(&scene.site, scene.id, ENTRIES("create a"));
	for (size_t i = 0; i < COUNT(cases); i++) {
		manner.headers = cases[i].header;
		manner.seen = 0;
		test_db_script(scene.site.db,
		    "UPDATE federation_peers SET last_code = NULL, "
		    "next_attempt_at = now(); NOTIFY postrider_outbox");
		cr_expect(
		    site_until(&scene.site,
			arena_printf(scene.site.arena,
			    "EXISTS (SELECT FROM federation_peers WHERE "
			    "last_code = 429 AND lease_worker IS NULL AND "
			    "transport_failures + auth_failures = 0 AND "
			    "next_attempt_at BETWEEN now() + %d * interval "
			    "'1 s' AND now() + %d * interval '1 s')",
			    cases[i].least, cases[i].most),
			SOON_MS),
		    "case %zu", i);
	}
	scene_end(&scene);
}

Test(delivery_many, a_peer_that_refused_the_pace_is_sent_to_more_slowly)
{
	struct manner manner = {
		.status = 429, .headers = "Retry-After: 1\r\n", .after = 3
	};
	struct scene scene;
	int64_t before;

	test_db_needed();
	scene = scene_begin(&manner, "3s");
	site_enqueue_many(&scene.site, scene.id, "m", 300);
	/* Three were taken, the fourth refused; two a second apart at least. */
	cr_assert(test_peer_got(scene.peer, RELAY_PATH, 6, SOON_MS));
	before = test_peer_nth(scene.peer, RELAY_PATH, 4).at_ms;
	cr_expect_geq(
	    before - test_peer_nth(scene.peer, RELAY_PATH, 3).at_ms, 1000);
	cr_expect_geq(
	    test_peer_nth(scene.peer, RELAY_PATH, 5).at_ms - before, 1900);
	scene_end(&scene);
}

/* ---- what was read ahead ---- */

Test(delivery_many, what_was_read_ahead_stays_behind_a_refusal)
{
	struct manner manner = { .after = 1,
		.refused_with = "{\"accepted\":[],\"rejected\":[{\"messageId\":"
				"\"m60\",\"reason\":\"channel_not_found\"}]}" };
	struct scene scene;

	test_db_needed();
	scene = scene_begin(&manner, "3s");
	site_enqueue_many(&scene.site, scene.id, "m", 300);
	cr_assert(site_until(&scene.site,
	    "EXISTS (SELECT FROM federation_outbox WHERE "
	    "reason = 'channel_not_found')",
	    SOON_MS));
	/* All are of that conversation: a third batch would be out of order. */
	cr_expect_not(test_peer_got(scene.peer, RELAY_PATH, 3, 1500));
	cr_expect_eq(site_number(&scene.site,
			 "SELECT count(*) AS n FROM federation_outbox"),
	    250);
	cr_expect(strncmp(site_batch(&scene.site, scene.peer, 1),
		      "create m51, create m52, ", 24) == 0);
	scene_end(&scene);
}

/* ---- workers that stall ---- */

Test(delivery_many, a_stopped_worker_is_taken_over_and_changes_nothing_later)
{
	struct manner manner = { .hold_ms = 1500 };
	struct scene scene;
	struct test_daemon *other;
	int64_t before;

	test_db_needed();
	scene = scene_begin(&manner, "10s");
	site_enqueue(&scene.site, scene.id, ENTRIES("create a"));
	cr_assert(test_peer_got(scene.peer, RELAY_PATH, 1, SOON_MS));
	kill(scene.outboxd->pid, SIGSTOP);
	other = test_outboxd(scene.site.node, NULL);
	manner.hold_ms = 0;
	/* Its network is gone: the server ends what it no longer hears of. */
	before = clock_steady_ms();
	test_db_script(scene.site.db,
	    "SELECT pg_terminate_backend(l.pid) FROM pg_locks l, "
	    "federation_peers p WHERE l.locktype = 'advisory' AND "
	    "(l.classid::bigint << 32 | l.objid::bigint) = p.lease_worker");
	cr_assert(test_peer_got(scene.peer, RELAY_PATH, 2, SOON_MS));
	cr_expect_lt(clock_steady_ms() - before, 5000);
	cr_assert(site_drained(&scene.site, SOON_MS));
	site_enqueue(&scene.site, scene.id, ENTRIES("update a"));
	cr_assert(site_drained(&scene.site, SOON_MS));
	/* It goes on, with the answer of its own POST before it. */
	kill(scene.outboxd->pid, SIGCONT);
	cr_expect(
	    test_daemon_logged(scene.outboxd, "event=listener.down", SOON_MS));
	site_enqueue(&scene.site, scene.id, ENTRIES("delete a"));
	cr_assert(site_drained(&scene.site, SOON_MS));
	cr_expect_str_eq(site_told(&scene.site, scene.peer),
	    "create a | create a | update a | delete a");
	cr_expect_eq(site_number(&scene.site,
			 "SELECT transport_failures + auth_failures AS n "
			 "FROM federation_peers"),
	    0);
	test_daemon_kill(other);
	scene_end(&scene);
}

/* ---- many peers ---- */

static int64_t slowest_of(
    struct scene *scene, struct test_peer *healthy, const int64_t *ids)
{
	size_t so_far = test_peer_count(healthy, RELAY_PATH);
	int64_t before = clock_steady_ms();
	int64_t slowest = 0;
	char values[8192];
	size_t len = 0;

	for (int i = 0; i < HEALTHY; i++)
		len += (size_t)snprintf(values + len, sizeof(values) - len,
		    "%s(%" PRId64 ")", i ? "," : "", ids[i]);
	test_db_script(scene->site.db,
	    arena_printf(scene->site.arena,
		"INSERT INTO federation_outbox (peer_id, context_type, "
		"context_id, event_type, entity_id, payload, expires_at) "
		"SELECT id, 'dm', 'c', 'create', 'e%zu', '', now() + "
		"interval '1 day' FROM (VALUES %s) v (id)",
		so_far, values));
	cr_assert(
	    test_peer_got(healthy, RELAY_PATH, so_far + HEALTHY, SOON_MS));
	for (size_t i = 0; i < HEALTHY; i++) {
		int64_t at =
		    test_peer_nth(healthy, RELAY_PATH, so_far + i).at_ms;

		if (at - before > slowest)
			slowest = at - before;
	}
	return slowest;
}

Test(delivery_many, a_dead_peer_and_a_slow_one_delay_nobody)
{
	struct manner slow = { .hold_ms = 25000 };
	struct scene scene;
	struct test_peer *healthy;
	struct test_peer *dead;
	int64_t ids[HEALTHY];
	int64_t dead_id;

	test_db_needed();
	scene = scene_begin(&slow, "30s");
	healthy = test_peer_new("luna.localhost", NULL, NULL);
	dead = test_peer_new("void.localhost", NULL, NULL);
	dead_id = site_peer(&scene.site, test_peer_origin(dead));
	test_peer_free(&dead);
	peers_at(&scene, healthy, "h", HEALTHY, ids);
	site_enqueue_many(&scene.site, dead_id, "d", 20000);
	site_enqueue_many(&scene.site, scene.id, "s", 1000);
	cr_assert(test_peer_got(scene.peer, RELAY_PATH, 1, SOON_MS));
	for (int round = 0; round < 3; round++)
		cr_expect_lt(slowest_of(&scene, healthy, ids), SERVED_MS);
	cr_expect_eq(test_peer_count(scene.peer, RELAY_PATH), 1);
	cr_expect(test_db_until(scene.site.node->database,
	    "SELECT count(*) > 0 AS b FROM ops.queue"
	    " WHERE queue = 'outbox' AND per_minute > 0"
	    "   AND drains_in > interval '0'",
	    SEEN_MS));
	test_peer_free(&healthy);
	scene_end(&scene);
}

Test(delivery_many, no_transaction_is_open_while_fifty_peers_think)
{
	struct manner slow = { .hold_ms = 4000 };
	struct scene scene;
	int64_t ids[HEALTHY];
	int64_t before;

	test_db_needed();
	scene = scene_begin(&slow, "10s");
	peers_at(&scene, scene.peer, "s", HEALTHY, ids);
	test_db_script(scene.site.db,
	    "INSERT INTO federation_outbox (peer_id, context_type, context_id, "
	    "event_type, entity_id, payload, expires_at) SELECT id, 'dm', 'c', "
	    "'create', 'a', '', now() + interval '1 day' FROM "
	    "federation_peers");
	cr_assert(test_peer_got(scene.peer, RELAY_PATH, HEALTHY + 1, SOON_MS));
	/* All are waited for: nobody holds what a writer or a vacuum needs. */
	before = clock_steady_ms();
	test_db_script(scene.site.db,
	    "SET lock_timeout = '1s'; LOCK TABLE federation_outbox, "
	    "federation_peers");
	cr_expect_lt(clock_steady_ms() - before, 1000);
	cr_expect_eq(site_number(&scene.site,
			 "SELECT count(*) AS n FROM pg_stat_activity WHERE "
			 "datname = current_database() AND state LIKE 'idle in "
			 "transaction%' AND state_change < now() - interval "
			 "'1 second'"),
	    0);
	cr_expect(site_drained(&scene.site, SOON_MS));
	scene_end(&scene);
}

Test(delivery_many, names_that_nobody_knows_delay_nobody_and_no_stop)
{
	enum { UNKNOWN = 40 };
	struct manner manner = { 0 };
	struct scene scene;
	int64_t ids[HEALTHY];
	int64_t before;

	test_db_needed();
	scene = scene_begin(&manner, "5s");
	peers_at(&scene, scene.peer, "h", HEALTHY, ids);
	for (int i = 0; i < UNKNOWN; i++)
		site_enqueue(&scene.site,
		    site_peer(&scene.site,
			arena_printf(
			    scene.site.arena, "https://n%d.invalid", i)),
		    ENTRIES("create x"));
	cr_expect_lt(slowest_of(&scene, scene.peer, ids), SERVED_MS);
	before = clock_steady_ms();
	cr_expect_eq(test_daemon_stop(scene.outboxd), 0);
	cr_expect_lt(clock_steady_ms() - before, 5000);
	scene_end(&scene);
}
