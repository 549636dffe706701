/* Both rotate, the peer rotates, time does; and who may not. */
#include <signal.h>

#include <criterion/criterion.h>

#include "tests/integration/rotation_site.h"
#include "tests/lib/test_db.h"

TestSuite(rotation_take, .fini = rotation_site_end, .timeout = 300);

/* ---- both at once ---- */

Test(rotation_take, both_rotate_at_once_and_end_with_one_secret)
{
	test_db_needed();
	two_nodes();
	for (int round = 0; round < 8; round++) {
		struct world_call *a, *b;
		struct test_reply ours, orbits;

		a = world_rotate_begin(nova, orbit->node->origin);
		b = world_rotate_begin(orbit, nova->node->origin);
		ours = world_ended(&a);
		orbits = world_ended(&b);
		cr_expect(ours.status == 200 || orbits.status == 200,
		    "round %d: %s %s", round, ours.body, orbits.body);
		expect_one_secret();
	}
}

Test(rotation_take, the_smaller_origins_rotation_stands)
{
	struct world_call *call;
	struct test_reply reply;

	test_db_needed();
	one_node("luna.localhost");
	script.rotate[script.count++] = (struct test_peer_answer){
		.status = 409, .body = IN_PROGRESS, .hold_ms = 1000
	};
	call = world_rotate_begin(nova, origin());
	cr_assert(test_peer_got(luna, ROTATE, 1, WAIT_MS));
	reply = world_rotate_by(nova, origin(), OLD, THEIRS);
	cr_expect_str_eq(reply.body, TAKEN);
	cr_expect_eq(world_ended(&call).status, 409);
	cr_expect_str_eq(state(nova), "peer grace");
	expect_delivery_with(THEIRS);
	cr_expect_eq(relay(nova, origin(), sent(0)), 401);
}

Test(rotation_take, the_greater_origins_rotation_is_refused_meanwhile)
{
	struct world_call *call;

	test_db_needed();
	one_node("zeta.localhost");
	script.rotate[script.count++] = (struct test_peer_answer){
		.status = 200, .body = TAKEN, .hold_ms = 1000
	};
	call = world_rotate_begin(nova, origin());
	cr_assert(test_peer_got(luna, ROTATE, 1, WAIT_MS));
	cr_expect_eq(world_rotate_by(nova, origin(), OLD, THEIRS).status, 409);
	cr_expect_eq(world_ended(&call).status, 200);
	cr_expect_eq(world_rotate_by(nova, origin(), OLD, THEIRS).status, 409);
	expect_delivery_with(sent(0));
}

/* ---- the peer rotates ---- */

Test(rotation_take, the_peers_request_is_checked_in_order)
{
	static const struct {
		const char *origin; /* NULL: the peer's */
		const char *secret;
		const char *body;
		int status;
		const char *text;
	} rows[] = {
		{ "https://unknown.example", OLD, "{}", 403,
		    "Unknown or inactive peer" },
		{ NULL, OTHER, "{", 401, "Invalid signature" },
		{ NULL, OLD, "{}", 400,
		    "newSecret must be a 64-character hex string" },
		{ NULL, OLD, "{\"newSecret\":\"short\"}", 400, "64-char" },
		{ NULL, OLD, "{\"newSecret\":7}", 400, "64-char" },
		{ NULL, OLD, "[]", 400, "64-char" },
		{ NULL, OLD, "{", 400, "" },
		{ NULL, OLD,
		    "{\"newSecret\":\"11111111111111111111111111111111"
		    "111111111111111111111111111111BB\"}",
		    400, "64-char" },
		{ NULL, OLD,
		    "{\"newSecret\":\"11111111111111111111111111111111"
		    "1111111111111111111111111111111bb\"}",
		    400, "64-char" },
	};
	struct test_reply reply;

	test_db_needed();
	one_node("luna.localhost");
	reply = test_post(nova->arena, nova->node->port, ROTATE, NULL, "{}");
	cr_expect_eq(reply.status, 401);
	for (size_t i = 0; i < COUNT(rows); i++) {
		reply = world_send(nova,
		    &(const struct signed_request){
			.path = ROTATE,
			.origin = rows[i].origin ? rows[i].origin : origin(),
			.secret = rows[i].secret,
			.body = rows[i].body,
		    });
		cr_expect_eq(
		    reply.status, rows[i].status, "row %zu: %s", i, reply.body);
		cr_expect_not_null(strstr(reply.body, rows[i].text),
		    "row %zu: %s", i, reply.body);
		cr_expect_str_eq(state(nova), "none", "row %zu", i);
	}
}

Test(rotation_take, the_peers_request_may_come_again)
{
	test_db_needed();
	one_node("luna.localhost");
	/* No nonce is asked for: the same bytes serve again. */
	for (int i = 0; i < 2; i++) {
		struct test_reply reply = world_send(nova,
		    &(const struct signed_request){
			.path = ROTATE,
			.origin = origin(),
			.secret = OLD,
			.nonce = "the-same",
			.body = arena_printf(
			    nova->arena, "{\"newSecret\":\"%s\"}", THEIRS),
		    });

		cr_expect_eq(reply.status, 200, "%s", reply.body);
		cr_expect_str_eq(reply.body, TAKEN);
	}
	cr_expect_str_eq(state(nova), "peer grace");
	cr_expect_eq(
	    world_rotate_by(nova, origin(), THEIRS, THEIRS).status, 200);
	cr_expect_eq(world_rotate_by(nova, origin(), OLD, OTHER).status, 409);
	cr_expect_eq(
	    world_rotate_by(nova, origin(), THEIRS, OTHER).status, 409);
	cr_expect_eq(world_rotate(nova, origin()).status, 409);
	expect_delivery_with(THEIRS);
	hours_pass(nova, 1);
	cr_expect_eq(world_rotate_by(nova, origin(), OLD, THEIRS).status, 401);
	cr_expect_eq(
	    world_rotate_by(nova, origin(), THEIRS, THEIRS).status, 200);
	cr_expect_eq(
	    world_rotate_by(nova, origin(), THEIRS, OTHER).status, 200);
	cr_expect_eq(relay(nova, origin(), THEIRS), 200);
	cr_expect_eq(relay(nova, origin(), OTHER), 200);
	cr_expect_eq(relay(nova, origin(), OLD), 401);
}

Test(rotation_take, requests_of_the_peer_count_against_its_rate_once_verified)
{
	test_db_needed();
	one_node("luna.localhost");
	world_sql(
	    nova, "UPDATE instance_settings SET relay_requests_per_minute = 3");
	for (int i = 0; i < 6; i++)
		cr_expect_eq(
		    world_rotate_by(nova, origin(), OTHER, THEIRS).status, 401);
	for (int i = 0; i < 3; i++)
		cr_expect_eq(
		    world_rotate_by(nova, origin(), OLD, THEIRS).status, 200);
	cr_expect_eq(world_rotate_by(nova, origin(), OLD, THEIRS).status, 429);
}

/* ---- by age ---- */

Test(rotation_take, a_secret_of_age_is_rotated_and_a_refusal_not_repeated)
{
	struct test_peer *mars;

	test_db_needed();
	one_node("luna.localhost");
	script.rotate[script.count++] =
	    (struct test_peer_answer){ .status = 409, .body = "{}" };
	test_janitord(nova->node, NULL);
	world_sql(nova,
	    "UPDATE federation_peers SET created_at = now() - interval '31 "
	    "days', auto_rotate_interval_days = 30");
	cr_assert(becomes(nova, "rotation_error LIKE '%409'"));
	/* Another one's is asked for meanwhile, hers is not. */
	mars = test_peer_new("mars.localhost", NULL, NULL);
	cr_assert_eq(
	    world_accept(nova, test_peer_origin(mars), THEIRS).status, 200);
	world_sql(nova,
	    "UPDATE federation_peers SET created_at = now() - interval '91 "
	    "days' WHERE origin = '%s'",
	    test_peer_origin(mars));
	cr_expect(test_peer_got(mars, ROTATE, 1, WAIT_MS));
	cr_expect_eq(test_peer_count(luna, ROTATE), 1);
	hours_pass(nova, 1.1);
	cr_expect(test_peer_got(luna, ROTATE, 2, WAIT_MS));
	cr_assert(becomes(nova, "secret_rotation_at IS NOT NULL"));
	cr_expect_str_neq(sent(0), sent(1));
	test_peer_free(&mars);
}

/* ---- who may not ---- */

Test(rotation_take, only_active_peers_are_asked)
{
	static const char *const states[] = { "unreachable", "pending",
		"awaiting_approval", "revoked" };
	struct test_reply reply;

	test_db_needed();
	one_node("luna.localhost");
	for (size_t i = 0; i < COUNT(states); i++) {
		world_sql(nova, "UPDATE federation_peers SET status = '%s'",
		    states[i]);
		reply = world_rotate(nova, origin());
		cr_expect_eq(reply.status, 400, "%s", states[i]);
		cr_expect_not_null(strstr(reply.body,
		    "\"Can only rotate secrets for active peers\""));
	}
	reply = test_post(nova->arena, nova->node->port,
	    "/api/federation/peers/12345/rotate", nova->token, NULL);
	cr_expect_eq(reply.status, 404);
	reply = test_post(nova->arena, nova->node->port,
	    "/api/federation/peers/x/rotate", nova->token, NULL);
	cr_expect_eq(reply.status, 404);
	reply = test_post(nova->arena, nova->node->port,
	    "/api/federation/peers/12345/rotate",
	    test_person(nova->node, nova->node->port, "alice").token, NULL);
	cr_expect_eq(reply.status, 403);
	cr_expect_eq(test_peer_count(luna, ROTATE), 0);
}

Test(rotation_take, a_revoked_peer_hears_of_no_rotation)
{
	struct world_call *call;
	struct test_reply reply;

	test_db_needed();
	one_node("luna.localhost");
	kill(nova->outboxd->pid, SIGSTOP);
	call = world_rotate_begin(nova, origin());
	cr_assert(test_db_until(nova->node->database,
	    "SELECT count(*) > 0 AS b FROM s2s_requests WHERE kind = 'rotate'",
	    WAIT_MS));
	reply = test_delete(nova->arena, nova->node->port,
	    arena_printf(
		nova->arena, "/api/federation/peers/%s", row(nova, "id")),
	    nova->token);
	cr_expect_eq(reply.status, 200, "%s", reply.body);
	kill(nova->outboxd->pid, SIGCONT);
	cr_expect_eq(world_ended(&call).status, 502);
	cr_expect_eq(test_peer_count(luna, ROTATE), 0);
	cr_expect_eq(world_rotate_by(nova, origin(), OLD, THEIRS).status, 403);
	cr_expect_str_eq(row(nova,
			     "pending_hmac_secret IS NULL AND"
			     " hmac_secret IS NULL"),
	    "true");
}
