/* Two nodes come to trust each other, in every order of events. */
#include <signal.h>

#include <criterion/criterion.h>

#include "tests/lib/test_db.h"
#include "tests/lib/test_peer.h"
#include "tests/lib/test_trust.h"

#define ACCEPT "/api/federation/peer/accept"
#define RELAY "/api/federation/relay"

enum { WAIT_MS = 10000 };

static const char *const quick[] = { "handshake_deadline=2s", NULL };

static struct world *nova, *orbit;
static struct test_peer *luna;

static void end(void)
{
	world_free(&nova);
	world_free(&orbit);
	test_peer_free(&luna);
}

TestSuite(handshake, .fini = end, .timeout = 300);

static void one_node(const char *policy, test_peer_script *script, void *arg)
{
	nova = world_new("nova.localhost", policy, quick);
	luna = test_peer_new("luna.localhost", script, arg);
}

static void two_nodes(void)
{
	nova = world_new("nova.localhost", NULL, NULL);
	orbit = world_new("orbit.localhost", NULL, NULL);
}

static void expect_trust(struct world *a, struct world *b)
{
	const char *secret = world_secret(a, b->node->origin);

	cr_expect_str_eq(world_status(a, b->node->origin), "active");
	cr_expect_str_eq(world_status(b, a->node->origin), "active");
	cr_assert_not_null(secret);
	cr_expect_str_eq(secret, world_secret(b, a->node->origin));
	cr_expect_eq(world_relay(a, b->node->origin, secret).status, 200);
	cr_expect_eq(world_relay(b, a->node->origin, secret).status, 200);
}

/* ---- two of ours ---- */

Test(handshake, one_initiates_and_both_are_active_with_the_others_secret)
{
	struct test_reply reply;

	test_db_needed();
	two_nodes();
	reply = world_initiate(nova, orbit->node->origin);
	cr_assert_eq(reply.status, 200, "%s", reply.body);
	cr_expect_str_eq(
	    test_text(nova->arena, &reply, "peer.status"), "active");
	expect_trust(nova, orbit);
	reply = world_initiate(
	    nova, arena_printf(nova->arena, "%s/x?y", orbit->node->origin));
	cr_expect_eq(reply.status, 200, "%s", reply.body);
	reply = world_initiate(orbit, nova->node->origin);
	cr_expect_eq(reply.status, 200, "%s", reply.body);
}

static void part(void)
{
	world_sql(nova,
	    "DELETE FROM federation_peers;"
	    "DELETE FROM s2s_requests;");
	world_sql(orbit,
	    "DELETE FROM federation_peers;"
	    "DELETE FROM s2s_requests;");
}

Test(handshake, both_initiate_at_once_and_end_with_the_same_secret)
{
	test_db_needed();
	two_nodes();
	for (int round = 0; round < 8; round++) {
		struct world_call *a, *b;
		struct test_reply reply;

		a = world_initiate_begin(nova, orbit->node->origin);
		b = world_initiate_begin(orbit, nova->node->origin);
		reply = world_ended(&a);
		cr_expect_eq(
		    reply.status, 200, "round %d: %s", round, reply.body);
		reply = world_ended(&b);
		cr_expect_eq(
		    reply.status, 200, "round %d: %s", round, reply.body);
		expect_trust(nova, orbit);
		part();
	}
}

/* orbit's callback stands still until her own admin has come, too. */
Test(handshake, initiating_amid_a_callback_waits_for_it)
{
	struct world_call *theirs, *ours;
	struct test_reply reply;

	test_db_needed();
	two_nodes();
	kill(orbit->outboxd->pid, SIGSTOP);
	theirs = world_initiate_begin(nova, orbit->node->origin);
	cr_assert(test_db_until(orbit->node->database,
	    "SELECT count(*) > 0 AS b FROM s2s_requests", WAIT_MS));
	ours = world_initiate_begin(orbit, nova->node->origin);
	cr_expect(test_daemon_logged(
	    orbit->frontd, "event=handshake.awaited", WAIT_MS));
	kill(orbit->outboxd->pid, SIGCONT);
	reply = world_ended(&theirs);
	cr_expect_eq(reply.status, 200, "%s", reply.body);
	reply = world_ended(&ours);
	cr_expect_eq(reply.status, 200, "%s", reply.body);
	expect_trust(nova, orbit);
	cr_expect_eq(test_db_number(orbit->node->database,
			 "SELECT count(*) AS n FROM s2s_requests"),
	    1);
}

Test(handshake, works_while_a_stranger_plants_secrets_for_the_initiator)
{
	const char *planted = "planted-secret";
	struct world_call *call;
	struct test_reply reply;

	test_db_needed();
	two_nodes();
	call = world_initiate_begin(nova, orbit->node->origin);
	for (int i = 0; i < 3; i++)
		cr_expect_neq(
		    world_accept(orbit, nova->node->origin, planted).status,
		    200);
	reply = world_ended(&call);
	cr_expect_eq(reply.status, 200, "%s", reply.body);
	cr_expect_eq(
	    world_relay(orbit, nova->node->origin, planted).status, 401);
	expect_trust(nova, orbit);
}

Test(handshake,
    a_crash_of_the_other_frontd_leaves_nothing_that_a_retry_breaks_on)
{
	struct world_call *call;
	struct test_reply reply;

	test_db_needed();
	two_nodes();
	test_daemon_kill(orbit->outboxd);
	call = world_initiate_begin(nova, orbit->node->origin);
	cr_assert(test_db_until(orbit->node->database,
	    "SELECT count(*) > 0 AS b FROM s2s_requests", WAIT_MS));
	test_daemon_kill(orbit->frontd);
	reply = world_ended(&call);
	cr_expect_eq(reply.status, 502, "%s", reply.body);
	cr_expect_str_eq(world_status(nova, orbit->node->origin), "pending");
	test_daemon_again(orbit->frontd);
	test_daemon_again(orbit->outboxd);
	world_initiate(nova, orbit->node->origin);
	reply = world_initiate(nova, orbit->node->origin);
	cr_expect_eq(reply.status, 200, "%s", reply.body);
	expect_trust(nova, orbit);
}

/* ---- we initiate; the other side is scripted ---- */

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

static const char *sent_secret(size_t place)
{
	struct test_peer_request request = test_peer_nth(luna, ACCEPT, place);

	return member_text(nova->arena, request.body, "hmacSecret");
}

Test(handshake, a_node_that_takes_our_word_gets_our_secret)
{
	struct test_reply reply;

	test_db_needed();
	one_node(NULL, NULL, NULL);
	reply = world_initiate(nova, test_peer_origin(luna));
	cr_assert_eq(reply.status, 200, "%s", reply.body);
	cr_expect_eq(
	    world_relay(nova, test_peer_origin(luna), sent_secret(0)).status,
	    200);
	cr_expect_eq(test_peer_count(luna, NULL), 1);
}

Test(handshake, only_a_plain_yes_activates)
{
	static const struct {
		struct test_peer_answer answer;
		int status;
		const char *text;
		const char *left;
	} rows[] = {
		{ { .status = 202,
		      .body = "{\"queued\":true,\"approvalToken\":\"t\"}" },
		    200, "awaiting_approval", "awaiting_approval" },
		{ { .status = 204 }, 502, "status 204", "" },
		{ { .status = 200, .body = "<html></html>" }, 502, "status 200",
		    "" },
		{ { .status = 200, .body = "{\"accepted\":false}" }, 502,
		    "status 200", "" },
		{ { .status = 200, .body = "{\"accepted\":\"true\"}" }, 502,
		    "status 200", "" },
		{ { .status = 403,
		      .body = "{\"error\":\"Peering with this instance has "
			      "been revoked\",\"statusCode\":403}" },
		    502, "Peering with this instance has been revoked", "" },
		{ { .status = 409, .body = "{\"error\":\"reset first\"}" }, 502,
		    "reset first", "" },
		{ { .status = 302, .headers = "Location: /x\r\n" }, 502,
		    "status 302", "" },
		/* Nobody knows: kept, with its secret. */
		{ { .status = 0 }, 502, "Failed to reach remote instance",
		    "pending" },
	};
	struct says say = { .path = ACCEPT };

	test_db_needed();
	one_node(NULL, says, &say);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct test_reply reply;

		say.answer = rows[i].answer;
		reply = world_initiate(nova, test_peer_origin(luna));
		cr_expect_eq(reply.status, rows[i].status, "row %zu: %d %s", i,
		    reply.status, reply.body);
		cr_expect_not_null(strstr(reply.body, rows[i].text),
		    "row %zu: %s", i, reply.body);
		cr_expect_str_eq(world_status(nova, test_peer_origin(luna)),
		    rows[i].left, "row %zu", i);
		world_sql(nova, "DELETE FROM federation_peers");
	}
}

Test(handshake, an_unknown_outcome_is_retried_with_the_same_secret)
{
	struct says say = { .path = ACCEPT };
	struct test_reply reply;

	test_db_needed();
	one_node(NULL, says, &say);
	world_initiate(nova, test_peer_origin(luna));
	/* It had taken our secret: the first signed request says so. */
	cr_expect_eq(
	    world_relay(nova, test_peer_origin(luna), sent_secret(0)).status,
	    200);
	cr_expect_str_eq(world_status(nova, test_peer_origin(luna)), "active");
	world_sql(nova, "UPDATE federation_peers SET status = 'pending'");
	say.path = "/none";
	reply = world_initiate(nova, test_peer_origin(luna));
	cr_expect_eq(reply.status, 200, "%s", reply.body);
	cr_expect_str_eq(sent_secret(0), sent_secret(1));
}

Test(handshake, nobody_there_leaves_nothing)
{
	struct test_reply reply;

	test_db_needed();
	one_node(NULL, NULL, NULL);
	reply = world_initiate(nova, "http://closed.localhost:1");
	cr_expect_eq(reply.status, 502);
	cr_expect_not_null(strstr(
	    reply.body, "Failed to reach remote instance: fetch failed"));
	cr_expect_str_eq(world_status(nova, "http://closed.localhost:1"), "");
}

Test(handshake, a_silent_node_is_given_up_after_ten_seconds_and_409_meanwhile)
{
	struct says say = { ACCEPT, { .status = 200, .hold_ms = 30000 } };
	struct world_call *call;
	struct test_reply reply;

	test_db_needed();
	one_node(NULL, says, &say);
	call = world_initiate_begin(nova, test_peer_origin(luna));
	cr_assert(test_peer_got(luna, ACCEPT, 1, WAIT_MS));
	reply = world_initiate(nova, test_peer_origin(luna));
	cr_expect_eq(reply.status, 409);
	cr_expect_not_null(strstr(reply.body,
	    "A peering handshake with this instance is already in progress"));
	reply = world_ended(&call);
	cr_expect_eq(reply.status, 504, "%s", reply.body);
	cr_expect_not_null(strstr(
	    reply.body, "Remote instance did not respond within 10 seconds"));
	cr_expect_str_eq(world_status(nova, test_peer_origin(luna)), "pending");
}

Test(handshake, our_own_crash_while_asking_keeps_the_secret)
{
	struct says say = { ACCEPT,
		{ .status = 200,
		    .hold_ms = 2000,
		    .body = "{\"accepted\":true}" } };
	struct world_call *call;
	struct test_reply reply;

	test_db_needed();
	one_node(NULL, says, &say);
	call = world_initiate_begin(nova, test_peer_origin(luna));
	cr_assert(test_peer_got(luna, ACCEPT, 1, WAIT_MS));
	test_daemon_kill(nova->frontd);
	test_daemon_kill(nova->outboxd);
	cr_expect_eq(world_ended(&call).status, 0);
	test_daemon_again(nova->frontd);
	test_daemon_again(nova->outboxd);
	cr_expect_eq(world_initiate(nova, test_peer_origin(luna)).status, 409);
	world_sql(nova, "UPDATE federation_peers SET attempt_until = now()");
	reply = world_initiate(nova, test_peer_origin(luna));
	cr_expect_eq(reply.status, 200, "%s", reply.body);
	cr_expect_str_eq(sent_secret(0), sent_secret(1));
}

/* ---- we initiate; the other side counters ---- */

static struct world_call *initiate_and_wait(struct says *say)
{
	struct world_call *call;

	*say = (struct says){ ACCEPT,
		{ .status = 403,
		    .hold_ms = 1500,
		    .body = "{\"error\":\"Could not verify\"}" } };
	one_node(NULL, says, say);
	call = world_initiate_begin(nova, test_peer_origin(luna));
	cr_assert(test_peer_got(luna, ACCEPT, 1, WAIT_MS));
	return call;
}

Test(handshake, a_counter_that_our_secret_signed_is_taken)
{
	struct says say;
	struct world_call *call;
	struct test_reply reply;

	test_db_needed();
	call = initiate_and_wait(&say);
	reply = world_counter(
	    nova, test_peer_origin(luna), "theirs", sent_secret(0), false);
	cr_expect_eq(reply.status, 200, "%s", reply.body);
	cr_expect_str_eq(reply.body, "{\"accepted\":true}");
	cr_expect_eq(
	    world_relay(nova, test_peer_origin(luna), "theirs").status, 200);
	cr_expect_null(world_other_secret(nova, test_peer_origin(luna)));
	reply = world_ended(&call);
	cr_expect_eq(reply.status, 200, "%s", reply.body);
	cr_expect_str_eq(world_secret(nova, test_peer_origin(luna)), "theirs");
}

Test(handshake, a_counter_may_say_that_our_secret_stands)
{
	struct says say;
	struct world_call *call;
	struct test_reply reply;

	test_db_needed();
	call = initiate_and_wait(&say);
	reply = world_counter(
	    nova, test_peer_origin(luna), "theirs", sent_secret(0), true);
	cr_expect_str_eq(
	    reply.body, "{\"accepted\":true,\"yourSecretStands\":true}");
	cr_expect_str_eq(
	    world_secret(nova, test_peer_origin(luna)), sent_secret(0));
	/* Both verify; what the peer uses becomes ours. */
	cr_expect_eq(
	    world_relay(nova, test_peer_origin(luna), "theirs").status, 200);
	cr_expect_str_eq(world_secret(nova, test_peer_origin(luna)), "theirs");
	cr_expect_eq(
	    world_relay(nova, test_peer_origin(luna), sent_secret(0)).status,
	    200);
	cr_expect_eq(
	    world_relay(nova, test_peer_origin(luna), sent_secret(0)).status,
	    200);
	cr_expect_eq(
	    world_relay(nova, test_peer_origin(luna), "theirs").status, 401);
	world_ended(&call);
}

Test(handshake, a_counter_with_any_other_signature_changes_nothing)
{
	struct says say;
	struct world_call *call;

	test_db_needed();
	call = initiate_and_wait(&say);
	cr_expect_eq(world_counter(nova, test_peer_origin(luna), "theirs",
			 "theirs", false)
			 .status,
	    403);
	cr_expect_str_eq(world_status(nova, test_peer_origin(luna)), "pending");
	cr_expect_eq(
	    world_relay(nova, test_peer_origin(luna), "theirs").status, 401);
	cr_expect_eq(
	    world_counter(nova, "http://mars.localhost:9", "x", "x", false)
		.status,
	    403);
	cr_expect_str_eq(world_status(nova, "http://mars.localhost:9"), "");
	cr_expect_eq(world_ended(&call).status, 502);
	cr_expect_str_eq(world_status(nova, test_peer_origin(luna)), "");
}

/* luna is the smaller origin: her secret would stand, if it were hers. */
Test(handshake, a_secret_planted_while_we_initiate_never_becomes_the_peers)
{
	struct says say = { ACCEPT,
		{ .status = 200,
		    .hold_ms = 1000,
		    .body = "{\"accepted\":true}" } };
	struct world_call *call;
	struct test_reply reply;

	test_db_needed();
	one_node(NULL, says, &say);
	call = world_initiate_begin(nova, test_peer_origin(luna));
	cr_assert(test_peer_got(luna, ACCEPT, 1, WAIT_MS));
	reply = world_accept(nova, test_peer_origin(luna), "planted");
	cr_expect_eq(reply.status, 200, "%s", reply.body);
	cr_expect_eq(world_ended(&call).status, 200);
	for (size_t i = 0; i < test_peer_count(luna, ACCEPT); i++)
		cr_expect_str_eq(sent_secret(i), sent_secret(0));
	cr_expect_str_eq(
	    world_secret(nova, test_peer_origin(luna)), sent_secret(0));
	cr_expect_null(world_other_secret(nova, test_peer_origin(luna)));
	cr_expect_eq(
	    world_relay(nova, test_peer_origin(luna), "planted").status, 401);
}

/* She was proved to know her own, and both verify until one is used. */
Test(handshake, the_smaller_origins_secret_stands_once_she_says_so)
{
	struct says say = { ACCEPT,
		{ .status = 200,
		    .hold_ms = 700,
		    .body = "{\"accepted\":true,\"yourSecretStands\":true}" } };
	struct world_call *call;
	struct test_peer_request counter;

	test_db_needed();
	one_node(NULL, says, &say);
	call = world_initiate_begin(nova, test_peer_origin(luna));
	cr_assert(test_peer_got(luna, ACCEPT, 1, WAIT_MS));
	cr_expect_eq(
	    world_accept(nova, test_peer_origin(luna), "hers").status, 200);
	cr_expect_eq(world_ended(&call).status, 200);
	counter = test_peer_nth(luna, ACCEPT, 1);
	cr_expect_not_null(
	    strstr(counter.body.data, "\"yourSecretStands\":true"));
	cr_expect(test_db_until(nova->node->database,
	    "SELECT bool_and(answered_at IS NOT NULL) AS b FROM s2s_requests",
	    WAIT_MS));
	cr_expect_str_eq(world_secret(nova, test_peer_origin(luna)), "hers");
	cr_expect_eq(
	    world_relay(nova, test_peer_origin(luna), "hers").status, 200);
	cr_expect_null(world_other_secret(nova, test_peer_origin(luna)));
}
