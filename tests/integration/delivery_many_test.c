#include <criterion/criterion.h>

#include <poll.h>
#include <signal.h>
#include <time.h>

#include "common/base/clock.h"
#include "tests/integration/delivery_site.h"

enum { SOON_MS = 10000, HEALTHY = 48, SERVED_MS = 2000, SEEN_MS = 25000 };

TestSuite(delivery_many, .timeout = 300);

/* ---- peers that answer in one way ---- */

struct manner {
	int status;
	const char *headers;
	int hold_ms;
	size_t after;		  /* so many requests are taken first */
	bool always;		  /* and none is later */
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
	if (manner->status && (manner->always || place == manner->after)) {
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
	/* What it is asked before a case begins must not empty the outbox. */
	struct manner manner = { .status = 429, .always = true };
	struct scene scene;

	test_db_needed();
	gmtime_r(&then, &tm);
	strftime(date, sizeof(date),
	    "Retry-After: %a, %d %b %Y %H:%M:%S GMT\r\n", &tm);
	scene = scene_begin(&manner, "60s");
	site_enqueue(&scene.site, scene.id, ENTRIES("create a"));
	for (size_t i = 0; i < COUNT(cases); i++) {
		manner.headers = cases[i].header;
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

Test(delivery_many, a_failing_peer_that_names_a_time_is_left_until_then)
{
	struct manner manner = { .status = 503,
		.headers = "Retry-After: 600\r\n" };
	struct scene scene;

	test_db_needed();
	scene = scene_begin(&manner, "3s");
	site_enqueue(&scene.site, scene.id, ENTRIES("create a"));
	cr_expect(site_until(&scene.site,
	    "EXISTS (SELECT FROM federation_peers WHERE transport_failures = 1 "
	    "AND next_attempt_at > now() + interval '9 minutes')",
	    SOON_MS));
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

Test(delivery_many, who_takes_over_keeps_the_pace_that_was_learned)
{
	struct manner manner = {
		.status = 429, .headers = "Retry-After: 1\r\n", .after = 3
	};
	struct scene scene;
	size_t so_far;
	int64_t before;

	test_db_needed();
	scene = scene_begin(&manner, "3s");
	site_enqueue_many(&scene.site, scene.id, "m", 400);
	cr_assert(site_until(&scene.site,
	    "EXISTS (SELECT FROM ops.peers WHERE limits LIKE '30 batches a "
	    "minute%')",
	    SOON_MS));
	test_daemon_kill(scene.outboxd);
	so_far = test_peer_count(scene.peer, RELAY_PATH);
	test_daemon_again(scene.outboxd);
	cr_assert(test_peer_got(scene.peer, RELAY_PATH, so_far + 2, SOON_MS));
	before = test_peer_nth(scene.peer, RELAY_PATH, so_far).at_ms;
	cr_expect_geq(
	    test_peer_nth(scene.peer, RELAY_PATH, so_far + 1).at_ms - before,
	    1900);
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

/* ---- signals, and none ---- */

Test(delivery_many, what_nobody_signalled_is_found_all_the_same)
{
	struct manner manner = { 0 };
	struct scene scene;
	int64_t before;

	test_db_needed();
	scene = scene_begin(&manner, "3s");
	site_enqueue(&scene.site, scene.id, ENTRIES("create a"));
	cr_assert(site_drained(&scene.site, SOON_MS));
	before = clock_steady_ms();
	test_db_script(scene.site.db,
	    "SET postrider.signals = 'after'; "
	    "INSERT INTO federation_outbox (peer_id, context_type, context_id, "
	    "event_type, entity_id, payload, expires_at) SELECT id, 'dm', 'c', "
	    "'create', 'b', '', now() + interval '1 day' FROM "
	    "federation_peers");
	cr_expect(test_peer_got(scene.peer, RELAY_PATH, 2, SOON_MS));
	cr_expect_lt(clock_steady_ms() - before, test_patience_ms(1500));
	scene_end(&scene);
}

/* ---- at rest ---- */

/* User and system time so far, in ticks. */
static int64_t ticks_used(const struct test_daemon *daemon)
{
	char path[64];
	char line[1024] = "";
	FILE *file;
	long user = 0;
	long system = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)daemon->pid);
	file = fopen(path, "re");
	cr_assert_not_null(file);
	cr_assert_not_null(fgets(line, sizeof(line), file));
	fclose(file);
	cr_assert_eq(
	    sscanf(strrchr(line, ')'),
		") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld", &user,
		&system),
	    2);
	return user + system;
}

/* Peers that stall in the middle of an answer, names that nobody knows: when
 * they have had their time the daemon costs next to nothing. */
Test(delivery_many, after_transfers_that_failed_nothing_spins)
{
	enum { REST_MS = 2000, TICKS_MAX = 40 /* of 200 */ };
	struct manner manner = { .hold_ms = 60000 };
	struct scene scene;
	int64_t ids[HEALTHY];
	int64_t used;
	int64_t began;

	test_db_needed();
	scene = scene_begin(&manner, "1s");
	peers_at(&scene, scene.peer, "s", HEALTHY, ids);
	site_enqueue(&scene.site,
	    site_peer(&scene.site, "https://nowhere.invalid"),
	    ENTRIES("create x"));
	for (int i = 0; i < HEALTHY; i++)
		site_enqueue(&scene.site, ids[i], ENTRIES("create x"));
	cr_assert(site_until(&scene.site,
	    "(SELECT count(*) FROM federation_peers WHERE last_error IS NOT "
	    "NULL AND lease_worker IS NULL) > 48",
	    SOON_MS));
	used = ticks_used(scene.outboxd);
	began = clock_steady_ms();
	while (clock_steady_ms() - began < REST_MS)
		poll(NULL, 0, 100);
	cr_expect_lt(ticks_used(scene.outboxd) - used, TICKS_MAX);
	scene_end(&scene);
}

/* ---- five of them ---- */

enum { SHARED = 8, ROUNDS = 5, EACH = 100 };

static void owe_all(struct scene *scene)
{
	test_db_script(scene->site.db,
	    arena_printf(scene->site.arena,
		"INSERT INTO federation_outbox (peer_id, context_type, "
		"context_id, event_type, entity_id, payload, expires_at) "
		"SELECT p.id, 'dm', 'c', 'create', split_part(p.host, '.', 1) "
		"|| '-' || n + (SELECT count(*) FROM chaos), '', now() + "
		"interval '1 day' FROM federation_peers p, generate_series(1, "
		"%d) n WHERE p.host LIKE 'h%%' ORDER BY p.id, n; "
		"INSERT INTO chaos SELECT FROM generate_series(1, %d)",
		EACH, EACH));
}

/* Of each peer every thing, first told in order; twice is no harm. */
static void expect_all_in_order(struct scene *scene, struct test_peer *server)
{
	size_t count = test_peer_count(server, RELAY_PATH);
	int told[SHARED] = { 0 };

	for (size_t i = 0; i < count; i++) {
		const char *at = site_batch(&scene->site, server, i);

		while ((at = strstr(at, "create h"))) {
			int peer;
			int nth;

			cr_assert_eq(
			    sscanf(at, "create h%d-%d", &peer, &nth), 2);
			cr_expect_leq(nth, told[peer] + 1, "h%d: %d after %d",
			    peer, nth, told[peer]);
			told[peer] = nth > told[peer] ? nth : told[peer];
			at++;
		}
	}
	for (int i = 0; i < SHARED; i++)
		cr_expect_eq(told[i], ROUNDS * EACH, "h%d", i);
}

Test(delivery_many, of_five_any_may_be_killed_and_nothing_is_missing)
{
	struct manner manner = { .hold_ms = 30 };
	struct test_daemon *five[ROUNDS];
	struct scene scene;
	int64_t ids[SHARED];

	test_db_needed();
	scene = scene_begin(&manner, "10s");
	test_db_script(scene.site.db, "CREATE TABLE chaos ()");
	peers_at(&scene, scene.peer, "h", SHARED, ids);
	five[0] = scene.outboxd;
	for (int i = 1; i < ROUNDS; i++)
		five[i] = test_outboxd(scene.site.node, NULL);
	for (int i = 0; i < ROUNDS; i++) {
		size_t so_far = test_peer_count(scene.peer, RELAY_PATH);

		owe_all(&scene);
		cr_assert(test_peer_got(
		    scene.peer, RELAY_PATH, so_far + SHARED / 2, SOON_MS));
		test_daemon_kill(five[i]);
		if (i > 0)
			test_daemon_again(five[i - 1]);
	}
	cr_assert(site_drained(&scene.site, 2 * SOON_MS));
	expect_all_in_order(&scene, scene.peer);
	cr_expect_eq(site_number(&scene.site,
			 "SELECT sum(transport_failures) AS n FROM "
			 "federation_peers"),
	    0);
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
