/* Passwords, the end of an account, and of identities on other nodes. */
#include <pthread.h>

#include <criterion/criterion.h>

#include "tests/lib/test_db.h"
#include "tests/lib/test_http.h"
#include "tests/lib/test_peer.h"
#include "tests/lib/test_trust.h"

enum { WAIT_MS = 15000 };

static struct test_node *node;
static struct arena *arena;
static struct test_person alice;
static struct test_person bob;
static struct test_person carol;

static void begin(void)
{
	static const char *const settings[] = { "rate_limits=off", NULL };

	test_db_needed();
	arena = arena_new();
	node = test_node_new("nova.localhost");
	test_frontd(node, settings);
	alice = test_person(node, node->port, "alice");
	bob = test_person(node, node->port, "bob");
	carol = test_person(node, node->port, "carol");
}

static void end(void)
{
	test_node_free(&node);
	if (arena)
		arena_free(&arena);
}

TestSuite(account, .init = begin, .fini = end, .timeout = 300);

static int64_t number(const char *query)
{
	return test_db_number(node->database, query);
}

static const char *text(const char *query)
{
	return test_db_text(arena, node->database, query);
}

static struct test_reply call(const struct test_person *who, const char *method,
    const char *path, const char *json)
{
	struct test_request request = {
		.method = method,
		.path = path,
		.token = who->token,
		.body = json,
	};

	return test_http(arena, node->port, &request);
}

static int status(const struct test_person *who, const char *method,
    const char *path, const char *json)
{
	return call(who, method, path, json).status;
}

static const char verify[] = "/api/users/@me/verify-password";
static const char change[] = "/api/users/@me/change-password";
static const char me[] = "/api/users/@me";

/* ---- passwords ---- */

Test(account, a_password_is_verified)
{
	struct test_reply reply = call(
	    &alice, "POST", verify, "{\"password\":\"" TEST_PASSWORD "\"}");

	cr_expect_str_eq(reply.body, "{\"valid\":true}");
	reply = call(&alice, "POST", verify, "{\"password\":\"wrong-horse\"}");
	cr_expect_eq(reply.status, 200);
	cr_expect_str_eq(reply.body, "{\"valid\":false}");
	cr_expect_eq(status(&alice, "POST", verify, "{}"), 400);
	cr_expect_eq(status(&alice, "POST", verify, "{\"password\":7}"), 400);
	reply = call(&alice, "POST", verify,
	    arena_printf(arena, "{\"password\":\"%02000d\"}", 7));
	cr_expect_str_eq(reply.body, "{\"valid\":false}");
}

Test(account, a_changed_password_ends_every_session)
{
	struct test_person other = alice;
	struct test_reply reply;

	reply = test_post(arena, node->port, "/api/auth/login", NULL,
	    "{\"username\":\"alice\",\"password\":\"" TEST_PASSWORD "\"}");
	other.token = test_text(arena, &reply, "token");
	cr_expect_eq(status(&alice, "POST", change,
			 "{\"currentPassword\":\"wrong-horse\","
			 "\"newPassword\":\"battery-staple\"}"),
	    403);
	cr_expect_eq(status(&alice, "POST", change,
			 "{\"newPassword\":\"battery-staple\"}"),
	    400);
	cr_expect_eq(status(&alice, "POST", change,
			 "{\"currentPassword\":\"" TEST_PASSWORD
			 "\",\"newPassword\":\"short\"}"),
	    400);
	reply = call(&alice, "POST", change,
	    "{\"currentPassword\":\"" TEST_PASSWORD
	    "\",\"newPassword\":\"battery-staple\"}");
	cr_assert_eq(reply.status, 200, "%s", reply.body);
	cr_expect_eq(status(&alice, "GET", me, NULL), 401);
	cr_expect_eq(status(&other, "GET", me, NULL), 401);
	alice.token = test_text(arena, &reply, "token");
	cr_expect_eq(status(&alice, "GET", me, NULL), 200);
	cr_expect_eq(
	    test_post(arena, node->port, "/api/auth/login", NULL,
		"{\"username\":\"alice\",\"password\":\"" TEST_PASSWORD "\"}")
		.status,
	    401);
}

Test(account, who_is_at_home_elsewhere_needs_no_current_password)
{
	test_db_script(node->database,
	    "UPDATE users SET home_instance = 'orbit.test'"
	    " WHERE username = 'bob'");
	cr_expect_eq(status(&bob, "POST", change,
			 "{\"currentPassword\":\"wrong-horse\","
			 "\"newPassword\":\"battery-staple\"}"),
	    403);
	cr_expect_eq(status(&bob, "POST", change,
			 "{\"newPassword\":\"battery-staple\"}"),
	    200);
}

/* ---- the end of an account ---- */

static const char *say(const struct test_person *from, const char *channel)
{
	struct test_reply reply = call(from, "POST",
	    arena_printf(arena, "/api/dm/%s/messages", channel),
	    "{\"content\":\"remember me\"}");

	cr_assert_eq(reply.status, 201, "%s", reply.body);
	return test_text(arena, &reply, "id");
}

static const char *pair_of(
    const struct test_person *a, const struct test_person *b)
{
	struct test_reply reply = call(a, "POST", "/api/dm",
	    arena_printf(arena, "{\"userId\":\"%s\"}", b->id));

	return test_text(arena, &reply, "id");
}

static void befriend(const struct test_person *a, const struct test_person *b)
{
	test_db_script(node->database,
	    arena_printf(arena,
		"INSERT INTO friends (user_id, friend_id) VALUES (%s, %s)",
		a->id, b->id));
}

static void leave_for_good(const struct test_person *who)
{
	struct test_reply reply = call(who, "DELETE", me,
	    arena_printf(arena,
		"{\"username\":\"%s\",\"password\":\"" TEST_PASSWORD "\"}",
		who->username));

	cr_assert_eq(reply.status, 200, "%d %s", reply.status, reply.body);
	cr_expect_str_eq(reply.body, "{\"success\":true}");
}

Test(account, deleting_needs_name_and_password)
{
	cr_expect_eq(status(&alice, "DELETE", me, "{}"), 400);
	cr_expect_eq(
	    status(&alice, "DELETE", me,
		"{\"username\":\"Alice\",\"password\":\"" TEST_PASSWORD "\"}"),
	    400);
	cr_expect_eq(
	    status(&alice, "DELETE", me, "{\"username\":\"alice\"}"), 400);
	cr_expect_eq(status(&alice, "DELETE", me,
			 "{\"username\":\"alice\",\"password\":\"x\"}"),
	    403);
	cr_expect_eq(
	    number("SELECT count(*) AS n FROM users WHERE is_deleted"), 0);
	test_db_script(node->database,
	    "UPDATE users SET home_instance = 'orbit.test'"
	    " WHERE username = 'bob'");
	cr_expect_eq(status(&bob, "DELETE", me, "{\"username\":\"bob\"}"), 200);
}

Test(account, of_the_deleted_only_what_he_wrote_is_left)
{
	const char *channel = pair_of(&alice, &bob);
	const char *message = say(&bob, channel);
	struct test_reply reply;

	befriend(&alice, &bob);
	test_db_script(node->database,
	    arena_printf(arena,
		"UPDATE users SET bio = 'secret', display_name = 'Bobby'"
		" WHERE id = %s;"
		"INSERT INTO friend_requests (from_id, to_id)"
		" VALUES (%s, %s);"
		"INSERT INTO dm_reactions (dm_message_id, user_id, emoji)"
		" VALUES (%s, %s, 'x');"
		"INSERT INTO read_states (user_id, channel_id,"
		" last_read_message_id) VALUES (%s, %s, %s);"
		"DELETE FROM user_events",
		bob.id, carol.id, bob.id, message, bob.id, bob.id, channel,
		message));
	leave_for_good(&bob);
	cr_expect_eq(status(&bob, "GET", me, NULL), 401);
	cr_expect_eq(
	    test_post(arena, node->port, "/api/auth/login", NULL,
		"{\"username\":\"bob\",\"password\":\"" TEST_PASSWORD "\"}")
		.status,
	    401);
	reply = call(&alice, "GET",
	    arena_printf(arena, "/api/dm/%s/messages", channel), NULL);
	cr_expect_str_eq(test_text(arena, &reply, "0.content"), "remember me");
	cr_expect_str_eq(
	    test_text(arena, &reply, "0.user.username"), "Deleted User");
	cr_expect_eq(json_count(test_json(arena, &reply, "0.reactions")), 0);
	cr_expect_eq(number("SELECT count(*) AS n FROM friends"), 0);
	cr_expect_eq(number("SELECT count(*) AS n FROM friend_requests"), 0);
	cr_expect_eq(number("SELECT count(*) AS n FROM read_states"), 0);
	cr_expect_eq(number("SELECT count(*) AS n FROM users WHERE"
			    " bio IS NOT NULL OR display_name = 'Bobby'"),
	    0);
	cr_expect_str_eq(
	    text("SELECT string_agg(u.username, ',' ORDER BY u.id) AS t"
		 " FROM user_events e JOIN users u ON u.id = e.user_id"
		 " WHERE kind = 'user_updated' AND NOT u.is_deleted"),
	    "alice");
	/* The name is free, for somebody else. */
	cr_expect_str_neq(test_person(node, node->port, "bob").id, bob.id);
}

Test(account, groups_pass_on_and_know_him_no_more)
{
	struct test_reply reply;
	const char *group;

	befriend(&bob, &alice);
	befriend(&bob, &carol);
	reply = call(&bob, "POST", "/api/dm/group",
	    arena_printf(arena, "{\"users\":[{\"id\":\"%s\"},{\"id\":\"%s\"}]}",
		alice.id, carol.id));
	cr_assert_eq(reply.status, 201, "%s", reply.body);
	group = test_text(arena, &reply, "id");
	test_db_script(node->database,
	    "UPDATE users SET display_name = 'Bobby' WHERE username = 'bob'");
	leave_for_good(&bob);
	cr_expect_str_eq(
	    text(arena_printf(arena,
		"SELECT u.username AS t FROM dm_channels c JOIN users u"
		" ON u.id = c.owner_id WHERE c.id = %s",
		group)),
	    "alice");
	cr_expect_eq(number("SELECT count(*) AS n FROM dm_members"), 2);
	cr_expect_eq(number("SELECT count(*) AS n FROM dm_messages"
			    " WHERE content LIKE '%Bobby%'"
			    " OR content LIKE '%!deleted%'"),
	    0);
	leave_for_good(&alice);
	leave_for_good(&carol);
	cr_expect_eq(number("SELECT count(*) AS n FROM dm_channels"), 0);
	cr_expect_eq(number("SELECT count(*) AS n FROM dm_messages"), 0);
}

Test(account, a_pair_goes_with_the_last_of_the_two)
{
	const char *channel = pair_of(&alice, &bob);

	say(&bob, channel);
	leave_for_good(&bob);
	cr_expect_eq(number("SELECT count(*) AS n FROM dm_messages"), 1);
	leave_for_good(&alice);
	cr_expect_eq(number("SELECT count(*) AS n FROM dm_channels"), 0);
	cr_expect_eq(number("SELECT count(*) AS n FROM dm_messages"), 0);
}

/* Each peer that has a part in it hears once that he has left. */
Test(account, other_nodes_hear_that_he_has_left)
{
	struct test_reply reply;

	test_db_script(node->database,
	    "INSERT INTO federation_peers (origin, host, status, hmac_secret)"
	    " SELECT 'https://' || h, h, 'active', 'x'"
	    " FROM unnest(ARRAY['friend.test', 'asked.test', 'asker.test',"
	    " 'group.test', 'stranger.test']) h;"
	    "INSERT INTO users (username, password_hash, home_instance,"
	    " home_user_id) SELECT '7@' || host, '!federation-replicated',"
	    " host, '7' FROM federation_peers;"
	    "INSERT INTO friends (user_id, friend_id) SELECT b.id, z.id"
	    " FROM users b, users z WHERE b.username = 'bob'"
	    " AND z.home_instance IN ('friend.test', 'group.test');"
	    "INSERT INTO friend_requests (from_id, to_id) SELECT b.id, z.id"
	    " FROM users b, users z WHERE b.username = 'bob'"
	    " AND z.home_instance = 'asked.test';"
	    "INSERT INTO friend_requests (from_id, to_id) SELECT z.id, b.id"
	    " FROM users b, users z WHERE b.username = 'bob'"
	    " AND z.home_instance = 'asker.test'");
	befriend(&bob, &alice);
	reply = call(&bob, "POST", "/api/dm/group",
	    arena_printf(arena,
		"{\"users\":[{\"id\":\"%s\"},{\"id\":\"7\","
		"\"homeUserId\":\"7\",\"homeInstance\":\"group.test\"}]}",
		alice.id));
	cr_assert_eq(reply.status, 201, "%s", reply.body);
	test_db_script(node->database,
	    "DELETE FROM federation_outbox;"
	    "UPDATE users SET display_name = 'Bobby', bio = 'secret'"
	    " WHERE username = 'bob'");
	leave_for_good(&bob);
	cr_expect_str_eq(
	    text("SELECT string_agg(p.host || ' ' || o.event_type, ','"
		 " ORDER BY p.host, o.id) AS t FROM federation_outbox o"
		 " JOIN federation_peers p ON p.id = o.peer_id"),
	    "asked.test friend_request_cancel,"
	    "asker.test friend_request_update,"
	    "friend.test friend_remove,"
	    "group.test member_remove,"
	    "group.test ownership_transfer,"
	    "group.test friend_remove");
	cr_expect_eq(number("SELECT count(*) AS n FROM federation_outbox WHERE"
			    " payload LIKE '%Bobby%' OR payload LIKE"
			    " '%secret%' OR payload LIKE '%!deleted%'"),
	    0);
	cr_expect_eq(number("SELECT count(*) AS n FROM federation_outbox WHERE"
			    " event_type = 'friend_request_update' AND"
			    " payload LIKE '%\"toProfile\":{\"username\":"
			    "\"Deleted User\"%'"),
	    1);
}

enum { CROWD = 6 };

static void *ask_run(void *arg)
{
	const struct test_person *who = arg;
	struct arena *own = arena_new();

	for (int i = 0; i < 10; i++)
		test_post(own, node->port, "/api/social/requests", who->token,
		    "{\"username\":\"bob\"}");
	arena_free(&own);
	return NULL;
}

/* Whoever asks him at that moment has asked nobody. */
Test(account, nobody_is_tied_to_the_deleted)
{
	pthread_t threads[2];

	cr_assert_eq(pthread_create(&threads[0], NULL, ask_run, &alice), 0);
	cr_assert_eq(pthread_create(&threads[1], NULL, ask_run, &carol), 0);
	leave_for_good(&bob);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	cr_expect_eq(number("SELECT count(*) AS n FROM friend_requests"), 0);
	cr_expect_eq(
	    number("SELECT count(*) AS n FROM users WHERE is_deleted"), 1);
}

static void *delete_run(void *arg)
{
	int *result = arg;
	struct arena *own = arena_new();
	struct test_request request = {
		.method = "DELETE",
		.path = me,
		.token = bob.token,
		.body =
		    "{\"username\":\"bob\",\"password\":\"" TEST_PASSWORD "\"}",
	};

	*result = test_http(own, node->port, &request).status;
	arena_free(&own);
	return NULL;
}

Test(account, deleted_many_times_at_once_he_is_deleted_once)
{
	pthread_t threads[CROWD];
	int results[CROWD];

	pair_of(&alice, &bob);
	for (int i = 0; i < CROWD; i++)
		cr_assert_eq(
		    pthread_create(&threads[i], NULL, delete_run, &results[i]),
		    0);
	for (int i = 0; i < CROWD; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < CROWD; i++)
		cr_expect(
		    results[i] == 200 || results[i] == 401 || results[i] == 400,
		    "%d", results[i]);
	cr_expect_eq(
	    number("SELECT count(*) AS n FROM users WHERE is_deleted"), 1);
	cr_expect_eq(number("SELECT count(*) AS n FROM user_events e"
			    " JOIN users u ON u.id = e.user_id"
			    " WHERE kind = 'user_updated'"
			    " AND u.username = 'alice'"),
	    1);
}
