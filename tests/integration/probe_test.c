#include <criterion/criterion.h>

#include "janitord/probe.sql.h"
#include "tests/integration/janitor_site.h"

TestSuite(probe, .init = janitor_begin, .fini = janitor_end, .timeout = 300);

static void answer_status(void *arg, struct arena *memory UNUSED,
    const struct test_peer_request *request UNUSED,
    struct test_peer_answer *answer)
{
	const int *status = arg;

	if (*status)
		answer->status = *status;
}

/* The last probe was seconds ago, and the last failure before it. */
static void probed_before(int64_t id, int probes, int seconds)
{
	janitor_sql(arena_printf(janitor.arena,
	    "UPDATE federation_peers SET probes = %d, last_probe_at = CASE "
	    "WHEN %d > 0 THEN now() - interval '%d seconds' END, "
	    "last_failure_at = now() - CASE WHEN %d > 0 THEN interval "
	    "'1 day' ELSE interval '%d seconds' END WHERE id = %" PRId64,
	    probes, probes, seconds, probes, seconds, id));
}

Test(probe, probes_come_after_30_s_1_5_and_then_15_minutes)
{
	/* clang-format off */
	static const struct {
		int probes;
		int seconds;
		bool due;
	} cases[] = {
		{ 0,   15, false },
		{ 0,   34, true  },
		{ 1,   45, false },
		{ 1,   67, true  },
		{ 2,  280, false },
		{ 2,  331, true  },
		{ 3,  880, false },
		{ 3,  991, true  },
		{ 9,  880, false },
		{ 9,  991, true  },
	};
	/* clang-format on */
	struct test_peer *peers[COUNT(cases)];
	const int status = 503;

	for (size_t i = 0; i < COUNT(cases); i++) {
		int64_t id;

		peers[i] = test_peer_new(
		    "orbit.localhost", answer_status, (void *)&status);
		id = janitor_failing_peer(
		    peers[i], i % 2 ? "active" : "unreachable");
		probed_before(id, cases[i].probes, cases[i].seconds);
		site_enqueue(&janitor, id, ENTRIES("create a"));
	}
	test_janitord(janitor.node, NULL);
	cr_expect(
	    janitor_soon("(SELECT count(*) FROM federation_peers WHERE "
			 "last_probe_at > now() - interval '10 seconds') = 5"));
	for (size_t i = 0; i < COUNT(cases); i++)
		if (cases[i].due)
			cr_expect(test_peer_got(peers[i], INFO_PATH, 1, 2000));
	for (size_t i = 0; i < COUNT(cases); i++) {
		cr_expect_eq(test_peer_count(peers[i], NULL), cases[i].due,
		    "%d probes, %d s", cases[i].probes, cases[i].seconds);
		test_peer_free(&peers[i]);
	}
	cr_expect_eq(janitor_count("federation_peers WHERE probes = 10"), 1);
}

Test(probe, whoever_is_well_paused_or_asked_to_wait_is_not_probed)
{
	/* clang-format off */
	static const char *const cases[] = {
		"status = 'active', transport_failures = 0",
		"status = 'revoked', hmac_secret = NULL",
		"paused_until = now() + interval '1 hour'",
		"last_code = 429",
		"lease_worker = 1, lease_until = now() + interval '1 hour'",
	};
	/* clang-format on */
	struct test_peer *peers[COUNT(cases) + 1];

	for (size_t i = 0; i <= COUNT(cases); i++) {
		int64_t id;

		peers[i] = test_peer_new("orbit.localhost", NULL, NULL);
		id = janitor_failing_peer(peers[i], "unreachable");
		site_enqueue(&janitor, id, ENTRIES("create a"));
		if (i < COUNT(cases))
			janitor_sql(arena_printf(janitor.arena,
			    "UPDATE federation_peers SET %s WHERE id = "
			    "%" PRId64,
			    cases[i], id));
	}
	test_janitord(janitor.node, NULL);
	cr_expect(test_peer_got(peers[COUNT(cases)], INFO_PATH, 1, SOON_MS));
	for (size_t i = 0; i < COUNT(cases); i++)
		cr_expect_eq(
		    test_peer_count(peers[i], NULL), 0, "%s", cases[i]);
	for (size_t i = 0; i <= COUNT(cases); i++)
		test_peer_free(&peers[i]);
}

Test(probe, a_sign_of_life_brings_a_trial_forward_and_forgives_nothing)
{
	int status = 204;
	struct test_peer *peer =
	    test_peer_new("orbit.localhost", answer_status, &status);
	int64_t id = janitor_failing_peer(peer, "unreachable");
	struct test_daemon *janitord;

	site_enqueue(&janitor, id, ENTRIES("create a"));
	janitord = test_janitord(janitor.node, NULL);
	cr_expect(test_daemon_logged(janitord, "event=probe.trial", SOON_MS));
	cr_expect(
	    janitor_soon("EXISTS (SELECT FROM federation_peers WHERE "
			 "next_attempt_at <= now() + interval '1 second' AND "
			 "last_seen_at IS NOT NULL AND probes = 1)"));
	cr_expect_eq(
	    janitor_count("federation_peers WHERE status = 'unreachable' AND "
			  "transport_failures = 10"),
	    1);
	test_peer_free(&peer);
}

Test(probe, answers_that_are_no_success_bring_nothing_forward)
{
	static const int statuses[] = { 301, 403, 404, 500, 503 };
	struct test_peer *peers[COUNT(statuses)];

	for (size_t i = 0; i < COUNT(statuses); i++) {
		peers[i] = test_peer_new(
		    "orbit.localhost", answer_status, (void *)&statuses[i]);
		site_enqueue(&janitor,
		    janitor_failing_peer(peers[i], "unreachable"),
		    ENTRIES("create a"));
	}
	test_janitord(janitor.node, NULL);
	for (size_t i = 0; i < COUNT(statuses); i++)
		cr_expect(test_peer_got(peers[i], INFO_PATH, 1, SOON_MS));
	cr_expect_eq(test_daemon_stop(&janitor.node->daemons[0]), 0);
	cr_expect_eq(
	    janitor_count("federation_peers WHERE next_attempt_at > now() + "
			  "interval '23 hours'"),
	    (int64_t)COUNT(statuses));
	for (size_t i = 0; i < COUNT(statuses); i++)
		test_peer_free(&peers[i]);
}

Test(probe, a_peer_that_is_back_gets_everything_without_an_administrator)
{
	struct test_peer *peer = test_peer_new("orbit.localhost", NULL, NULL);
	int64_t id = janitor_failing_peer(peer, "unreachable");

	site_enqueue(
	    &janitor, id, ENTRIES("create a", "create b", "create c @other"));
	test_outboxd(janitor.node, NULL);
	test_janitord(janitor.node, NULL);
	cr_assert(site_drained(&janitor, SOON_MS));
	cr_expect_str_eq(
	    site_told(&janitor, peer), "create a, create b, create c");
	cr_expect_eq(
	    janitor_count("federation_peers WHERE status = 'active' AND "
			  "transport_failures = 0"),
	    1);
	test_peer_free(&peer);
}

/* Info answers, the relay does not. */
static void half_dead(void *arg UNUSED, struct arena *memory UNUSED,
    const struct test_peer_request *request, struct test_peer_answer *answer)
{
	if (strcmp(request->path, RELAY_PATH) == 0)
		answer->status = 502;
}

Test(probe, a_peer_that_answers_here_and_refuses_batches_stays_unreachable)
{
	struct test_peer *peer =
	    test_peer_new("orbit.localhost", half_dead, NULL);
	int64_t id = janitor_failing_peer(peer, "unreachable");

	site_enqueue(&janitor, id, ENTRIES("create a"));
	test_outboxd(janitor.node, NULL);
	test_janitord(janitor.node, NULL);
	cr_expect(janitor_soon(
	    "EXISTS (SELECT FROM federation_peers WHERE "
	    "transport_failures = 11 AND status = 'unreachable' AND "
	    "lease_worker IS NULL AND next_attempt_at > now() + "
	    "interval '23 hours')"));
	/* The failed trial does not begin the row of probes anew. */
	janitor_sql(
	    "UPDATE federation_peers SET last_failure_at = now() - interval "
	    "'45 seconds', last_probe_at = now() - interval '46 seconds'");
	cr_expect_not(test_peer_got(peer, INFO_PATH, 2, 2200));
	janitor_sql(
	    "UPDATE federation_peers SET last_failure_at = now() - interval "
	    "'67 seconds', last_probe_at = now() - interval '68 seconds'");
	cr_expect(test_peer_got(peer, RELAY_PATH, 2, SOON_MS));
	cr_expect(janitor_soon(
	    "EXISTS (SELECT FROM federation_peers WHERE "
	    "transport_failures = 12 AND status = 'unreachable' AND "
	    "probes = 2)"));
	test_peer_free(&peer);
}

static void lying(void *arg UNUSED, struct arena *memory UNUSED,
    const struct test_peer_request *request UNUSED,
    struct test_peer_answer *answer)
{
	answer->body = "<html>welcome</html>";
}

Test(probe, a_peer_nothing_waits_for_becomes_active_by_an_empty_relay_only)
{
	struct test_peer *well = test_peer_new("orbit.localhost", NULL, NULL);
	struct test_peer *dead =
	    test_peer_new("luna.localhost", half_dead, NULL);
	struct test_peer *liar = test_peer_new("mars.localhost", lying, NULL);
	struct test_peer_request request;

	janitor_failing_peer(well, "unreachable");
	janitor_failing_peer(dead, "unreachable");
	janitor_failing_peer(liar, "unreachable");
	test_outboxd(janitor.node, NULL);
	test_janitord(janitor.node, NULL);
	cr_assert(test_peer_got(well, RELAY_PATH, 1, SOON_MS));
	cr_expect(test_peer_got(dead, RELAY_PATH, 1, SOON_MS));
	cr_expect(test_peer_got(liar, RELAY_PATH, 1, SOON_MS));
	cr_expect(
	    janitor_soon("(SELECT count(*) FROM s2s_requests WHERE answered_at "
			 "IS NOT NULL) = 3"));
	cr_expect(
	    janitor_soon("EXISTS (SELECT FROM federation_peers WHERE status = "
			 "'active' AND transport_failures = 0)"));
	cr_expect_eq(
	    janitor_count("federation_peers WHERE status = 'active'"), 1);
	request = test_peer_nth(well, RELAY_PATH, 0);
	cr_expect_str_eq(
	    arena_textn(janitor.arena, request.body.data, request.body.len),
	    arena_printf(janitor.arena,
		"{\"version\":1,\"sourceInstance\":\"%s\",\"events\":[]}",
		janitor.node->origin));
	cr_expect_not_null(test_peer_header(
	    janitor.arena, &request, "x-federation-signature"));
	cr_expect_eq(test_peer_count(well, INFO_PATH), 0);
	test_peer_free(&well);
	test_peer_free(&dead);
	test_peer_free(&liar);
}

struct claim {
	int64_t peer;
};

static const struct shape claim_shape[] = {
	SHAPE(ID, struct claim, peer, NULL),
	SHAPE_END(struct claim),
};

static size_t claimed(struct tx *tx)
{
	struct rows rows;
	struct err err = { 0 };

	cr_assert(
	    sql_many(tx, &SQL_probe_claim, claim_shape, &rows, &err, v_int(10)),
	    "%s", err.text);
	return rows.count;
}

Test(probe, two_leaders_never_ask_the_same_peer)
{
	AUTO(conn_free) struct conn *one = test_db_conn(janitor.db);
	AUTO(conn_free) struct conn *two = test_db_conn(janitor.db);
	AUTO(tx_end) struct tx *a = tx_new(one, janitor.arena);
	AUTO(tx_end) struct tx *b = tx_new(two, janitor.arena);
	struct test_peer *peer = test_peer_new("orbit.localhost", NULL, NULL);
	struct err err = { 0 };

	site_enqueue(&janitor, janitor_failing_peer(peer, "unreachable"),
	    ENTRIES("create a"));
	cr_expect_eq(claimed(a), 1);
	cr_expect_eq(claimed(b), 0);
	cr_expect(tx_commit(a, &err));
	cr_expect_eq(claimed(b), 0);
	test_peer_free(&peer);
}
