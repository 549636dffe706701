/* Questions to peers: sent once, in time, and never too many at a time. */
#include <criterion/criterion.h>

#include "common/base/clock.h"
#include "common/fediverse/actor.h"
#include "tests/lib/test_db.h"
#include "tests/lib/test_peer.h"
#include "tests/lib/test_trust.h"

#define INFO "/api/instance/info"
#define EVERY_KIND \
	"(VALUES ('relay'), ('accept'), ('counter'), ('identity')," \
	" ('rotate'), ('info')) v (kind)"
#define ALL_UNSENT \
	"SELECT bool_and(outcome = 'too_late') AS b FROM s2s_requests"

enum { WAIT_MS = 10000 };

static struct test_node *node;
static struct test_daemon *outboxd;
static struct test_peer *luna;

static void end(void)
{
	test_node_free(&node);
	test_peer_free(&luna);
}

TestSuite(asks, .fini = end, .timeout = 300);

static void begin(test_peer_script *script, void *arg)
{
	node = test_node_new("nova.localhost");
	outboxd = test_outboxd(node, NULL);
	luna = test_peer_new("luna.localhost", script, arg);
}

static void says(void *arg, struct arena *arena UNUSED,
    const struct test_peer_request *request UNUSED,
    struct test_peer_answer *answer)
{
	*answer = *(const struct test_peer_answer *)arg;
}

static void ask(const char *kind, const char *origin, int many,
    const char *deadline, bool ephemeral)
{
	test_db_script(node->database,
	    arena_printf(node->arena,
		"INSERT INTO s2s_requests (kind, origin, deadline, ephemeral) "
		"SELECT '%s', '%s', now() + interval '%s', %s "
		"FROM generate_series(1, %d)",
		kind, origin, deadline, ephemeral ? "true" : "false", many));
}

static void expect_outcomes(const char *want)
{
	const char *query = "SELECT coalesce(string_agg(outcome || ' ' ||"
			    " coalesce(status::text, '-'), ',' ORDER BY id), "
			    "'') AS t FROM s2s_requests";

	cr_assert(test_db_until(node->database,
	    "SELECT bool_and(answered_at IS NOT NULL) AS b FROM s2s_requests",
	    WAIT_MS));
	cr_expect_str_eq(
	    test_db_text(node->arena, node->database, query), want);
}

static int64_t number(const char *query)
{
	return test_db_number(node->database, query);
}

Test(asks, an_answer_is_written_down_whole)
{
	struct test_peer_answer answer = { .status = 418,
		.body = "{\"t\":\"\xc3\xa9\"}" };

	test_db_needed();
	begin(says, &answer);
	ask("info", test_peer_origin(luna), 1, "5 s", false);
	expect_outcomes("answered 418");
	cr_expect_str_eq(test_db_text(node->arena, node->database,
			     "SELECT answer AS t FROM s2s_requests"),
	    "{\"t\":\"\xc3\xa9\"}");
}

Test(asks, outcomes_say_what_may_have_arrived)
{
	static const struct {
		struct test_peer_answer answer;
		const char *origin; /* NULL: the peer's */
		const char *want;
	} rows[] = {
		{ { .status = 200, .body = "\xff\xfe" }, NULL, "answered 200" },
		{ { .status = 0 }, NULL, "unknown -" },
		{ { .status = 200, .body = "{\"a\":1}", .cut = true }, NULL,
		    "unknown -" },
		{ { .status = 200, .hold_ms = 4000 }, NULL, "unknown -" },
		{ { 0 }, "http://closed.localhost:1", "no_connection -" },
	};
	struct test_peer_answer answer = { 0 };

	test_db_needed();
	begin(says, &answer);
	for (size_t i = 0; i < COUNT(rows); i++) {
		answer = rows[i].answer;
		ask("info",
		    rows[i].origin ? rows[i].origin : test_peer_origin(luna), 1,
		    "1 s", false);
		expect_outcomes(rows[i].want);
		test_db_script(node->database, "DELETE FROM s2s_requests");
	}
}

Test(asks, a_huge_answer_is_cut_off)
{
	struct arena *arena = arena_new();
	char *huge = arena_alloc(arena, 70001);
	struct test_peer_answer answer = { .status = 200, .body = huge };

	test_db_needed();
	memset(huge, 'x', 70000);
	begin(says, &answer);
	ask("info", test_peer_origin(luna), 1, "5 s", false);
	expect_outcomes("unknown -");
	cr_expect_eq(number("SELECT coalesce(max(length(answer)), 0)::bigint "
			    "AS n FROM s2s_requests"),
	    0);
	test_peer_free(&luna);
	arena_free(&arena);
}

Test(asks, four_run_at_once_and_the_others_wait_their_turn)
{
	struct test_peer_answer answer = { .status = 200, .hold_ms = 400 };
	int64_t began_ms;

	test_db_needed();
	begin(says, &answer);
	test_outboxd(node, NULL);
	began_ms = clock_steady_ms();
	ask("info", test_peer_origin(luna), 10, "8 s", false);
	cr_assert(test_db_until(node->database,
	    "SELECT bool_and(answered_at IS NOT NULL) AS b FROM s2s_requests",
	    WAIT_MS));
	cr_expect(clock_steady_ms() - began_ms >= 3 * 400 - 50);
	cr_expect_eq(test_peer_count(luna, NULL), 10);
	for (size_t i = 4; i < 10; i++)
		cr_expect(test_peer_nth(luna, NULL, i).at_ms -
			test_peer_nth(luna, NULL, i - 4).at_ms >=
		    350);
}

Test(asks, a_slow_peer_holds_up_nobody_else)
{
	struct test_peer_answer answer = { .status = 200, .hold_ms = 3000 };
	struct test_peer *mars = test_peer_new("mars.localhost", NULL, NULL);
	int64_t began_ms;

	test_db_needed();
	begin(says, &answer);
	ask("info", test_peer_origin(luna), 20, "5 s", false);
	cr_assert(test_peer_got(luna, NULL, 4, WAIT_MS));
	began_ms = clock_steady_ms();
	ask("info", test_peer_origin(mars), 1, "5 s", false);
	cr_assert(test_peer_got(mars, INFO, 1, WAIT_MS));
	cr_expect_lt(clock_steady_ms() - began_ms, test_patience_ms(1500));
	test_peer_free(&mars);
}

/* What signs questions for actors. */
static void instance_actor_make(void)
{
	struct conn *conn = test_db_conn(node->database);
	struct node_key *key;
	struct origin origin;
	struct actor actor;
	struct err err;

	cr_assert(origin_parse(node->arena, node->origin, &origin));
	cr_assert(node_key_load(
	    arena_printf(node->arena, "%s/key", node->dir), &key, &err));
	{
		AUTO(tx_end) struct tx *tx = tx_new(conn, node->arena);

		cr_assert(actor_instance_make(tx, key, &origin, &actor, &err) &&
		    tx_commit(tx, &err));
	}
	node_key_free(&key);
	conn_free(&conn);
}

Test(asks, strangers_leave_room_for_peers)
{
	struct test_peer_answer answer = { .status = 200, .hold_ms = 4000 };
	struct test_peer *mars = test_peer_new("mars.localhost", NULL, NULL);

	test_db_needed();
	begin(says, &answer);
	instance_actor_make();
	test_db_script(node->database,
	    arena_printf(node->arena,
		"INSERT INTO s2s_requests (kind, origin, body, deadline)"
		" SELECT 'actor', o, convert_to(o || '/users/a', 'UTF8'),"
		" now() + interval '30 s'"
		" FROM generate_series(1, 50) n, LATERAL (SELECT"
		" format('http://h%%s.localhost:%d', n / 2) AS o) origins",
		test_peer_port(luna)));
	cr_assert(test_peer_got(luna, "/users/a", 32, WAIT_MS));
	ask("info", test_peer_origin(mars), 1, "5 s", false);
	cr_assert(test_peer_got(mars, INFO, 1, WAIT_MS));
	cr_expect_eq(number("SELECT count(*) AS n FROM s2s_requests"
			    " WHERE kind = 'actor' AND claimed_at IS NULL"),
	    18);
	test_peer_free(&mars);
}

Test(asks, what_is_late_is_not_sent)
{
	test_db_needed();
	begin(NULL, NULL);
	ask("info", test_peer_origin(luna), 1, "-1 s", false);
	ask("info", test_peer_origin(luna), 1, "5 s", false);
	cr_assert(test_peer_got(luna, INFO, 1, WAIT_MS));
	cr_expect_eq(number("SELECT count(*) AS n FROM s2s_requests"
			    " WHERE claimed_at IS NOT NULL"),
	    1);
}

Test(asks, ephemeral_ones_that_a_busy_peer_can_not_take_are_dropped)
{
	struct test_peer_answer answer = { .status = 200, .hold_ms = 2000 };

	test_db_needed();
	begin(says, &answer);
	ask("info", test_peer_origin(luna), 4, "5 s", false);
	cr_assert(test_peer_got(luna, INFO, 4, WAIT_MS));
	ask("info", test_peer_origin(luna), 3, "5 s", true);
	cr_assert(test_db_until(node->database,
	    "SELECT count(*) = 3 AS b FROM s2s_requests"
	    " WHERE ephemeral AND outcome = 'too_late'",
	    WAIT_MS));
	cr_expect_eq(test_peer_count(luna, INFO), 4);
}

Test(asks, nothing_is_sent_twice_by_two_daemons_or_after_a_crash)
{
	struct test_peer_answer answer = { .status = 200, .hold_ms = 300 };

	test_db_needed();
	begin(says, &answer);
	test_outboxd(node, NULL);
	ask("info", test_peer_origin(luna), 12, "8 s", false);
	cr_assert(test_peer_got(luna, INFO, 2, WAIT_MS));
	test_daemon_kill(outboxd);
	test_daemon_again(outboxd);
	/* Those of the dead one end as unknown; the others go on. */
	cr_assert(test_db_until(node->database,
	    "SELECT bool_and(answered_at IS NOT NULL) AND"
	    " bool_and(outcome IN ('answered', 'unknown')) AS b"
	    " FROM s2s_requests",
	    WAIT_MS));
	cr_expect_leq(test_peer_count(luna, INFO), 12);
}

Test(asks, a_private_address_is_refused_without_a_connection)
{
	static const char *const guarded[] = { "allow_private_addresses=off",
		NULL };

	test_db_needed();
	node = test_node_new("nova.localhost");
	outboxd = test_outboxd(node, guarded);
	luna = test_peer_new("luna.localhost", NULL, NULL);
	ask("info", test_peer_origin(luna), 1, "5 s", false);
	expect_outcomes("refused -");
	cr_expect_eq(test_peer_count(luna, NULL), 0);
}

Test(asks, a_revoked_peer_hears_nothing)
{
	test_db_needed();
	begin(NULL, NULL);
	test_db_script(node->database,
	    arena_printf(node->arena,
		"INSERT INTO federation_peers (origin, host, status)"
		" VALUES ('%s', 'luna.localhost', 'revoked');"
		"INSERT INTO s2s_requests (kind, peer_id, origin, body,"
		" deadline) SELECT kind, id, origin, '{}', now() +"
		" interval '5 s' FROM federation_peers, " EVERY_KIND,
		test_peer_origin(luna)));
	cr_assert(test_db_until(node->database, ALL_UNSENT, WAIT_MS));
	cr_expect_eq(test_peer_count(luna, NULL), 0);
}

Test(asks, a_paused_peer_hears_nothing_until_it_is_resumed)
{
	test_db_needed();
	begin(NULL, NULL);
	test_db_script(node->database,
	    arena_printf(node->arena,
		"INSERT INTO federation_peers (origin, host, status,"
		" hmac_secret) VALUES ('%s', 'luna.localhost', 'active', 'x');"
		"SELECT ops.peer_pause('luna.localhost', 'maintenance');"
		"INSERT INTO s2s_requests (kind, peer_id, origin, body,"
		" deadline) SELECT kind, id, origin, '{}', now() +"
		" interval '5 s' FROM federation_peers, " EVERY_KIND,
		test_peer_origin(luna)));
	cr_assert(test_db_until(node->database, ALL_UNSENT, WAIT_MS));
	cr_expect_str_eq(test_db_text(node->arena, node->database,
			     "SELECT min(error) || max(error) AS t"
			     " FROM s2s_requests"),
	    "peer is pausedpeer is paused");
	cr_expect_eq(test_peer_count(luna, NULL), 0);
	test_db_script(node->database,
	    "SELECT ops.peer_resume('luna.localhost');"
	    "DELETE FROM s2s_requests");
	ask("info", test_peer_origin(luna), 1, "5 s", false);
	expect_outcomes("answered 200");
}
