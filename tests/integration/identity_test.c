/* The end of identities: a home's demand here, and ours elsewhere. */
#include <criterion/criterion.h>

#include "common/base/clock.h"
#include "common/crypto/sign.h"
#include "tests/lib/test_db.h"
#include "tests/lib/test_peer.h"
#include "tests/lib/test_trust.h"

#define IDENTITY "/api/federation/identity"

enum { WAIT_MS = 15000 };

static struct world *nova;
static struct test_peer *luna, *mars;
static const char *luna_secret;

/* What a scripted peer says of an identity. */
static struct test_peer_answer verdict;

static void script(void *arg, struct arena *arena,
    const struct test_peer_request *request, struct test_peer_answer *answer)
{
	(void)arg;
	(void)arena;
	if (strcmp(request->path, IDENTITY) == 0)
		*answer = verdict;
}

static void begin(void)
{
	static const char *const settings[] = { "rate_limits=off", NULL };

	test_db_needed();
	verdict = (struct test_peer_answer){ .status = 200,
		.body = "{\"success\":true}" };
	nova = world_new("nova.localhost", NULL, settings);
	luna = test_peer_new("luna.localhost", script, NULL);
	cr_assert_eq(world_initiate(nova, test_peer_origin(luna)).status, 200);
	luna_secret = world_secret(nova, test_peer_origin(luna));
}

static void end(void)
{
	world_free(&nova);
	test_peer_free(&luna);
	test_peer_free(&mars);
}

TestSuite(identity, .init = begin, .fini = end, .timeout = 300);

/* ---- a home speaks ---- */

static struct test_reply demand_from(
    const char *origin, const char *secret, const char *body)
{
	struct arena *arena = nova->arena;
	const char *timestamp =
	    arena_printf(arena, "%" PRId64, clock_wall_ms());
	const char *nonce = nonce_fresh(arena);
	char signature[SIGN_TEXT_MAX];
	struct test_request request = {
		.method = "DELETE",
		.path = IDENTITY,
		.body = body,
	};

	sign_make(secret, timestamp, nonce,
	    (struct bytes){ body, strlen(body) }, signature);
	request.headers = arena_printf(arena,
	    "X-Federation-Origin: %s\r\nX-Federation-Timestamp: %s\r\n"
	    "X-Federation-Nonce: %s\r\nX-Federation-Signature: %s\r\n",
	    origin, timestamp, nonce, signature);
	return test_http(arena, nova->node->port, &request);
}

static struct test_reply demand(
    const char *person, const char *home, const char *mode)
{
	return demand_from(test_peer_origin(luna), luna_secret,
	    arena_printf(nova->arena,
		"{\"homeUserId\":\"%s\",\"homeInstance\":\"%s\","
		"\"mode\":\"%s\"}",
		person, home, mode));
}

static int64_t number(const char *query)
{
	return test_db_number(nova->node->database, query);
}

/* zed of luna has written to a person here and reacted; sue of elsewhere has
 * his id. */
static void zed_was_here(void)
{
	world_sql(nova,
	    "INSERT INTO users (id, username, display_name, password_hash,"
	    " home_instance, home_user_id) VALUES"
	    " (501, 'zed@luna.localhost', 'Zed', 'x', 'luna.localhost', '700'),"
	    " (502, '700@far.test', 'Sue', 'x', 'far.test', '700'),"
	    " (503, 'ann', 'Ann', 'x', NULL, NULL);"
	    "INSERT INTO dm_channels (id, pair_low, pair_high)"
	    " VALUES (601, 501, 503);"
	    "INSERT INTO dm_members VALUES (601, 501), (601, 503);"
	    "INSERT INTO dm_messages (id, dm_channel_id, user_id, content)"
	    " VALUES (701, 601, 501, 'hello');"
	    "INSERT INTO dm_reactions (dm_message_id, user_id, emoji)"
	    " VALUES (701, 501, 'x');"
	    "INSERT INTO friends (user_id, friend_id) VALUES (501, 503)");
}

Test(identity, a_home_ends_its_persons_identity_here)
{
	struct test_reply reply;

	zed_was_here();
	reply = demand("700", "LUNA.localhost", "soft");
	cr_expect_eq(reply.status, 200, "%s", reply.body);
	cr_expect_str_eq(reply.body, "{\"success\":true}");
	cr_expect_eq(number("SELECT count(*) AS n FROM users WHERE is_deleted"
			    " AND id = 501 AND display_name IS NULL"
			    " AND home_user_id = '700'"),
	    1);
	cr_expect_eq(number("SELECT count(*) AS n FROM users"
			    " WHERE id = 502 AND NOT is_deleted"),
	    1);
	cr_expect_eq(number("SELECT count(*) AS n FROM friends"), 0);
	cr_expect_eq(number("SELECT count(*) AS n FROM dm_messages"), 1);
	cr_expect_eq(number("SELECT count(*) AS n FROM dm_reactions"), 1);
	cr_expect_eq(number("SELECT count(*) AS n FROM user_events"
			    " WHERE user_id = 503 AND kind = 'user_updated'"),
	    1);
	/* Nothing of it goes out: it is his home's to tell. */
	cr_expect_eq(number("SELECT count(*) AS n FROM federation_outbox"), 0);
	/* Again, it is so already: sue of elsewhere is not meant. */
	world_sql(nova, "DELETE FROM users WHERE id = 502");
	cr_expect_eq(demand("700", "luna.localhost", "full").status, 200);
	cr_expect_eq(number("SELECT count(*) AS n FROM user_events"
			    " WHERE user_id = 503 AND kind = 'user_updated'"),
	    1);
}

Test(identity, in_full_his_reactions_go_too)
{
	zed_was_here();
	cr_expect_eq(demand("700", test_peer_origin(luna), "full").status, 200);
	cr_expect_eq(number("SELECT count(*) AS n FROM dm_reactions"), 0);
	cr_expect_eq(number("SELECT count(*) AS n FROM dm_messages"), 1);
	cr_expect_eq(number("SELECT count(*) AS n FROM conversation_events"
			    " WHERE kind = 'reaction_removed'"),
	    1);
}

static const char *const strange_homes[] = { "far.test", "nova.localhost",
	"evil-luna.localhost", "luna.localhost.evil.test", "luna.localhost:1",
	"https://luna.localhost@evil.test" };

Test(identity, nobody_ends_another_homes_people)
{
	zed_was_here();
	for (size_t i = 0; i < COUNT(strange_homes); i++) {
		struct test_reply reply =
		    demand("700", strange_homes[i], "full");

		cr_expect_eq(reply.status, 403, "%s: %d %s", strange_homes[i],
		    reply.status, reply.body);
	}
	cr_expect_eq(demand("503", "nova.localhost", "full").status, 403);
	cr_expect_eq(demand("503", "luna.localhost", "full").status, 403);
	cr_expect_eq(
	    number("SELECT count(*) AS n FROM users WHERE is_deleted"), 0);
}

static const char *const bad_demands[] = {
	"{}",
	"{\"homeUserId\":\"1\",\"homeInstance\":\"luna.localhost\"}",
	"{\"homeUserId\":\"1\",\"homeInstance\":\"luna.localhost\","
	"\"mode\":\"purge\"}",
	"{\"homeUserId\":1,\"homeInstance\":\"luna.localhost\","
	"\"mode\":\"soft\"}",
	"{\"homeUserId\":\"\",\"homeInstance\":\"luna.localhost\","
	"\"mode\":\"soft\"}",
	"{\"homeUserId\":\"a\\u0000\",\"homeInstance\":\"luna.localhost\","
	"\"mode\":\"soft\"}",
	"{\"homeInstance\":\"luna.localhost\",\"mode\":\"soft\"}",
	"[]",
	"7",
};

Test(identity, demands_that_say_nothing_are_400_and_unsigned_ones_401)
{
	const char *origin = test_peer_origin(luna);
	struct test_request bare = {
		.method = "DELETE",
		.path = IDENTITY,
		.body = "{}",
	};

	zed_was_here();
	for (size_t i = 0; i < COUNT(bad_demands); i++) {
		struct test_reply reply =
		    demand_from(origin, luna_secret, bad_demands[i]);

		cr_expect_eq(reply.status, 400, "%s: %d %s", bad_demands[i],
		    reply.status, reply.body);
	}
	cr_expect_eq(
	    test_http(nova->arena, nova->node->port, &bare).status, 401);
	cr_expect_eq(
	    demand_from(origin, "another secret", bad_demands[0]).status, 401);
	cr_expect_eq(
	    demand_from("https://nobody.test", luna_secret, bad_demands[0])
		.status,
	    403);
	cr_expect_eq(
	    number("SELECT count(*) AS n FROM users WHERE is_deleted"), 0);
}

/* A person whose home has ended his identity does not come back. */
Test(identity, whoever_is_gone_stays_gone)
{
	zed_was_here();
	cr_assert_eq(demand("700", "luna.localhost", "soft").status, 200);
	world_sql(nova,
	    "INSERT INTO friend_requests (from_id, to_id) VALUES (502, 503)");
	cr_expect_eq(number("SELECT count(*) AS n FROM users WHERE"
			    " home_instance = 'luna.localhost'"
			    " AND NOT is_deleted"),
	    0);
}

/* ---- we ask others ---- */

static struct test_person alice;

static struct test_reply leave(const char *origins, const char *mode)
{
	return test_post(nova->arena, nova->node->port,
	    "/api/users/@me/federation-identity/delete", alice.token,
	    arena_printf(nova->arena, "{\"origins\":[%s],\"mode\":\"%s\"}",
		origins, mode));
}

static const char *quoted(const char *text)
{
	return arena_printf(nova->arena, "\"%s\"", text);
}

static void connected(const char *origin)
{
	world_sql(nova,
	    "INSERT INTO user_federation_registry (user_id, origin, status,"
	    " added_at) VALUES (%s, '%s', 'connected', now());"
	    "UPDATE users SET replicated_instances = replicated_instances ||"
	    " jsonb_build_array(jsonb_build_object('origin', '%s',"
	    " 'username', 'alice')) WHERE id = %s",
	    alice.id, origin, origin, alice.id);
}

static int64_t places(void)
{
	return number("SELECT (SELECT count(*) FROM user_federation_registry)"
		      " * 10 + jsonb_array_length(replicated_instances) AS n"
		      " FROM users WHERE username = 'alice'");
}

Test(identity, one_result_an_origin_and_only_what_was_done_is_forgotten)
{
	const char *near = test_peer_origin(luna);
	struct test_reply reply;

	alice = test_person(nova->node, nova->node->port, "alice");
	connected(near);
	connected("https://unknown.test");
	reply = leave(arena_printf(nova->arena,
			  "\"%s\",\"https://unknown.test\",\"%s\"", near, near),
	    "soft");
	cr_assert_eq(reply.status, 200, "%s", reply.body);
	cr_expect_str_eq(reply.body,
	    arena_printf(nova->arena,
		"{\"results\":{\"%s\":{\"success\":true},"
		"\"https://unknown.test\":{\"success\":false,"
		"\"error\":\"no_active_peer\"}}}",
		near));
	cr_expect_eq(test_peer_count(luna, IDENTITY), 1);
	cr_expect_eq(places(), 11);
	reply = leave(quoted("https://unknown.test"), "leave");
	cr_expect(strstr(reply.body, "{\"success\":true}"), "%s", reply.body);
	cr_expect_eq(places(), 0);
	cr_expect_eq(test_peer_count(luna, IDENTITY), 1);
}

Test(identity, what_the_other_side_says_is_handed_on)
{
	static const struct {
		int status;
		const char *body, *want;
	} answers[] = {
		{ 409,
		    "{\"error\":\"owns_spaces\",\"ownedSpaces\":[{\"id\":\"1\","
		    "\"name\":\"S\"}],\"statusCode\":409}",
		    "{\"success\":false,\"error\":\"owns_spaces\","
		    "\"ownedSpaces\":[{\"id\":\"1\",\"name\":\"S\"}]}" },
		{ 403, "{\"error\":\"Attribution mismatch\"}",
		    "{\"success\":false,\"error\":\"Attribution mismatch\"}" },
		{ 500, "oops", "{\"success\":false,\"error\":\"HTTP 500\"}" },
		{ 0, NULL, "{\"success\":false,\"error\":\"unreachable\"}" },
	};
	const char *near = test_peer_origin(luna);

	alice = test_person(nova->node, nova->node->port, "alice");
	connected(near);
	for (size_t i = 0; i < COUNT(answers); i++) {
		struct test_reply reply;

		verdict = (struct test_peer_answer){
			.status = answers[i].status,
			.body = answers[i].body,
		};
		reply = leave(quoted(near), "full");
		cr_expect_eq(reply.status, 200, "%s", reply.body);
		cr_expect_str_eq(reply.body,
		    arena_printf(nova->arena, "{\"results\":{\"%s\":%s}}", near,
			answers[i].want));
	}
	cr_expect_eq(places(), 11);
}

/* Two are asked at once; whoever keeps silent costs its deadline only. */
Test(identity, several_are_asked_at_once)
{
	const char *near = test_peer_origin(luna);
	struct test_reply reply;
	int64_t began;

	mars = test_peer_new("mars.localhost", NULL, NULL);
	cr_assert_eq(world_initiate(nova, test_peer_origin(mars)).status, 200);
	alice = test_person(nova->node, nova->node->port, "alice");
	verdict.hold_ms = 60000;
	began = clock_steady_ms();
	reply = leave(arena_printf(nova->arena, "\"%s\",\"%s\"", near,
			  test_peer_origin(mars)),
	    "soft");
	cr_expect_eq(reply.status, 200, "%s", reply.body);
	cr_expect(
	    strstr(reply.body, "\"error\":\"timeout\""), "%s", reply.body);
	cr_expect_lt(clock_steady_ms() - began, 20000);
	cr_expect_eq(test_peer_count(mars, IDENTITY), 1);
	cr_expect_eq(number("SELECT count(*) AS n FROM s2s_requests"
			    " WHERE kind = 'identity' AND answered_at IS NULL"),
	    0);
}

static const char *const bad_wishes[][2] = {
	{ "", "soft" },
	{ "7", "soft" },
	{ "\"luna\"", "soft" },
	{ "\"https://a.test\"", "purge" },
	{ "\"https://a.test\"", "" },
};

Test(identity, bad_wishes_are_400_and_a_guest_is_not_at_home_here)
{
	struct test_reply reply;

	alice = test_person(nova->node, nova->node->port, "alice");
	for (size_t i = 0; i < COUNT(bad_wishes); i++) {
		reply = leave(bad_wishes[i][0], bad_wishes[i][1]);
		cr_expect_eq(
		    reply.status, 400, "%s: %s", bad_wishes[i][0], reply.body);
	}
	world_sql(nova,
	    "UPDATE users SET home_instance = 'orbit.test'"
	    " WHERE username = 'alice'");
	reply = leave(quoted(test_peer_origin(luna)), "soft");
	cr_expect(strstr(reply.body, "not_home_instance"), "%s", reply.body);
	cr_expect_eq(test_peer_count(luna, IDENTITY), 0);
}
