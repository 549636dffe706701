/* Somebody comes and claims an origin: what he gets, and what he never gets. */
#include <criterion/criterion.h>

#include "common/base/clock.h"
#include "common/crypto/sign.h"
#include "tests/lib/test_db.h"
#include "tests/lib/test_peer.h"
#include "tests/lib/test_trust.h"

#define ACCEPT "/api/federation/peer/accept"
#define RELAY "/api/federation/relay"
#define EPOCH "/api/federation/epoch"
#define OFFERED "offered-secret"

enum { WAIT_MS = 10000, DEADLINE_MS = 1000 };

static const char *const quick[] = { "handshake_deadline=1s", NULL };

static struct world *nova;
static struct test_peer *luna;

static void end(void)
{
	world_free(&nova);
	test_peer_free(&luna);
}

TestSuite(trust, .fini = end, .timeout = 300);

static void begin(const char *policy, test_peer_script *script, void *arg)
{
	nova = world_new("nova.localhost", policy, quick);
	luna = test_peer_new("luna.localhost", script, arg);
}

static const char *origin(void)
{
	return test_peer_origin(luna);
}

static struct test_reply accept_offer(const char *secret)
{
	return world_accept(nova, origin(), secret);
}

static int relay_with(const char *secret)
{
	return world_relay(nova, origin(), secret).status;
}

static const char *countered_secret(size_t place)
{
	struct test_peer_request request = test_peer_nth(luna, ACCEPT, place);

	return member_text(nova->arena, request.body, "hmacSecret");
}

struct says {
	const char *path;
	struct test_peer_answer answer;
};

static void says(void *arg, struct arena *arena UNUSED,
    const struct test_peer_request *request, struct test_peer_answer *answer)
{
	const struct says *say = arg;

	if (strcmp(request->path, say->path) == 0)
		*answer = say->answer;
}

static bool is_signed_with(
    const struct test_peer_request *request, const char *secret)
{
	struct arena *arena = nova->arena;

	return sign_verify(secret,
	    test_peer_header(arena, request, "x-federation-timestamp"),
	    test_peer_header(arena, request, "x-federation-nonce"),
	    request->body,
	    test_peer_header(arena, request, "x-federation-signature"));
}

/* ---- verify ---- */

Test(trust, the_true_origin_gets_a_fresh_secret_and_is_active_after_its_proof)
{
	struct test_reply reply;
	struct test_peer_request accept, relay;

	test_db_needed();
	begin(NULL, NULL, NULL);
	reply = accept_offer(OFFERED);
	cr_assert_eq(reply.status, 200, "%s", reply.body);
	cr_expect_str_eq(reply.body, "{\"accepted\":true}");
	accept = test_peer_nth(luna, ACCEPT, 0);
	relay = test_peer_nth(luna, RELAY, 0);
	cr_expect(is_signed_with(&accept, OFFERED));
	cr_expect(is_signed_with(&relay, countered_secret(0)));
	cr_expect_str_eq(
	    test_peer_header(nova->arena, &relay, "x-federation-origin"),
	    nova->node->origin);
	cr_expect_neq(strcmp(countered_secret(0), OFFERED), 0);
	cr_expect_eq(relay_with(OFFERED), 401);
	cr_expect_eq(relay_with(countered_secret(0)), 200);
	cr_expect_str_eq(world_status(nova, origin()), "active");
}

Test(trust, a_claim_that_its_origin_does_not_prove_leaves_nothing)
{
	static const struct {
		const char *path;
		struct test_peer_answer answer;
		const char *left;
	} rows[] = {
		{ ACCEPT, { .status = 403, .body = "{}" }, "" },
		{ ACCEPT, { .status = 204 }, "" },
		{ ACCEPT, { .status = 200, .body = "<p>hello</p>" }, "" },
		{ ACCEPT, { .status = 200, .body = "{\"accepted\":false}" },
		    "" },
		{ ACCEPT, { .status = 307, .headers = "Location: /\r\n" }, "" },
		/* Taken, or nobody knows: our secret is kept for a retry. */
		{ ACCEPT, { .status = 0 }, "pending" },
		{ ACCEPT, { .status = 200, .hold_ms = 3000 }, "pending" },
		{ RELAY, { .status = 401, .body = "{}" }, "pending" },
		{ RELAY, { .status = 200, .body = "<p>hello</p>" }, "pending" },
		{ RELAY, { .status = 0 }, "pending" },
	};
	struct says say = { 0 };

	test_db_needed();
	begin(NULL, says, &say);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct test_reply reply;

		say = (struct says){ rows[i].path, rows[i].answer };
		reply = accept_offer(OFFERED);
		cr_expect_eq(reply.status, 403, "row %zu", i);
		cr_expect_str_eq(reply.body,
		    "{\"error\":\"Could not verify the claimed origin\","
		    "\"statusCode\":403}",
		    "row %zu: %s", i, reply.body);
		cr_expect_str_eq(
		    world_status(nova, origin()), rows[i].left, "row %zu", i);
		cr_expect_neq(relay_with(OFFERED), 200, "row %zu", i);
		world_sql(nova,
		    "DELETE FROM federation_peers;"
		    "DELETE FROM s2s_requests");
	}
}

/* What newer servers call themselves is kept from the origin's own answer. */
Test(trust, a_name_is_believed_when_its_origin_tells_it)
{
	struct says say = { ACCEPT,
		{ .status = 200,
		    .body = "{\"accepted\":true,\"instanceName\":\"Luna\","
			    "\"instanceId\":\"an-id\"}" } };
	struct test_reply reply;

	test_db_needed();
	begin(NULL, says, &say);
	reply = test_post(nova->arena, nova->node->port, ACCEPT, NULL,
	    arena_printf(nova->arena,
		"{\"sourceOrigin\":\"%s\",\"hmacSecret\":\"" OFFERED "\","
		"\"instanceName\":\"Evil\",\"instanceId\":\"evil\","
		"\"more\":[{}]}",
		origin()));
	cr_expect_eq(reply.status, 200, "%s", reply.body);
	cr_expect_str_eq(test_db_text(nova->arena, nova->node->database,
			     "SELECT instance_name || ' ' || instance_id AS t"
			     " FROM federation_peers"),
	    "Luna an-id");
}

Test(trust, a_bad_name_is_left_out)
{
	struct says say = { ACCEPT,
		{ .status = 200,
		    .body =
			"{\"accepted\":true,\"instanceName\":7,"
			"\"instanceId\":\"0123456789012345678901234567890123"
			"4567890123456789012345678901234567890\"}" } };

	test_db_needed();
	begin(NULL, says, &say);
	cr_expect_eq(world_initiate(nova, origin()).status, 200);
	cr_expect_eq(
	    test_db_number(nova->node->database,
		"SELECT count(*) AS n FROM federation_peers"
		" WHERE instance_name IS NULL AND instance_id IS NULL"),
	    1);
}

static int deny(const char *secret)
{
	return world_send(nova,
	    &(const struct signed_request){
		.path = "/api/federation/peer/denied",
		.origin = origin(),
		.secret = secret,
		.body = arena_printf(nova->arena,
		    "{\"origin\":\"%s\",\"reason\":\"denied_by_admin\","
		    "\"message\":\"no\"}",
		    origin()),
	    })
	    .status;
}

Test(trust, only_what_we_asked_for_can_be_denied_and_only_by_whom_we_asked)
{
	struct says say = { ACCEPT,
		{ .status = 202,
		    .body = "{\"queued\":true,\"approvalToken\":\"tok\"}" } };

	test_db_needed();
	begin(NULL, says, &say);
	cr_expect_eq(deny("nothing"), 403);
	cr_expect_eq(world_initiate(nova, origin()).status, 200);
	cr_expect_eq(deny("planted"), 401);
	cr_expect_str_eq(world_status(nova, origin()), "awaiting_approval");
	cr_expect_eq(deny(countered_secret(0)), 200);
	cr_expect_str_eq(world_status(nova, origin()), "");
	say.path = "/none";
	cr_expect_eq(world_initiate(nova, origin()).status, 200);
	cr_expect_eq(deny(countered_secret(1)), 403);
	cr_expect_str_eq(world_status(nova, origin()), "active");
}

/* Refuses what is not signed with the secret she offered, but not at once. */
static void refuses_late(void *arg UNUSED, struct arena *arena UNUSED,
    const struct test_peer_request *request, struct test_peer_answer *answer)
{
	if (strcmp(request->path, ACCEPT) == 0 &&
	    !is_signed_with(request, OFFERED))
		*answer = (struct test_peer_answer){
			.status = 403,
			.body = "{}",
			.hold_ms = 700,
		};
}

Test(trust, another_ones_proof_is_no_yes_to_a_planted_accept)
{
	struct world_call *planted;
	struct test_reply reply;

	test_db_needed();
	begin(NULL, refuses_late, NULL);
	planted = world_accept_begin(nova, origin(), "planted");
	cr_assert(test_peer_got(luna, ACCEPT, 1, WAIT_MS));
	reply = accept_offer(OFFERED);
	cr_expect_eq(reply.status, 200, "%s", reply.body);
	cr_expect_str_eq(world_status(nova, origin()), "active");
	reply = world_ended(&planted);
	cr_expect_eq(reply.status, 403, "%s", reply.body);
	cr_expect_eq(relay_with("planted"), 401);
	cr_expect_eq(relay_with(countered_secret(0)), 200);
}

Test(trust, a_counter_that_somebody_else_asked_for_is_refused_by_an_active_node)
{
	const char *secret;

	test_db_needed();
	begin(NULL, NULL, NULL);
	cr_assert_eq(accept_offer(OFFERED).status, 200);
	secret = countered_secret(0);
	cr_expect_eq(
	    world_counter(nova, origin(), secret, "planted", false).status,
	    403);
	cr_expect_eq(
	    world_counter(nova, origin(), "other", secret, false).status, 409);
	cr_expect_eq(
	    world_counter(nova, origin(), secret, secret, false).status, 200);
	cr_expect_eq(accept_offer(secret).status, 200);
	cr_expect_eq(relay_with(secret), 200);
}

Test(trust, a_retry_gets_the_same_secret_and_a_late_proof_counts)
{
	struct says say = { RELAY, { .status = 0 } };

	test_db_needed();
	begin(NULL, says, &say);
	cr_expect_eq(accept_offer(OFFERED).status, 403);
	cr_expect_eq(accept_offer("another").status, 403);
	cr_expect_str_eq(countered_secret(0), countered_secret(1));
	cr_expect_str_eq(world_status(nova, origin()), "pending");
	cr_expect_eq(relay_with(countered_secret(0)), 200);
	cr_expect_str_eq(world_status(nova, origin()), "active");
}

Test(trust, a_killed_outboxd_loses_no_secret_that_was_taken)
{
	struct says say = { RELAY, { .status = 200, .hold_ms = 5000 } };
	struct test_reply reply;

	test_db_needed();
	begin(NULL, says, &say);
	world_sql(nova, "INSERT INTO federation_allowed_origins VALUES ('x')");
	{
		const char *request = arena_printf(nova->arena,
		    "POST " ACCEPT " HTTP/1.1\r\nHost: x\r\n"
		    "Content-Type: application/json\r\n"
		    "Content-Length: %zu\r\n\r\n"
		    "{\"sourceOrigin\":\"%s\",\"hmacSecret\":\"s\"}",
		    strlen(origin()) +
			strlen("{\"sourceOrigin\":\"\",\"hmacSecret\":\"s\"}"),
		    origin());
		int fd = test_http_connect(nova->node->port);

		cr_assert(test_http_write(fd, request, strlen(request)));
		cr_assert(test_peer_got(luna, RELAY, 1, WAIT_MS));
		test_daemon_kill(nova->outboxd);
		reply = test_http_read(nova->arena, fd);
	}
	cr_expect_eq(reply.status, 403, "%s", reply.body);
	cr_expect_str_eq(world_status(nova, origin()), "pending");
	cr_expect_eq(relay_with(countered_secret(0)), 200);
	cr_expect_str_eq(world_status(nova, origin()), "active");
}

static void expect_late_refusal(const char *target)
{
	int64_t ms = clock_steady_ms();
	struct test_reply reply = world_accept(nova, target, "s");

	ms = clock_steady_ms() - ms;
	cr_expect_eq(reply.status, 403, "%s: %s", target, reply.body);
	cr_expect_str_eq(reply.body,
	    "{\"error\":\"Could not verify the claimed origin\","
	    "\"statusCode\":403}");
	cr_expect(ms >= DEADLINE_MS - 20 && ms < DEADLINE_MS + 500,
	    "%s: %" PRId64 " ms", target, ms);
}

Test(trust, open_and_closed_and_forbidden_ports_look_alike)
{
	static const char *const guarded[] = { "allow_private_addresses=off",
		NULL };

	test_db_needed();
	begin(NULL, NULL, NULL);
	expect_late_refusal("http://closed.localhost:1");
	expect_late_refusal(arena_printf(
	    nova->arena, "http://frontd.localhost:%d", nova->node->port));
	test_daemon_stop(nova->outboxd);
	test_outboxd(nova->node, guarded);
	expect_late_refusal("https://169.254.169.254");
	expect_late_refusal("https://10.0.0.1:8443");
	expect_late_refusal(origin());
	cr_expect_eq(test_peer_count(luna, NULL), 0);
}

Test(trust, callbacks_to_one_host_are_counted)
{
	struct says say = { ACCEPT, { .status = 403 } };

	test_db_needed();
	begin(NULL, says, &say);
	world_sql(nova,
	    "INSERT INTO s2s_requests (kind, origin, deadline) "
	    "SELECT 'counter', 'http://luna.localhost:' || n, now() "
	    "FROM generate_series(1, 5) n");
	cr_expect_eq(accept_offer("s").status, 429);
	cr_expect_eq(test_peer_count(luna, NULL), 0);
	world_sql(nova,
	    "DELETE FROM s2s_requests;"
	    "INSERT INTO s2s_requests (kind, origin, deadline) "
	    "SELECT 'counter', 'http://h' || n || '.localhost', now() "
	    "FROM generate_series(1, 60) n");
	cr_expect_eq(accept_offer("s").status, 429);
	world_sql(nova,
	    "UPDATE s2s_requests SET created_at = "
	    "now() - interval '61 seconds'");
	cr_expect_eq(accept_offer("s").status, 403);
	cr_expect_eq(test_peer_count(luna, NULL), 1);
}

Test(trust, our_own_origin_is_refused_under_every_port)
{
	test_db_needed();
	begin(NULL, NULL, NULL);
	cr_expect_eq(world_accept(nova, nova->node->origin, "s").status, 400);
	cr_expect_eq(
	    world_accept(nova, "http://nova.localhost:1", "s").status, 400);
	cr_expect_eq(world_initiate(nova, nova->node->origin).status, 400);
}

/* ---- who is known already ---- */

Test(trust, a_live_peers_secret_is_never_replaced)
{
	static const char *const statuses[] = { "active", "unreachable" };

	test_db_needed();
	begin("open", NULL, NULL);
	cr_expect_eq(accept_offer(OFFERED).status, 200);
	world_sql(
	    nova, "UPDATE instance_settings SET peer_accept_policy = 'verify'");
	for (size_t i = 0; i < COUNT(statuses); i++) {
		struct test_reply reply;

		world_sql(nova, "UPDATE federation_peers SET status = '%s'",
		    statuses[i]);
		reply = accept_offer("another");
		cr_expect_eq(reply.status, 409, "%s", reply.body);
		cr_expect_str_eq(test_text(nova->arena, &reply, "code"),
		    "PEER_EXISTS_RESET_REQUIRED");
		cr_expect_eq(accept_offer(OFFERED).status, 200);
		cr_expect_eq(relay_with("another"), 401);
		cr_expect_eq(relay_with(OFFERED), 200);
	}
	world_sql(nova, "UPDATE federation_peers SET status = 'revoked'");
	cr_expect_eq(accept_offer(OFFERED).status, 403);
	cr_expect_eq(relay_with(OFFERED), 403);
	cr_expect_eq(
	    world_accept(nova, "http://luna.localhost:7", "s").status, 403);
	cr_expect_eq(test_peer_count(luna, NULL), 0);
}

/* ---- approve ---- */

Test(trust, an_approval_completes_the_handshake)
{
	struct test_reply reply;
	struct test_peer_request accept;
	const char *token;

	test_db_needed();
	begin("approve", NULL, NULL);
	reply = accept_offer(OFFERED);
	cr_assert_eq(reply.status, 202, "%s", reply.body);
	token = test_text(nova->arena, &reply, "approvalToken");
	cr_expect_not_null(token);
	cr_expect_eq(test_peer_count(luna, NULL), 0);
	cr_expect_eq(relay_with(OFFERED), 403);
	world_sql(nova, "SELECT ops.peer_approve('%s')", origin());
	cr_assert(test_db_until(nova->node->database,
	    "SELECT bool_and(status = 'active') AS b FROM federation_peers",
	    WAIT_MS));
	accept = test_peer_nth(luna, ACCEPT, 0);
	cr_expect(is_signed_with(&accept, OFFERED));
	cr_expect_str_eq(
	    member_text(nova->arena, accept.body, "approvalToken"), token);
	cr_expect_eq(relay_with(countered_secret(0)), 200);
	cr_expect_eq(relay_with(OFFERED), 401);
}

Test(trust, the_approval_token_goes_to_whoever_made_the_offer_only)
{
	struct test_reply mine, same, other;

	test_db_needed();
	begin("approve", NULL, NULL);
	mine = accept_offer(OFFERED);
	same = accept_offer(OFFERED);
	other = accept_offer("another");
	cr_expect_str_eq(same.body, mine.body);
	cr_expect_eq(other.status, 202);
	cr_expect_neq(strcmp(other.body, mine.body), 0);
}

Test(trust, a_denied_origin_is_refused_and_an_allowed_one_need_not_wait)
{
	test_db_needed();
	begin("approve", NULL, NULL);
	cr_expect_eq(accept_offer(OFFERED).status, 202);
	world_sql(nova, "SELECT ops.peer_deny('%s')", origin());
	cr_expect_eq(accept_offer(OFFERED).status, 403);
	world_sql(nova, "DELETE FROM federation_peers");
	world_sql(nova, "SELECT ops.peer_allow('%s')", origin());
	cr_expect_eq(accept_offer(OFFERED).status, 200);
	cr_expect_eq(relay_with(countered_secret(0)), 200);
}

Test(trust, a_queued_initiator_takes_the_secret_of_who_knows_its_token)
{
	struct says say = { ACCEPT,
		{ .status = 202,
		    .body = "{\"queued\":true,\"approvalToken\":\"tok\"}" } };

	test_db_needed();
	begin(NULL, says, &say);
	cr_expect_eq(world_initiate(nova, origin()).status, 200);
	cr_expect_str_eq(world_status(nova, origin()), "awaiting_approval");
	cr_expect_eq(test_post(nova->arena, nova->node->port, ACCEPT, NULL,
			 arena_printf(nova->arena,
			     "{\"sourceOrigin\":\"%s\",\"hmacSecret\":\"new\","
			     "\"approvalToken\":\"tok\"}",
			     origin()))
			 .status,
	    200);
	cr_expect_str_eq(world_status(nova, origin()), "active");
	cr_expect_eq(relay_with("new"), 200);
}

/* ---- epoch ---- */

static struct test_reply epoch(const char *secret, const char *timestamp)
{
	return world_send(nova,
	    &(const struct signed_request){
		.path = EPOCH,
		.origin = origin(),
		.secret = secret,
		.body = "{}",
		.nonce = "the-same",
		.timestamp = timestamp,
	    });
}

static void expect_epoch(const char *secret)
{
	struct test_reply reply = epoch(secret, NULL);

	cr_assert_eq(reply.status, 200, "%s: %s", secret, reply.body);
	cr_expect_not_null(test_text(nova->arena, &reply, "instanceId"));
	cr_expect(sign_verify(secret,
	    test_header(nova->arena, &reply, "x-federation-timestamp"),
	    test_header(nova->arena, &reply, "x-federation-nonce"),
	    (struct bytes){ reply.body, reply.body_len },
	    test_header(nova->arena, &reply, "x-federation-signature")));
}

Test(trust, an_epoch_question_is_answered_with_the_secret_it_was_asked_with)
{
	test_db_needed();
	begin(NULL, NULL, NULL);
	cr_expect_eq(epoch(OFFERED, NULL).status, 403);
	cr_expect_eq(accept_offer(OFFERED).status, 200);
	expect_epoch(OFFERED);
	expect_epoch(countered_secret(0));
	expect_epoch(countered_secret(0)); /* no nonce is remembered */
	cr_expect_eq(epoch("another", NULL).status, 401);
	cr_expect_eq(epoch(OFFERED, "1000").status, 401);
	cr_expect_eq(epoch(OFFERED, "soon").status, 400);
	world_sql(nova,
	    "UPDATE s2s_requests SET created_at = "
	    "now() - interval '61 seconds'");
	cr_expect_eq(epoch(OFFERED, NULL).status, 401);
	world_sql(nova, "UPDATE federation_peers SET status = 'revoked'");
	cr_expect_eq(epoch(countered_secret(0), NULL).status, 403);
}
