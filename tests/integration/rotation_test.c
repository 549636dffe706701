/* Two nodes change their secret, whatever happens meanwhile. */
#include <signal.h>

#include <criterion/criterion.h>

#include "tests/integration/rotation_site.h"
#include "tests/lib/test_db.h"

TestSuite(rotation, .fini = rotation_site_end, .timeout = 300);

/* ---- as it should be ---- */

Test(rotation, both_verify_for_the_grace_and_then_only_the_new_one)
{
	const char *before, *after;
	struct test_reply reply;

	test_db_needed();
	two_nodes();
	before = world_secret(nova, orbit->node->origin);
	reply = world_rotate(nova, orbit->node->origin);
	cr_expect_eq(reply.status, 200);
	cr_expect_str_eq(reply.body, DONE);
	after = world_secret(nova, orbit->node->origin);
	cr_expect_str_neq(before, after);
	cr_expect_str_eq(world_secret(orbit, nova->node->origin), after);
	expect_both(before, 200);
	expect_both(after, 200);
	reply = world_rotate(nova, orbit->node->origin);
	cr_expect_eq(reply.status, 409);
	cr_expect_str_eq(reply.body, IN_PROGRESS);
	cr_expect_eq(world_rotate(orbit, nova->node->origin).status, 409);
	hours_pass(nova, 0.24);
	hours_pass(orbit, 0.24);
	expect_both(before, 200);
	/* Nobody tidies: there is no janitord. */
	hours_pass(nova, 0.01);
	hours_pass(orbit, 0.01);
	expect_both(before, 401);
	expect_both(after, 200);
	cr_expect_str_eq(state(nova), "us grace");
	reply = test_get(nova->arena, nova->node->port, "/api/federation/peers",
	    nova->token);
	cr_expect_not_null(strstr(reply.body, "\"rotationInProgress\":false"));
	cr_expect_gt(
	    test_number(nova->arena, &reply, "peers.0.secretRotatedAt"), 0);
	reply = world_rotate(orbit, nova->node->origin);
	cr_expect_eq(reply.status, 200, "%s", reply.body);
	expect_both(after, 200);
	expect_both(world_secret(nova, orbit->node->origin), 200);
	expect_both(before, 401);
}

Test(rotation, the_old_one_signs_until_the_peer_has_the_new_one)
{
	struct world_call *call;
	struct test_reply reply;

	test_db_needed();
	one_node("luna.localhost");
	script.rotate[script.count++] = (struct test_peer_answer){
		.status = 200, .body = TAKEN, .hold_ms = 1500
	};
	call = world_rotate_begin(nova, origin());
	cr_assert(test_peer_got(luna, ROTATE, 1, WAIT_MS));
	cr_expect(is_signed_with(ROTATE, 0, OLD));
	cr_expect_str_eq(state(nova), "us unknown");
	cr_expect_eq(world_rotate(nova, origin()).status, 409);
	expect_delivery_with(OLD);
	cr_expect_eq(relay(nova, origin(), OLD), 200);
	reply = world_ended(&call);
	cr_expect_str_eq(reply.body, DONE);
	expect_delivery_with(sent(0));
	cr_expect_eq(relay(nova, origin(), OLD), 200);
	cr_expect_eq(relay(nova, origin(), sent(0)), 200);
}

/* A lease that is held over the change, too. */
Test(rotation, who_is_sending_changes_over_at_once)
{
	test_db_needed();
	one_node("luna.localhost");
	script.relay = (struct test_peer_answer){ .status = 200,
		.hold_ms = 1000,
		.body = "{\"accepted\":[],\"rejected\":[]}" };
	world_sql(nova,
	    "INSERT INTO federation_outbox (peer_id, context_type, context_id,"
	    " event_type, entity_id, payload, expires_at)"
	    " SELECT id, 'dm', n, 'delete', n, '', now() + '1 day'"
	    " FROM federation_peers, generate_series(1, 300) n");
	cr_assert(test_peer_got(luna, RELAY, 1, WAIT_MS));
	cr_expect_eq(world_rotate(nova, origin()).status, 200);
	script.relay.status = -1;
	cr_assert(becomes(nova,
	    "NOT EXISTS (SELECT FROM federation_outbox"
	    " WHERE retry_at IS NULL)"));
	cr_expect(is_signed_with(RELAY, 0, OLD));
	cr_expect(
	    is_signed_with(RELAY, test_peer_count(luna, RELAY) - 1, sent(0)));
}

/* ---- refusals and silence ---- */

Test(rotation, a_refused_one_leaves_the_old_secret_and_can_be_tried_again)
{
	static const struct {
		struct test_peer_answer answer;
		int status;
		const char *text;
		const char *left;
	} rows[] = {
		{ { .status = 409, .body = IN_PROGRESS }, 502,
		    "wait for it to complete\",\"statusCode\":502}", "none" },
		{ { .status = 404, .body = "<p>" }, 502, "status 404", "none" },
		{ { .status = 401,
		      .body = "{\"error\":\"Invalid signature\"}" },
		    502, "Invalid signature", "none" },
		/* Nobody knows: kept, and sent again. */
		{ { .status = 500 }, 502, "status 500", "us unknown" },
		{ { .status = 200, .body = "<p>hello</p>" }, 502, "status 200",
		    "us unknown" },
		{ { .status = 0 }, 502,
		    "Failed to reach remote instance: fetch failed",
		    "us unknown" },
		{ { .status = 200, .hold_ms = 30000 }, 504,
		    "did not respond within 10 seconds", "us unknown" },
	};
	struct test_reply reply;

	test_db_needed();
	one_node("luna.localhost");
	for (size_t i = 0; i < COUNT(rows); i++) {
		script.rotate[script.count++] = rows[i].answer;
		reply = world_rotate(nova, origin());
		cr_expect_eq(reply.status, rows[i].status, "row %zu: %d %s", i,
		    reply.status, reply.body);
		cr_expect_not_null(strstr(reply.body, rows[i].text),
		    "row %zu: %s", i, reply.body);
		cr_expect_str_eq(
		    state(nova), rows[i].left, "row %zu: %s", i, state(nova));
		cr_expect_str_eq(world_secret(nova, origin()), OLD);
		cr_expect_neq(strlen(row(nova, "rotation_error")), 0);
	}
	expect_delivery_with(OLD);
	cr_expect_str_neq(sent(0), sent(1));
	for (size_t i = 4; i < COUNT(rows); i++)
		cr_expect_str_eq(sent(3), sent(i), "row %zu", i);
	reply = world_rotate(nova, origin());
	cr_expect_eq(reply.status, 200, "%s", reply.body);
	cr_expect_str_eq(world_secret(nova, origin()), sent(3));
	expect_delivery_with(sent(3));
}

Test(rotation, nobody_there_leaves_nothing)
{
	test_db_needed();
	one_node("luna.localhost");
	test_peer_free(&luna);
	cr_expect_eq(world_rotate(nova, row(nova, "origin")).status, 502);
	cr_expect_str_eq(state(nova), "none");
	/* Nobody takes the question up. */
	test_daemon_kill(nova->outboxd);
	cr_expect_eq(world_rotate(nova, row(nova, "origin")).status, 504);
	cr_expect_str_eq(state(nova), "none");
	test_daemon_again(nova->outboxd);
	cr_expect_eq(world_rotate(nova, row(nova, "origin")).status, 502);
	/* Nor is a peer asked that an operator has paused. */
	world_sql(
	    nova, "UPDATE federation_peers SET paused_until = 'infinity'");
	cr_expect_eq(world_rotate(nova, row(nova, "origin")).status, 502);
	cr_expect_str_eq(row(nova, "rotation_error"), "peer is paused");
	cr_expect_str_eq(state(nova), "none");
}

Test(rotation, janitord_has_an_unknown_outcome_sent_again)
{
	test_db_needed();
	one_node("luna.localhost");
	script.rotate[script.count++] =
	    (struct test_peer_answer){ .status = 0 };
	script.rotate[script.count++] =
	    (struct test_peer_answer){ .status = 503 };
	cr_expect_eq(world_rotate(nova, origin()).status, 502);
	test_janitord(nova->node, NULL);
	hours_pass(nova, 0.1);
	cr_assert(test_peer_got(luna, ROTATE, 2, WAIT_MS));
	cr_assert(becomes(nova, "rotation_error LIKE '%503'"));
	hours_pass(nova, 0.3);
	cr_assert(becomes(nova, "secret_rotation_at IS NOT NULL"));
	cr_expect_eq(test_peer_count(luna, ROTATE), 3);
	cr_expect_str_eq(sent(0), sent(1));
	cr_expect_str_eq(sent(0), sent(2));
	cr_expect(is_signed_with(ROTATE, 2, OLD));
	hours_pass(nova, 1);
	cr_assert(becomes(nova,
	    "rotation_by IS NULL AND pending_hmac_secret IS NULL AND"
	    " secret_rotated_at < now()"));
	cr_expect_str_eq(world_secret(nova, origin()), sent(0));
}

/* The peer had taken it, and tells nobody: it refuses what looks like another
 * rotation, or what the old secret signs. */
Test(rotation, what_was_taken_without_an_answer_is_found_out)
{
	static const struct test_peer_answer refusals[] = {
		{ .status = 409, .body = IN_PROGRESS },
		{ .status = 401, .body = "{}" },
	};

	test_db_needed();
	one_node("luna.localhost");
	for (size_t i = 0; i < COUNT(refusals); i++) {
		script.rotate[script.count++] =
		    (struct test_peer_answer){ .status = 0 };
		script.rotate[script.count++] = refusals[i];
		cr_expect_eq(world_rotate(nova, origin()).status, 502);
		cr_expect_eq(world_rotate(nova, origin()).status, 200);
		cr_expect_str_eq(sent(2 * i), sent(2 * i + 1));
		cr_expect(is_signed_with(RELAY, i, sent(2 * i)));
		cr_expect_str_eq(state(nova), "us grace");
		hours_pass(nova, 1);
	}
}

Test(rotation, what_was_never_taken_is_forgotten_once_it_cannot_be_any_more)
{
	static const struct {
		int refusal;
		int relay;
		double hours;
		const char *left;
	} rows[] = {
		{ 409, 401, 0, "us unknown" },
		{ 409, 401, 0.4, "us unknown" },
		{ 401, 401, 1, "us unknown" }, /* our clock, perhaps */
		{ 409, 503, 1, "us unknown" },
		{ 409, 401, 1, "none" },
	};

	test_db_needed();
	one_node("luna.localhost");
	script.rotate[script.count++] =
	    (struct test_peer_answer){ .status = 0 };
	cr_expect_eq(world_rotate(nova, origin()).status, 502);
	for (size_t i = 0; i < COUNT(rows); i++) {
		script.rotate[script.count++] =
		    (struct test_peer_answer){ .status = rows[i].refusal,
			    .body = "{}" };
		script.relay =
		    (struct test_peer_answer){ .status = rows[i].relay,
			    .body = "{}" };
		hours_pass(nova, rows[i].hours);
		cr_expect_eq(world_rotate(nova, origin()).status, 502);
		cr_expect_str_eq(state(nova), rows[i].left, "row %zu", i);
	}
	script.relay.status = -1;
	expect_delivery_with(OLD);
}

Test(rotation, the_new_one_in_use_is_an_answer_too)
{
	test_db_needed();
	one_node("luna.localhost");
	script.rotate[script.count++] =
	    (struct test_peer_answer){ .status = 0 };
	cr_expect_eq(world_rotate(nova, origin()).status, 502);
	cr_expect_eq(relay(nova, origin(), OLD), 200);
	cr_expect_str_eq(state(nova), "us unknown");
	cr_expect_eq(relay(nova, origin(), sent(0)), 200);
	cr_expect_str_eq(state(nova), "us grace");
	expect_delivery_with(sent(0));
}

/* ---- crashes ---- */

static void stop(struct test_daemon *daemon)
{
	cr_assert_eq(kill(daemon->pid, SIGSTOP), 0);
}

static void go_on(struct test_daemon *daemon)
{
	cr_assert_eq(kill(daemon->pid, SIGCONT), 0);
}

static bool asked(void)
{
	return test_db_until(nova->node->database,
	    "SELECT count(*) > 0 AS b FROM s2s_requests"
	    " WHERE kind = 'rotate' AND claimed_at IS NOT NULL",
	    WAIT_MS);
}

/* Who asked is gone, and the answer is written down all the same. */
Test(rotation, a_crash_of_frontd_while_asking_costs_nothing)
{
	struct world_call *call;

	test_db_needed();
	two_nodes();
	stop(orbit->frontd);
	call = world_rotate_begin(nova, orbit->node->origin);
	cr_assert(becomes(nova, "rotation_by = 'us'"));
	test_daemon_kill(nova->frontd);
	world_ended(&call);
	go_on(orbit->frontd);
	cr_assert(becomes(nova, "secret_rotation_at IS NOT NULL"));
	test_daemon_again(nova->frontd);
	expect_one_secret();
}

Test(rotation, a_crash_of_outboxd_while_asking_is_made_good)
{
	struct world_call *call;
	struct test_reply reply;

	test_db_needed();
	two_nodes();
	stop(orbit->frontd);
	call = world_rotate_begin(nova, orbit->node->origin);
	cr_assert(becomes(nova, "rotation_by = 'us'"));
	cr_assert(asked());
	test_daemon_kill(nova->outboxd);
	go_on(orbit->frontd);
	reply = world_ended(&call);
	cr_expect_gt(reply.status, 499, "%d %s", reply.status, reply.body);
	cr_expect_str_eq(state(nova), "us unknown");
	test_daemon_again(nova->outboxd);
	test_janitord(nova->node, NULL);
	hours_pass(nova, 0.1);
	cr_assert(becomes(nova, "secret_rotation_at IS NOT NULL"));
	cr_expect_str_eq(state(orbit), "peer grace");
	expect_one_secret();
}

/* It may have taken the secret before it died, or not. */
Test(rotation, a_crash_of_the_peers_frontd_is_made_good)
{
	struct world_call *call;

	test_db_needed();
	two_nodes();
	stop(orbit->frontd);
	call = world_rotate_begin(nova, orbit->node->origin);
	cr_assert(becomes(nova, "rotation_by = 'us'"));
	test_daemon_kill(orbit->frontd);
	cr_expect_gt(world_ended(&call).status, 499);
	cr_expect_str_eq(state(nova), "us unknown");
	test_daemon_again(orbit->frontd);
	test_janitord(nova->node, NULL);
	hours_pass(nova, 0.1);
	cr_assert(becomes(nova, "secret_rotation_at IS NOT NULL"));
	expect_one_secret();
}

/* It took it, its answer was lost, and its grace was over long before ours
 * began. */
Test(rotation, an_answer_that_was_lost_for_an_hour_breaks_nothing)
{
	const char *before, *after;

	test_db_needed();
	two_nodes();
	before = world_secret(nova, orbit->node->origin);
	cr_assert_eq(world_rotate(nova, orbit->node->origin).status, 200);
	after = world_secret(nova, orbit->node->origin);
	hours_pass(orbit, 1);
	world_sql(nova,
	    "UPDATE federation_peers SET secret_rotation_at = NULL,"
	    " rotation_attempt_until = now() - interval '1 minute'");
	cr_expect_str_eq(world_secret(nova, orbit->node->origin), before);
	cr_expect_eq(relay(orbit, nova->node->origin, before), 401);
	test_janitord(nova->node, NULL);
	cr_assert(becomes(nova, "secret_rotation_at IS NOT NULL"));
	cr_expect_str_eq(world_secret(nova, orbit->node->origin), after);
	expect_one_secret();
}
