/* Friends through the API of one node. */
#include <pthread.h>

#include <criterion/criterion.h>

#include "tests/lib/test_db.h"
#include "tests/lib/test_http.h"
#include "tests/lib/test_node.h"

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

TestSuite(friend, .init = begin, .fini = end, .timeout = 300);

static int64_t number(const char *query)
{
	return test_db_number(node->database, query);
}

static struct test_reply ask_named(
    const struct test_person *who, const char *name)
{
	return test_post(arena, node->port, "/api/social/requests", who->token,
	    arena_printf(arena, "{\"username\":\"%s\"}", name));
}

static const char *ask(
    const struct test_person *from, const struct test_person *to)
{
	struct test_reply reply = ask_named(from, to->username);

	cr_assert_eq(reply.status, 201, "%d %s", reply.status, reply.body);
	cr_expect(json_truth(test_json(arena, &reply, "success")));
	return test_text(arena, &reply, "requestId");
}

static struct test_reply answer(
    const struct test_person *who, const char *request, const char *status)
{
	return test_patch(arena, node->port,
	    arena_printf(arena, "/api/social/requests/%s", request), who->token,
	    arena_printf(arena, "{\"status\":\"%s\"}", status));
}

static struct test_reply withdraw(
    const struct test_person *who, const char *request)
{
	return test_delete(arena, node->port,
	    arena_printf(arena, "/api/social/requests/%s", request),
	    who->token);
}

static struct test_reply end_with(
    const struct test_person *who, const struct test_person *other)
{
	return test_delete(arena, node->port,
	    arena_printf(arena, "/api/social/friends/%s", other->id),
	    who->token);
}

static struct test_reply list(const struct test_person *who, const char *what)
{
	struct test_reply reply = test_get(arena, node->port,
	    arena_printf(arena, "/api/social/%s", what), who->token);

	cr_assert_eq(reply.status, 200, "%s", reply.body);
	return reply;
}

static size_t count(const struct test_person *who, const char *what)
{
	struct test_reply reply = list(who, what);

	return json_count(test_json(arena, &reply, ""));
}

/* The kinds of what a person was told, in order. */
static const char *news_of(const struct test_person *who)
{
	return test_db_text(arena, node->database,
	    arena_printf(arena,
		"SELECT coalesce(string_agg(kind || ' ' || coalesce(entity_id,"
		" '-') || ' ' || actor_id, ',' ORDER BY seq), '') AS t"
		" FROM user_events WHERE user_id = %s AND kind LIKE 'friend%%'",
		who->id));
}

static void befriend(
    const struct test_person *from, const struct test_person *to)
{
	struct test_reply reply = answer(to, ask(from, to), "accepted");

	cr_assert_eq(reply.status, 200, "%s", reply.body);
}

Test(friend, a_request_is_shown_to_both_and_accepted)
{
	const char *request = ask(&alice, &bob);
	struct test_reply out = list(&alice, "requests");
	struct test_reply in = list(&bob, "requests");
	struct test_reply reply;

	cr_expect_str_eq(test_text(arena, &out, "0.id"), request);
	cr_expect_str_eq(test_text(arena, &out, "0.fromId"), alice.id);
	cr_expect_str_eq(test_text(arena, &out, "0.toId"), bob.id);
	cr_expect_str_eq(test_text(arena, &out, "0.status"), "pending");
	cr_expect_str_eq(test_text(arena, &out, "0.user.id"), bob.id);
	cr_expect_str_eq(test_text(arena, &in, "0.user.username"), "alice");
	cr_expect_gt(test_number(arena, &in, "0.createdAt"), 1700000000000);
	reply = answer(&bob, request, "accepted");
	cr_assert_eq(reply.status, 200, "%s", reply.body);
	cr_expect_str_eq(reply.body, "{\"success\":true}");
	reply = list(&alice, "friends");
	cr_expect_str_eq(test_text(arena, &reply, "0.username"), "bob");
	cr_expect_gt(test_number(arena, &reply, "0.addedAt"), 1700000000000);
	cr_expect_eq(count(&bob, "friends"), 1);
	cr_expect_eq(count(&bob, "requests"), 0);
	cr_expect_eq(count(&alice, "requests"), 0);
	cr_expect_str_eq(news_of(&bob),
	    arena_printf(
		arena, "friend_request_received %s %s", request, alice.id));
	cr_expect_str_eq(news_of(&alice),
	    arena_printf(
		arena, "friend_request_accepted %s %s", request, bob.id));
}

Test(friend, a_declined_request_makes_room_for_another)
{
	const char *request = ask(&alice, &bob);

	cr_expect_eq(answer(&bob, request, "declined").status, 200);
	cr_expect_eq(count(&alice, "friends"), 0);
	cr_expect_eq(count(&alice, "requests"), 0);
	cr_expect_eq(answer(&bob, request, "accepted").status, 400);
	cr_expect_eq(withdraw(&alice, request).status, 400);
	ask(&alice, &bob);
	cr_expect_eq(number("SELECT count(*) AS n FROM friend_requests"), 2);
	cr_expect_str_eq(news_of(&alice),
	    arena_printf(
		arena, "friend_request_declined %s %s", request, bob.id));
}

Test(friend, a_withdrawn_request_is_gone)
{
	const char *request = ask(&alice, &bob);

	cr_expect_eq(withdraw(&carol, request).status, 403);
	cr_expect_eq(withdraw(&bob, request).status, 403);
	cr_expect_eq(answer(&alice, request, "accepted").status, 403);
	cr_expect_eq(answer(&carol, request, "accepted").status, 403);
	cr_expect_eq(withdraw(&alice, request).status, 200);
	cr_expect_eq(withdraw(&alice, request).status, 404);
	cr_expect_eq(answer(&bob, request, "accepted").status, 404);
	cr_expect_eq(count(&bob, "requests"), 0);
	cr_expect_eq(number("SELECT count(*) AS n FROM friend_requests"), 0);
	cr_expect_str_eq(news_of(&bob),
	    arena_printf(arena,
		"friend_request_received %s %s,friend_request_cancelled %s %s",
		request, alice.id, request, alice.id));
}

Test(friend, a_friendship_ends_for_both_and_may_begin_again)
{
	befriend(&alice, &bob);
	cr_expect_eq(end_with(&bob, &alice).status, 200);
	cr_expect_eq(count(&alice, "friends"), 0);
	cr_expect_eq(count(&bob, "friends"), 0);
	cr_expect_eq(end_with(&bob, &alice).status, 404);
	cr_expect_eq(end_with(&alice, &carol).status, 404);
	cr_expect_eq(end_with(&alice, &alice).status, 404);
	cr_expect(strstr(news_of(&alice),
	    arena_printf(arena, "friend_removed - %s", bob.id)));
	cr_expect(!strstr(news_of(&bob), "friend_removed"));
	befriend(&bob, &alice);
	cr_expect_eq(count(&alice, "friends"), 1);
}

Test(friend, nobody_befriends_himself_in_any_spelling)
{
	const char *names[] = { "alice", "ALICE", "  Alice ",
		arena_printf(arena, "alice@nova.localhost"),
		arena_printf(arena, "alice@NOVA.localhost:%d", node->port),
		arena_printf(arena, "Alice@nova.localhost.") };

	for (size_t i = 0; i < COUNT(names); i++) {
		struct test_reply reply = ask_named(&alice, names[i]);

		cr_expect_eq(reply.status, 400, "%s: %d %s", names[i],
		    reply.status, reply.body);
	}
	cr_expect_eq(
	    test_post(arena, node->port, "/api/social/requests", alice.token,
		arena_printf(arena, "{\"userId\":\"%s\"}", alice.id))
		.status,
	    400);
	cr_expect_eq(
	    test_post(arena, node->port, "/api/social/requests", alice.token,
		arena_printf(arena,
		    "{\"homeUserId\":\"%s\",\"homeInstance\":\"%s\"}", alice.id,
		    node->origin))
		.status,
	    400);
	cr_expect_eq(number("SELECT count(*) AS n FROM friend_requests"), 0);
}

Test(friend, a_second_request_is_refused_in_either_direction)
{
	ask(&alice, &bob);
	cr_expect_eq(ask_named(&alice, "bob").status, 400);
	cr_expect_eq(ask_named(&bob, "alice").status, 400);
	befriend(&alice, &carol);
	cr_expect_eq(ask_named(&alice, "carol").status, 400);
	cr_expect_eq(ask_named(&carol, "alice").status, 400);
	cr_expect_eq(number("SELECT count(*) AS n FROM friend_requests"
			    " WHERE status = 'pending'"),
	    1);
}

static const char *const bad_requests[] = {
	"{}",
	"{\"username\":\"\"}",
	"{\"username\":7}",
	"{\"username\":null}",
	"{\"username\":\"a\\u0000b\"}",
	"{\"userId\":\"x\"}",
	"{\"homeUserId\":\"1\",\"homeInstance\":\"\"}",
	"{\"homeUserId\":\"1\",\"homeInstance\":\"https://a/../b@c\"}",
};

Test(friend, bad_requests_are_400_and_unknown_people_404)
{
	for (size_t i = 0; i < COUNT(bad_requests); i++) {
		struct test_reply reply = test_post(arena, node->port,
		    "/api/social/requests", alice.token, bad_requests[i]);

		cr_expect_eq(reply.status, 400, "%s: %d %s", bad_requests[i],
		    reply.status, reply.body);
	}
	cr_expect_eq(ask_named(&alice, "nobody").status, 404);
	cr_expect_eq(ask_named(&alice, "bob@other.example").status, 404);
	cr_expect_eq(ask_named(&alice, "bob@nova.localhost:1").status, 404);
	cr_expect_eq(answer(&bob, "77", "accepted").status, 404);
	cr_expect_eq(answer(&bob, "x", "accepted").status, 404);
	cr_expect_eq(answer(&bob, ask(&alice, &bob), "pending").status, 400);
	cr_expect_eq(
	    test_get(arena, node->port, "/api/social/friends", NULL).status,
	    401);
	cr_expect_eq(number("SELECT count(*) AS n FROM friend_requests"), 1);
}

/* Deleted people are nobody, whatever their name was. */
Test(friend, the_deleted_are_not_asked)
{
	test_db_script(node->database,
	    "UPDATE users SET is_deleted = true WHERE username = 'bob'");
	cr_expect_eq(ask_named(&alice, "bob").status, 404);
	cr_expect_eq(
	    test_post(arena, node->port, "/api/social/requests", alice.token,
		arena_printf(arena, "{\"userId\":\"%s\"}", bob.id))
		.status,
	    404);
}

Test(friend, people_of_other_nodes_are_named_with_their_host)
{
	struct test_reply reply;

	test_db_script(node->database,
	    "INSERT INTO users (username, password_hash, home_instance,"
	    " home_user_id) VALUES ('zed@xn--bcher-kva.example', 'x',"
	    " 'xn--bcher-kva.example', '700')");
	reply = ask_named(&alice,
	    "Zed@B\xc3\xbc"
	    "cher.example");
	cr_expect_eq(reply.status, 201, "%s", reply.body);
	reply =
	    test_post(arena, node->port, "/api/social/requests", alice.token,
		"{\"homeUserId\":\"700\",\"homeInstance\":"
		"\"https://xn--bcher-kva.example\"}");
	cr_expect_eq(reply.status, 400, "%s", reply.body);
}

/* ---- finding people ---- */

static struct test_reply find(const char *path)
{
	struct test_reply reply =
	    test_get(arena, node->port, path, alice.token);

	cr_assert_eq(reply.status, 200, "%s: %s", path, reply.body);
	return reply;
}

static size_t found(const char *query)
{
	struct test_reply reply =
	    find(arena_printf(arena, "/api/social/search?q=%s", query));

	return json_count(test_json(arena, &reply, ""));
}

Test(friend, people_are_found_by_part_of_a_name)
{
	test_db_script(node->database,
	    "INSERT INTO users (username, display_name, password_hash)"
	    " SELECT 'robot' || n, 'Machine ' || n, '!'"
	    " FROM generate_series(1, 12) n;"
	    "INSERT INTO users (username, display_name, password_hash,"
	    " home_instance) VALUES ('9@far.test', 'Zoe_100%', '!',"
	    " 'far.test');"
	    "UPDATE users SET is_deleted = true WHERE username = 'carol'");
	cr_expect_eq(found(""), 0);
	cr_expect_eq(found("%20"), 0);
	cr_expect_eq(found("BO"), 10);
	cr_expect_eq(found("Bob"), 1);
	cr_expect_eq(found("mAcHiNe%2012"), 1);
	cr_expect_eq(found("far.test"), 1);
	cr_expect_eq(found("_100%25"), 1);
	cr_expect_eq(found("%25"), 1);
	cr_expect_eq(found("alice"), 0);
	cr_expect_eq(found("carol"), 0);
	cr_expect_eq(test_get(arena, node->port,
			 arena_printf(arena, "/api/social/search?q=%0300d", 7),
			 alice.token)
			 .status,
	    400);
}

Test(friend, those_who_want_to_be_found_are_listed)
{
	struct test_reply reply;

	test_db_script(node->database,
	    "INSERT INTO users (username, password_hash, created_at) VALUES"
	    " ('dave', '!', now() + interval '1 minute'),"
	    " ('erin', '!', now() + interval '2 minutes');"
	    "INSERT INTO users (username, password_hash, home_instance)"
	    " VALUES ('9@far.test', '!', 'far.test');"
	    "INSERT INTO users (username, password_hash, discoverable)"
	    " VALUES ('shy', '!', false)");
	befriend(&alice, &bob);
	test_db_script(node->database,
	    "INSERT INTO friends (user_id, friend_id) SELECT a.id, b.id"
	    " FROM users a, users b WHERE a.username = 'carol'"
	    " AND b.username = 'bob'");
	ask(&alice, &carol);
	reply = find("/api/social/discover");
	cr_expect_eq(test_number(arena, &reply, "total"), 4);
	cr_expect_eq(json_count(test_json(arena, &reply, "users")), 4);
	cr_expect_str_eq(test_text(arena, &reply, "users.0.username"), "carol");
	cr_expect_eq(
	    test_number(arena, &reply, "users.0.mutualFriendCount"), 1);
	cr_expect_str_eq(test_text(arena, &reply, "users.0.relationship"),
	    "outbound_pending");
	cr_expect_not_null(test_text(arena, &reply, "users.0.requestId"));
	cr_expect_str_eq(test_text(arena, &reply, "users.1.username"), "erin");
	cr_expect_str_eq(
	    test_text(arena, &reply, "users.3.relationship"), "friends");
	cr_expect_null(test_json(arena, &reply, "users.3.requestId"));
	reply = find("/api/social/discover?limit=1&offset=1&q=");
	cr_expect_eq(test_number(arena, &reply, "total"), 4);
	cr_expect_str_eq(test_text(arena, &reply, "users.0.username"), "dave");
	reply = find("/api/social/discover?q=ERI&limit=0&offset=x");
	cr_expect_eq(json_count(test_json(arena, &reply, "users")), 1);
	test_db_script(node->database,
	    "UPDATE instance_settings SET discovery_enabled = false");
	reply = find("/api/social/discover");
	cr_expect_str_eq(reply.body, "{\"users\":[],\"total\":0}");
}

/* ---- many at once ---- */

enum { CROWD = 12 };

struct rush {
	struct test_person from;
	const char *method, *path, *body;
	int status;
};

static void *rush_run(void *arg)
{
	struct rush *rush = arg;
	struct arena *own = arena_new();
	struct test_request request = {
		.method = rush->method,
		.path = rush->path,
		.token = rush->from.token,
		.body = rush->body,
	};

	rush->status = test_http(own, node->port, &request).status;
	arena_free(&own);
	return NULL;
}

static int rush_all(struct rush rushes[CROWD], int status)
{
	pthread_t threads[CROWD];
	int same = 0;

	for (int i = 0; i < CROWD; i++)
		cr_assert_eq(
		    pthread_create(&threads[i], NULL, rush_run, &rushes[i]), 0);
	for (int i = 0; i < CROWD; i++) {
		pthread_join(threads[i], NULL);
		same += rushes[i].status == status;
	}
	return same;
}

Test(friend, of_many_requests_at_once_one_is_pending)
{
	struct rush rushes[CROWD];

	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < CROWD; i++)
			rushes[i] = (struct rush){
				.from = i % 2 ? alice : bob,
				.method = "POST",
				.path = "/api/social/requests",
				.body = i % 2 ? "{\"username\":\"bob\"}"
					      : "{\"username\":\"alice\"}",
			};
		cr_expect_eq(rush_all(rushes, 201), 1);
		for (int i = 0; i < CROWD; i++)
			cr_expect(
			    rushes[i].status == 201 || rushes[i].status == 400,
			    "%d", rushes[i].status);
		cr_expect_eq(number("SELECT count(*) AS n FROM friend_requests"
				    " WHERE status = 'pending'"),
		    1);
		test_db_script(node->database, "DELETE FROM friend_requests");
	}
}

/* Accepting, declining and withdrawing at the same moment: one wins, and what
 * everybody was told fits. */
Test(friend, a_request_has_one_end)
{
	struct rush rushes[CROWD];

	for (int round = 0; round < 8; round++) {
		const char *request = ask(&alice, &bob);
		const char *path =
		    arena_printf(arena, "/api/social/requests/%s", request);
		bool friends;

		for (int i = 0; i < CROWD; i++)
			rushes[i] = i % 3 == 0
			    ? (struct rush){ alice, "DELETE", path, NULL, 0 }
			    : (struct rush){ bob, "PATCH", path,
				      i % 3 == 1 ? "{\"status\":\"accepted\"}"
						 : "{\"status\":\"declined\"}",
				      0 };
		cr_expect_eq(rush_all(rushes, 200), 1, "round %d", round);
		friends = count(&alice, "friends") == 1;
		cr_expect_eq(count(&bob, "friends") == 1, friends);
		cr_expect_eq(count(&bob, "requests"), 0);
		cr_expect_eq(
		    number("SELECT count(*) AS n FROM user_events WHERE kind IN"
			   " ('friend_request_accepted',"
			   " 'friend_request_declined',"
			   " 'friend_request_cancelled')"),
		    1);
		if (friends)
			cr_expect_eq(end_with(&alice, &bob).status, 200);
		test_db_script(node->database, "DELETE FROM user_events");
	}
}
