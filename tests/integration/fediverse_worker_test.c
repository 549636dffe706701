/*
 * Servers rather than rows: pauses, deaths, many at once, and what a crash
 * leaves behind.
 */
#include <criterion/criterion.h>

#include "common/base/clock.h"
#include "common/base/work.h"
#include "outboxd/fediverse.h"
#include "outboxd/outboxd.h"
#include "tests/integration/fediverse_site.h"

static struct fediverse_site site;
static struct arena *arena;
static struct test_peer *receiver;

static void begin(void)
{
	test_db_needed();
	site = fediverse_site_begin();
	arena = site.arena;
	receiver = fediverse_receiver("far.localhost");
}

static void end(void)
{
	if (!site.node)
		return;
	test_peer_free(&receiver);
	fediverse_site_end(&site);
}

TestSuite(fediverse_worker, .init = begin, .fini = end, .timeout = 120);

static const char *owe(const char *activity, const char *path)
{
	return fediverse_owe(
	    &site, activity, fediverse_inbox(&site, receiver, path));
}

/* count rows in one statement: activities <prefix>1.., one inbox each. */
static void owe_many(const char *prefix, const char *origin, int count)
{
	test_db_script(site.db,
	    arena_printf(arena,
		"SELECT fediverse_enqueue('%s' || n, '{}', "
		"'%s/inbox/' || n, '%s') FROM generate_series(1, %d) n",
		prefix, origin, site.actor.id, count));
}

static bool domain_becomes(const char *condition)
{
	return fediverse_until(&site,
	    arena_printf(
		arena, "(SELECT %s FROM fediverse_domains)", condition),
	    FEDIVERSE_SOON_MS);
}

/* ---- the RFC's, with a worker of our own ---- */

static void *worker_begin(void *ctx)
{
	static struct conn_def def;
	struct outboxd_worker *worker = calloc(1, sizeof(*worker));

	def.conninfo = ctx;
	worker->conn = conn_new(&def);
	worker->arena = arena_new();
	return worker;
}

static void worker_end(void *state)
{
	struct outboxd_worker *worker = state;

	conn_free(&worker->conn);
	arena_free(&worker->arena);
	free(worker);
}

struct own_worker {
	struct loop *loop;
	struct work_pool *pool;
	struct fediverse *fediverse;
	struct loop_timer *look;
	const char *condition;
	int64_t until_ms;
	bool met;
};

static void on_look(void *arg)
{
	struct own_worker *own = arg;

	own->met = fediverse_until(&site, own->condition, 0);
	if (own->met || clock_steady_ms() > own->until_ms)
		loop_stop(own->loop);
	else
		loop_timer_arm(own->look, 5);
}

static void own_run(struct own_worker *own, const char *condition)
{
	own->condition = condition;
	own->until_ms = clock_steady_ms() + FEDIVERSE_SOON_MS;
	own->look = loop_timer_new(own->loop, on_look, own);
	loop_timer_arm(own->look, 0);
	loop_run(own->loop);
	loop_timer_free(&own->look);
	cr_expect(own->met, "not %s", condition);
}

/* Freeing it is the drop: whatever it held is as if never begun. */
Test(fediverse_worker, worker_run_stops_on_drop)
{
	static const struct worker_self self = { .id = 7 };
	static const int64_t at_once = 8;
	struct own_worker own = { .loop = loop_new() };
	const struct work_def work = { .threads = 2,
		.queue_max = 64,
		.worker_begin = worker_begin,
		.worker_end = worker_end,
		.ctx = (void *)site.db };
	const char *later;

	own.pool = work_pool_new(own.loop, &work);
	own.fediverse = fediverse_new(&(const struct fediverse_def){
	    .loop = own.loop,
	    .pool = own.pool,
	    .client = { .allow_private_addresses = true,
		.connections_per_host_max = 4 },
	    .home = &site.home,
	    .self = &self,
	    .at_once_max = &at_once,
	});
	fediverse_up(own.fediverse);
	fediverse_owe_as(
	    &site, "a1", "https://far.example/inbox", "noop", false);
	own_run(&own,
	    "EXISTS (SELECT FROM fediverse_outbound_queue "
	    "WHERE status = 'delivered')");
	owe("a2", "/hold/60000");
	own_run(&own,
	    "EXISTS (SELECT FROM fediverse_domains WHERE lease_worker = 7 AND "
	    "domain LIKE 'far.localhost:%')");
	later = fediverse_owe_as(
	    &site, "a3", "https://later.example/inbox", "noop", false);
	fediverse_abort(own.fediverse);
	work_pool_free(&own.pool);
	fediverse_free(&own.fediverse);
	loop_free(&own.loop);
	cr_expect_null(own.fediverse);
	cr_expect_str_eq(fediverse_row(&site, later, "status"), "pending");
	cr_expect_eq(test_db_number(site.db,
			 "SELECT count(*) AS n FROM fediverse_outbound_queue "
			 "WHERE status = 'pending' AND attempts = 0"),
	    2);
}

/* What was delivered is written while a neighbour is still on its way. */
Test(fediverse_worker, a_slow_delivery_does_not_keep_back_what_is_known)
{
	struct test_daemon *outboxd = fediverse_outboxd(&site);
	const char *slow = owe("w1", "/hold/9000");
	const char *fast = owe("w2", INBOX);

	cr_expect(fediverse_becomes(&site, fast, "status = 'delivered'"));
	cr_expect_str_eq(fediverse_row(&site, slow, "status"), "pending");
	cr_expect(fediverse_becomes(&site, slow, "status = 'delivered'"));
	cr_expect_eq(test_peer_count(receiver, INBOX), 1);
	cr_expect_eq(test_daemon_stop(outboxd), 0);
}

/* ---- a server in trouble ---- */

/* Ten rows, five failures: the rest is not even tried. */
Test(fediverse_worker, five_failures_open_the_circuit_and_one_probe_closes_it)
{
	struct test_daemon *outboxd = fediverse_outboxd(&site);
	const char *sick = fediverse_inbox(&site, receiver, "/code/503");

	for (int i = 1; i <= 5; i++) {
		fediverse_owe(&site, arena_printf(arena, "s%d", i), sick);
		cr_expect(fediverse_until(&site,
		    arena_printf(arena,
			"(SELECT count(*) = %d FROM fediverse_outbound_queue "
			"WHERE attempts = 1)",
			i),
		    FEDIVERSE_SOON_MS));
		test_db_script(site.db,
		    "UPDATE fediverse_domains SET not_before = '-infinity', "
		    "last_failure_at = last_failure_at - interval '1 second' "
		    "WHERE state = 'closed'");
	}
	cr_expect(domain_becomes("state = 'open' AND not_before > now() + "
				 "interval '29 min' AND lease_token IS NULL"));
	owe("h1", "/hold/300");
	owe("h2", "/hold/300");
	owe("h3", "/hold/300");
	test_db_script(site.db,
	    "UPDATE fediverse_domains SET not_before = now();"
	    "NOTIFY postrider_activity");
	cr_assert(test_peer_got(receiver, "/hold/300", 3, FEDIVERSE_SOON_MS));
	cr_expect_geq(test_peer_nth(receiver, "/hold/300", 1).at_ms -
		test_peer_nth(receiver, "/hold/300", 0).at_ms,
	    300, "the probe is alone");
	cr_expect(domain_becomes("state = 'closed' AND failures = 0 AND "
				 "failure_days = 0 AND pauses = 0"));
	cr_expect_eq(test_peer_count(receiver, "/code/503"), 5);
	cr_expect_eq(test_daemon_stop(outboxd), 0);
}

Test(fediverse_worker, a_failed_probe_doubles_the_pause)
{
	struct test_daemon *outboxd;

	owe("s1", "/code/500");
	owe("s2", "/code/500");
	test_db_script(site.db,
	    arena_printf(arena,
		"INSERT INTO fediverse_domains (domain, state, pauses, "
		"failure_days, last_failure_day) VALUES "
		"('far.localhost:%d', 'open', 1, 1, current_date)",
		test_peer_port(receiver)));
	outboxd = fediverse_outboxd(&site);
	cr_expect(domain_becomes("state = 'open' AND pauses = 2 AND "
				 "not_before > now() + interval '59 min'"));
	cr_expect_eq(test_peer_count(receiver, NULL), 1);
	cr_expect_eq(test_daemon_stop(outboxd), 0);
}

/* The seventh day: all that is owed there dies with it, and revival by hand
 * lets new rows through. */
Test(fediverse_worker, seven_days_of_failures_bury_its_rows)
{
	struct test_daemon *outboxd;
	const char *id = owe("s0", "/code/502");

	owe_many("s", test_peer_origin(receiver), 2500);
	test_db_script(site.db,
	    arena_printf(arena,
		"UPDATE fediverse_outbound_queue SET next_retry_at = now() + "
		"interval '1 day' WHERE id <> '%s';"
		"INSERT INTO fediverse_domains (domain, failure_days, "
		"last_failure_day) VALUES "
		"('far.localhost:%d', 6, current_date - 1)",
		id, test_peer_port(receiver)));
	outboxd = fediverse_outboxd(&site);
	cr_expect(domain_becomes("state = 'dead' AND died_at IS NOT NULL"));
	cr_expect(fediverse_until(&site,
	    "NOT EXISTS (SELECT FROM fediverse_outbound_queue "
	    "WHERE status <> 'dead' OR last_error IS NULL)",
	    FEDIVERSE_SOON_MS));
	cr_expect_eq(test_peer_count(receiver, NULL), 1);
	test_db_script(
	    site.db, "SELECT fediverse_revive(domain) FROM fediverse_domains");
	id = owe("n1", INBOX);
	cr_expect(fediverse_becomes(&site, id, "status = 'delivered'"));
	cr_expect_eq(test_daemon_stop(outboxd), 0);
}

Test(fediverse_worker, gone_at_the_shared_inbox_is_gone_for_all)
{
	struct test_daemon *outboxd;
	const char *other = owe("a1", INBOX);
	const char *shared;

	test_db_script(site.db,
	    "UPDATE fediverse_outbound_queue SET next_retry_at = now() + "
	    "interval '1 day'");
	shared = fediverse_owe_as(&site, "a2",
	    fediverse_inbox(&site, receiver, "/code/410"), NULL, true);
	outboxd = fediverse_outboxd(&site);
	cr_expect(fediverse_becomes(&site, shared, "status = 'failed'"));
	cr_expect(fediverse_becomes(&site, other, "status = 'dead'"));
	cr_expect(domain_becomes("state = 'dead' AND gone"));
	cr_expect_str_eq(
	    fediverse_row(&site, owe("a3", INBOX), "status"), "dead");
	cr_expect_eq(test_daemon_stop(outboxd), 0);
}

/* What was enqueued while a domain died is buried, too. */
Test(fediverse_worker, a_row_that_came_too_late_is_buried)
{
	struct test_daemon *outboxd;
	const char *id = owe("a1", INBOX);

	test_db_script(site.db,
	    arena_printf(arena,
		"INSERT INTO fediverse_domains (domain, state) "
		"VALUES ('far.localhost:%d', 'dead')",
		test_peer_port(receiver)));
	outboxd = fediverse_outboxd(&site);
	cr_expect(fediverse_becomes(&site, id, "status = 'dead'"));
	cr_expect_eq(test_peer_count(receiver, NULL), 0);
	cr_expect_eq(test_daemon_stop(outboxd), 0);
}

/* Asked once a week; the gone and those that died lately are not. */
Test(fediverse_worker, a_dead_server_that_answers_lives_again)
{
	struct test_daemon *outboxd;
	int port = test_peer_port(receiver);

	test_db_script(site.db,
	    arena_printf(arena,
		"INSERT INTO fediverse_domains (domain, state, gone, died_at, "
		"probed_at, failure_days) VALUES "
		"('long.localhost:%d', 'dead', false, now() - '15 "
		"d'::interval, "
		"now() - '8 d'::interval, 7),"
		"('asked.localhost:%d', 'dead', false, now() - '15 "
		"d'::interval, "
		"now() - '6 d'::interval, 7),"
		"('gone.localhost:%d', 'dead', true, now() - '15 d'::interval, "
		"NULL, 7),"
		"('mute.localhost:1', 'dead', false, now() - '8 d'::interval, "
		"NULL, 7)",
		port, port, port));
	outboxd = fediverse_outboxd(&site);
	cr_assert(test_peer_got(
	    receiver, "/.well-known/nodeinfo", 1, FEDIVERSE_SOON_MS));
	cr_expect(fediverse_until(&site,
	    "(SELECT string_agg(split_part(domain, '.', 1) || ' ' || state, ', "
	    "' "
	    "ORDER BY domain) FROM fediverse_domains) = "
	    "'asked dead, gone dead, long closed, mute dead'",
	    FEDIVERSE_SOON_MS));
	cr_expect_eq(test_peer_count(receiver, NULL), 1);
	cr_expect_eq(test_daemon_stop(outboxd), 0);
}

/* ---- many ---- */

Test(fediverse_worker, a_server_gets_four_requests_at_a_time)
{
	enum { ROWS = 12, HOLD_MS = 200, SLACK_MS = 20 };
	struct test_daemon *outboxd;

	for (int i = 0; i < ROWS; i++)
		owe(arena_printf(arena, "a%02d", i), "/hold/200");
	outboxd = fediverse_outboxd(&site);
	cr_assert(test_peer_got(receiver, NULL, ROWS, FEDIVERSE_SOON_MS));
	for (size_t i = 4; i < ROWS; i++)
		cr_expect_geq(test_peer_nth(receiver, NULL, i).at_ms -
			test_peer_nth(receiver, NULL, i - 4).at_ms,
		    HOLD_MS - SLACK_MS, "request %zu", i);
	cr_expect(fediverse_until(&site,
	    "NOT EXISTS (SELECT FROM fediverse_outbound_queue "
	    "WHERE status <> 'delivered')",
	    FEDIVERSE_SOON_MS));
	cr_expect_eq(test_peer_count(receiver, NULL), ROWS);
	cr_expect_eq(test_daemon_stop(outboxd), 0);
}

/* Fault 5.1: who takes connections and never answers, with ten thousand rows
 * that came first; twenty others with five rows each. */
Test(fediverse_worker, ten_thousand_rows_of_a_dead_server_hold_up_nobody)
{
	enum { OTHERS = 20, EACH = 5, IN_TIME_MS = 2000 };
	struct test_peer *silent = fediverse_receiver("silent.localhost");
	struct test_daemon *outboxd;
	int64_t began;

	owe_many("d", fediverse_inbox(&site, silent, "/hold/60000"), 5000);
	/* Nobody listens there at all. */
	owe_many("e", "http://dead.localhost:1", 5000);
	outboxd = fediverse_outboxd(&site);
	cr_assert(test_peer_got(silent, NULL, 4, FEDIVERSE_SOON_MS));
	began = clock_steady_ms();
	for (int i = 0; i < OTHERS; i++)
		owe_many(arena_printf(arena, "h%d-", i),
		    arena_printf(arena, "http://h%d.localhost:%d", i,
			test_peer_port(receiver)),
		    EACH);
	cr_expect(
	    test_peer_got(receiver, NULL, (size_t)OTHERS * EACH, IN_TIME_MS));
	cr_log_info(
	    "others were served after %d ms", (int)(clock_steady_ms() - began));
	cr_expect_eq(test_peer_count(silent, NULL), 4);
	cr_expect(fediverse_until(&site,
	    "(SELECT count(*) = 0 FROM fediverse_outbound_queue WHERE "
	    "status = 'pending' AND target_domain LIKE 'h%')",
	    FEDIVERSE_SOON_MS));
	test_peer_free(&silent);
	cr_expect_eq(test_daemon_stop(outboxd), 0);
}

/* ---- crashes ---- */

/* At least once: the row whose answer nobody heard goes out again. */
Test(fediverse_worker, killed_during_a_delivery_it_is_delivered_again)
{
	struct test_daemon *outboxd = fediverse_outboxd(&site);
	const char *id = owe("a1", "/hold/1000");
	struct test_peer_request first;
	struct test_peer_request second;

	cr_assert(test_peer_got(receiver, NULL, 1, FEDIVERSE_SOON_MS));
	test_daemon_kill(outboxd);
	cr_expect_str_eq(fediverse_row(&site, id, "status"), "pending");
	test_daemon_again(outboxd);
	cr_expect(fediverse_becomes(
	    &site, id, "status = 'delivered' AND attempts = 1"));
	cr_assert_eq(test_peer_count(receiver, NULL), 2);
	first = test_peer_nth(receiver, NULL, 0);
	second = test_peer_nth(receiver, NULL, 1);
	cr_expect_str_eq(first.body.data, second.body.data);
	cr_expect_eq(test_daemon_stop(outboxd), 0);
}

/* Its leases are free within seconds, long before they end by themselves. */
Test(fediverse_worker, another_takes_over_what_a_dead_one_held)
{
	enum { SECONDS_MS = 8000 };
	struct test_daemon *first = fediverse_outboxd(&site);
	struct test_daemon *second;
	int64_t killed;
	const char *id = owe("a1", "/hold/1500");

	cr_assert(test_peer_got(receiver, NULL, 1, FEDIVERSE_SOON_MS));
	second = fediverse_outboxd(&site);
	test_daemon_kill(first);
	killed = clock_steady_ms();
	cr_assert(test_peer_got(receiver, NULL, 2, FEDIVERSE_SOON_MS));
	cr_expect_leq(clock_steady_ms() - killed, test_patience_ms(SECONDS_MS));
	cr_expect(fediverse_becomes(&site, id, "status = 'delivered'"));
	cr_expect_eq(test_daemon_stop(second), 0);
}

/* Nothing twice, nothing left out: each row goes to one of them. */
Test(fediverse_worker, two_workers_deliver_each_row_once)
{
	enum { SERVERS = 10, EACH = 20 };
	struct test_daemon *a = fediverse_outboxd(&site);
	struct test_daemon *b = fediverse_outboxd(&site);

	for (int i = 0; i < SERVERS; i++)
		owe_many(arena_printf(arena, "w%d-", i),
		    arena_printf(arena, "http://w%d.localhost:%d", i,
			test_peer_port(receiver)),
		    EACH);
	cr_expect(fediverse_until(&site,
	    "NOT EXISTS (SELECT FROM fediverse_outbound_queue "
	    "WHERE status <> 'delivered')",
	    FEDIVERSE_SOON_MS));
	cr_expect_eq(test_peer_count(receiver, NULL), SERVERS * EACH);
	cr_expect_eq(test_daemon_stop(a), 0);
	cr_expect_eq(test_daemon_stop(b), 0);
}

/* A stop waits for answers that come soon and gives everything back. */
Test(fediverse_worker, a_stop_finishes_what_is_on_the_way)
{
	struct test_daemon *outboxd = fediverse_outboxd(&site);
	const char *id = owe("a1", "/hold/500");

	cr_assert(test_peer_got(receiver, NULL, 1, FEDIVERSE_SOON_MS));
	cr_expect_eq(test_daemon_stop(outboxd), 0);
	cr_expect_str_eq(fediverse_row(&site, id, "status"), "delivered");
	cr_expect_eq(test_db_number(site.db,
			 "SELECT count(*) AS n FROM fediverse_domains "
			 "WHERE lease_token IS NOT NULL"),
	    0);
}
