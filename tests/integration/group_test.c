/* Groups through the API of one node. */
#include <unistd.h>

#include <criterion/criterion.h>

#include "tests/lib/test_db.h"
#include "tests/lib/test_http.h"
#include "tests/lib/test_node.h"

enum { PEOPLE = 13 };

static struct test_node *node;
static struct arena *arena;
static struct test_person people[PEOPLE]; /* friends of the first */

#define ALICE (&people[0])
#define BOB (&people[1])
#define CAROL (&people[2])
#define DAVE (&people[3])

static void begin(void)
{
	test_db_needed();
	arena = arena_new();
	node = test_node_new("nova.localhost");
	test_frontd(node, NULL);
	people[0] = test_person(node, node->port, "alice");
	people[1] = test_person(node, node->port, "bob");
	people[2] = test_person(node, node->port, "carol");
	people[3] = test_person(node, node->port, "dave");
	test_db_script(node->database,
	    "INSERT INTO users (username, password_hash) SELECT 'p' || n, '!' "
	    "FROM generate_series(4, 12) n");
	for (int i = 4; i < PEOPLE; i++)
		people[i].id = test_db_text(arena, node->database,
		    arena_printf(arena,
			"SELECT id::text AS t FROM users WHERE username = "
			"'p%d'",
			i));
	test_db_script(node->database,
	    "INSERT INTO friends (user_id, friend_id) SELECT a.id, b.id FROM "
	    "users a, users b WHERE a.username = 'alice' AND b.username <> "
	    "'alice'");
}

static void end(void)
{
	test_node_free(&node);
	if (arena)
		arena_free(&arena);
}

TestSuite(group, .init = begin, .fini = end, .timeout = 300);

static int64_t number(const char *query)
{
	return test_db_number(node->database, query);
}

static const char *text(const char *query)
{
	return test_db_text(arena, node->database, query);
}

static struct test_reply make(
    const struct test_person *owner, const struct test_person *from, size_t n)
{
	const char *list = "";

	for (size_t i = 0; i < n; i++)
		list = arena_printf(arena, "%s%s{\"id\":\"%s\"}", list,
		    i ? "," : "", from[i].id);
	return test_post(arena, node->port, "/api/dm/group", owner->token,
	    arena_printf(arena, "{\"users\":[%s]}", list));
}

/* alice's group with the next n. */
static const char *group_of(size_t n)
{
	struct test_reply reply = make(ALICE, people + 1, n);

	cr_assert_eq(reply.status, 201, "%d %s", reply.status, reply.body);
	return test_text(arena, &reply, "id");
}

static struct test_reply call(const struct test_person *who, const char *method,
    const char *path, const char *body)
{
	struct test_request request = {
		.method = method,
		.path = path,
		.token = who->token,
		.body = body,
	};

	return test_http(arena, node->port, &request);
}

static struct test_reply add(const struct test_person *who, const char *group,
    const struct test_person *target)
{
	return call(who, "POST",
	    arena_printf(arena, "/api/dm/%s/members", group),
	    arena_printf(arena, "{\"userId\":\"%s\"}", target->id));
}

static int leave(const struct test_person *who, const char *group)
{
	return call(who, "DELETE",
	    arena_printf(arena, "/api/dm/%s/members", group), NULL)
	    .status;
}

static int kick(const struct test_person *who, const char *group,
    const struct test_person *target)
{
	return call(who, "DELETE",
	    arena_printf(arena, "/api/dm/%s/members/%s", group, target->id),
	    NULL)
	    .status;
}

static struct test_reply hand_over(const struct test_person *who,
    const char *group, const struct test_person *target)
{
	return call(who, "PATCH", arena_printf(arena, "/api/dm/%s", group),
	    arena_printf(arena, "{\"ownerId\":\"%s\"}", target->id));
}

/* The line of changes with the people in it as names. */
static const char *line(void)
{
	return text("SELECT string_agg(e.seq || ' ' || e.kind || coalesce(' ' "
		    "|| u.username, ''), ', ' ORDER BY e.seq) AS t FROM "
		    "conversation_events e LEFT JOIN users u ON u.id = "
		    "e.entity_id");
}

/* System messages in order, ids as names. */
static const char *notices(void)
{
	return text(
	    "SELECT string_agg(a.username || ': ' || replace(m.content, "
	    "t.id::text, t.username), ' | ' ORDER BY m.id) AS t FROM "
	    "dm_messages m JOIN users a ON a.id = m.user_id JOIN users t ON "
	    "t.id::text = coalesce(m.content::json->>'targetUserId', "
	    "m.content::json->>'newOwnerId') WHERE m.type = 'system'");
}

static const char *members(void)
{
	return text("SELECT string_agg(u.username, ' ' ORDER BY u.id) AS t "
		    "FROM dm_members m JOIN users u ON u.id = m.user_id");
}

/* ---- making ---- */

Test(group, begins_with_everybody_and_a_notice_each)
{
	struct test_reply reply = make(ALICE, people + 1, 2);

	cr_assert_eq(reply.status, 201, "%s", reply.body);
	cr_expect_str_eq(test_text(arena, &reply, "ownerId"), ALICE->id);
	cr_expect_eq(
	    json_type(test_json(arena, &reply, "federatedId")), JSON_NULL);
	cr_expect_eq(json_count(test_json(arena, &reply, "members")), 3);
	cr_expect(test_text(arena, &reply, "lastMessage.content"));
	cr_expect_str_eq(members(), "alice bob carol");
	cr_expect_str_eq(
	    line(), "1 channel_created, 2 message_created, 3 message_created");
	cr_expect_str_eq(notices(),
	    "alice: {\"event\":\"member_added\",\"targetUserId\":\"bob\","
	    "\"targetDisplayName\":\"bob\"} | "
	    "alice: {\"event\":\"member_added\",\"targetUserId\":\"carol\","
	    "\"targetDisplayName\":\"carol\"}");
	cr_expect_str_eq(
	    text("SELECT string_agg(u.username || ' ' || e.kind, ', ' ORDER "
		 "BY u.id) AS t FROM user_events e JOIN users u ON u.id = "
		 "e.user_id JOIN dm_channels c ON c.id::text = e.entity_id"),
	    "alice channel_joined, bob channel_joined, carol channel_joined");
	reply = test_get(arena, node->port, "/api/dm", BOB->token);
	cr_expect_str_eq(test_text(arena, &reply, "0.ownerId"), ALICE->id);
}

#define B "{\"id\":\"$bob\"}"

/* $name is that person's id. */
static const char *with_ids(const char *body)
{
	static const char *const names[] = { "$alice", "$bob", "$carol" };

	for (size_t i = 0; i < COUNT(names); i++)
		for (const char *at; (at = strstr(body, names[i]));)
			body = arena_printf(arena, "%.*s%s%s", (int)(at - body),
			    body, people[i].id, at + strlen(names[i]));
	return body;
}

Test(group, bad_lists_are_400_and_leave_nothing)
{
	static const char *const bad[] = {
		"{}",
		"{\"users\":5}",
		"{\"users\":[]}",
		"{\"users\":[" B "]}",
		"{\"users\":[" B "," B "]}",
		"{\"users\":[" B ",{\"id\":\"$alice\"}]}",
		"{\"users\":[" B ",{\"id\":\"\"}]}",
		"{\"users\":[" B ",{\"id\":\"$carol\",\"homeUserId\":\"1\","
		"\"homeInstance\":\"a b\"}]}",
		"{\"users\":[" B ",null]}",
		"{\"users\":[" B ",{\"id\":5}]}",
	};

	for (size_t i = 0; i < COUNT(bad); i++) {
		struct test_reply reply = test_post(arena, node->port,
		    "/api/dm/group", ALICE->token, with_ids(bad[i]));

		cr_expect_eq(reply.status, 400, "%s: %d %s", bad[i],
		    reply.status, reply.body);
	}
	cr_expect_eq(make(ALICE, people + 1, 10).status, 400);
	cr_expect_eq(test_post(arena, node->port, "/api/dm/group", ALICE->token,
			 with_ids("{\"users\":[" B ",{\"id\":\"12345\"}]}"))
			 .status,
	    404);
	cr_expect_eq(number("SELECT count(*) AS n FROM dm_channels"), 0);
}

Test(group, strangers_are_not_invited_but_the_other_of_a_pair_is)
{
	struct test_reply reply = make(BOB, people + 2, 2);
	const char *pair;

	cr_expect_eq(reply.status, 403, "%s", reply.body);
	reply = test_post(arena, node->port, "/api/dm", BOB->token,
	    with_ids("{\"userId\":\"$carol\"}"));
	pair = test_text(arena, &reply, "id");
	reply = test_post(arena, node->port, "/api/dm/group", BOB->token,
	    with_ids(arena_printf(arena,
		"{\"users\":[{\"id\":\"$carol\"},{\"id\":\"$alice\"}],"
		"\"fromDmChannelId\":\"%s\"}",
		pair)));
	cr_expect_eq(reply.status, 201, "%s", reply.body);
	/* A pair of others opens nothing. */
	reply = test_post(arena, node->port, "/api/dm/group", DAVE->token,
	    with_ids(arena_printf(arena,
		"{\"users\":[{\"id\":\"$carol\"},{\"id\":\"$alice\"}],"
		"\"fromDmChannelId\":\"%s\"}",
		pair)));
	cr_expect_eq(reply.status, 403, "%s", reply.body);
}

/* ---- adding ---- */

Test(group, only_its_owner_adds_and_only_friends)
{
	const char *group = group_of(2);
	struct test_reply reply;

	cr_expect_eq(add(BOB, group, DAVE).status, 403);
	cr_expect_eq(add(DAVE, group, DAVE).status, 403);
	cr_expect_eq(add(ALICE, group, BOB).status, 400);
	cr_expect_eq(add(ALICE, "12345", DAVE).status, 403);
	test_db_script(node->database, "DELETE FROM friends");
	cr_expect_eq(add(ALICE, group, DAVE).status, 403);
	test_db_script(node->database,
	    "INSERT INTO friends SELECT b.id, a.id FROM users a, users b WHERE "
	    "a.username = 'alice' AND b.username = 'dave'");
	reply = add(ALICE, group, DAVE);
	cr_expect_eq(reply.status, 200, "%s", reply.body);
	cr_expect_eq(json_count(test_json(arena, &reply, "members")), 4);
	cr_expect_str_eq(line(),
	    "1 channel_created, 2 message_created, 3 message_created, "
	    "4 member_added dave, 5 message_created");
}

static int64_t queued(const char *type)
{
	return number(arena_printf(arena,
	    "SELECT count(*) AS n FROM federation_outbox WHERE event_type = "
	    "'%s'",
	    type));
}

Test(group, the_first_member_from_elsewhere_gives_it_an_id)
{
	const char *group = group_of(2);
	const char *say = arena_printf(arena, "/api/dm/%s/messages", group);
	struct test_reply reply;

	test_db_script(node->database,
	    "INSERT INTO federation_peers (origin, host, status, hmac_secret) "
	    "VALUES ('https://luna.test', 'luna.test', 'active', 'x');"
	    "INSERT INTO users (username, password_hash, home_instance, "
	    "home_user_id) VALUES ('700@luna.test', '!federation-replicated', "
	    "'luna.test', '700');"
	    "INSERT INTO friends SELECT a.id, b.id FROM users a, users b WHERE "
	    "a.username = 'alice' AND b.home_user_id = '700'");
	reply = call(ALICE, "POST", say, "{\"content\":\"among us\"}");
	cr_expect_eq(reply.status, 201, "%s", reply.body);
	cr_expect_eq(queued("create"), 0);
	reply = call(ALICE, "POST",
	    arena_printf(arena, "/api/dm/%s/members", group),
	    "{\"homeUserId\":\"700\",\"homeInstance\":\"luna.test\"}");
	cr_assert_eq(reply.status, 200, "%s", reply.body);
	cr_expect_eq(strlen(test_text(arena, &reply, "federatedId")), 36);
	cr_expect_eq(queued("member_add"), 1);
	cr_expect(text("SELECT payload AS t FROM federation_outbox WHERE "
		       "payload LIKE '%\"members\":[%' AND payload LIKE "
		       "'%\"homeUserId\":\"700\"%'"));
	reply = call(ALICE, "POST", say, "{\"content\":\"to all\"}");
	cr_expect_eq(reply.status, 201, "%s", reply.body);
	cr_expect_eq(queued("create"), 1);
}

Test(group, a_pair_has_no_members_to_change)
{
	struct test_reply reply = test_post(arena, node->port, "/api/dm",
	    ALICE->token, with_ids("{\"userId\":\"$bob\"}"));
	const char *pair = test_text(arena, &reply, "id");

	cr_expect_eq(add(ALICE, pair, CAROL).status, 400);
	cr_expect_eq(leave(ALICE, pair), 400);
	cr_expect_eq(kick(ALICE, pair, BOB), 400);
	cr_expect_eq(hand_over(ALICE, pair, BOB).status, 400);
	cr_expect_str_eq(members(), "alice bob");
}

/* Eight in it, five more at the same moment: two get in. */
Test(group, ten_is_the_limit_however_many_hurry)
{
	const char *group = group_of(7);
	int sockets[5];
	int taken = 0;

	for (size_t i = 0; i < COUNT(sockets); i++) {
		const char *body = arena_printf(
		    arena, "{\"userId\":\"%s\"}", people[8 + i].id);
		const char *request = arena_printf(arena,
		    "POST /api/dm/%s/members HTTP/1.1\r\nHost: x\r\n"
		    "Authorization: Bearer %s\r\nContent-Length: %zu\r\n"
		    "Content-Type: application/json\r\n\r\n%s",
		    group, ALICE->token, strlen(body), body);

		sockets[i] = test_http_connect(node->port);
		cr_assert(
		    test_http_write(sockets[i], request, strlen(request)));
	}
	for (size_t i = 0; i < COUNT(sockets); i++) {
		struct test_reply reply = test_http_read(arena, sockets[i]);

		taken += reply.status == 200;
		cr_expect(reply.status == 200 || reply.status == 400, "%d %s",
		    reply.status, reply.body);
		close(sockets[i]);
	}
	cr_expect_eq(taken, 2);
	cr_expect_eq(number("SELECT count(*) AS n FROM dm_members"), 10);
	cr_expect_eq(number("SELECT count(*) AS n FROM dm_messages"), 9);
	cr_expect_eq(number("SELECT max(seq) - count(*) AS n FROM "
			    "conversation_events"),
	    0);
}

/* ---- leaving, removing, handing over ---- */

Test(group, who_leaves_takes_his_read_state_and_sees_it_no_more)
{
	const char *group = group_of(2);
	struct test_reply reply;

	test_db_script(node->database,
	    "INSERT INTO read_states SELECT m.user_id, m.dm_channel_id, 1 FROM "
	    "dm_members m");
	cr_expect_eq(leave(BOB, group), 200);
	cr_expect_eq(leave(BOB, group), 403);
	cr_expect_str_eq(members(), "alice carol");
	cr_expect_eq(number("SELECT count(*) AS n FROM read_states"), 2);
	cr_expect_str_eq(line(),
	    "1 channel_created, 2 message_created, 3 message_created, "
	    "4 message_created, 5 member_removed bob");
	cr_expect(strstr(notices(),
	    "bob: {\"event\":\"member_removed\",\"targetUserId\":\"bob\","
	    "\"targetDisplayName\":\"bob\",\"reason\":\"leave\"}"));
	cr_expect_str_eq(text("SELECT kind AS t FROM user_events e JOIN users "
			      "u ON u.id = e.user_id WHERE u.username = 'bob' "
			      "ORDER BY e.seq DESC LIMIT 1"),
	    "channel_left");
	reply = test_get(arena, node->port, "/api/dm", BOB->token);
	cr_expect_str_eq(reply.body, "[]");
	reply = test_get(arena, node->port,
	    arena_printf(arena, "/api/dm/%s/messages", group), BOB->token);
	cr_expect_eq(reply.status, 403);
	cr_expect_eq(number("SELECT count(*) AS n FROM dm_channels WHERE "
			    "deleted_at IS NOT NULL"),
	    0);
}

/* Nobody elsewhere would hear of it. */
Test(group, who_has_left_changes_nothing_that_he_wrote)
{
	const char *group = group_of(2);
	struct test_reply said =
	    call(BOB, "POST", arena_printf(arena, "/api/dm/%s/messages", group),
		"{\"content\":\"before\"}");
	const char *path = arena_printf(
	    arena, "/api/dm/messages/%s", test_text(arena, &said, "id"));

	cr_expect_eq(
	    call(BOB, "PATCH", path, "{\"content\":\"in\"}").status, 200);
	cr_expect_eq(leave(BOB, group), 200);
	cr_expect_eq(
	    call(BOB, "PATCH", path, "{\"content\":\"out\"}").status, 403);
	cr_expect_eq(call(BOB, "DELETE", path, NULL).status, 403);
	cr_expect_str_eq(text("SELECT content AS t FROM dm_messages"
			      " WHERE type = 'user'"),
	    "in");
}

Test(group, an_owner_who_leaves_passes_it_on_until_nobody_is_left)
{
	const char *group = group_of(2);

	cr_expect_eq(leave(ALICE, group), 200);
	cr_expect_str_eq(
	    text("SELECT u.username || ' ' || c.owner_home_user_id AS t FROM "
		 "dm_channels c JOIN users u ON u.id = c.owner_id"),
	    arena_printf(arena, "bob %s", BOB->id));
	cr_expect(strstr(notices(),
	    "alice: {\"event\":\"owner_changed\",\"newOwnerId\":\"bob\","
	    "\"newOwnerDisplayName\":\"bob\"}"));
	cr_expect_str_eq(line(),
	    "1 channel_created, 2 message_created, 3 message_created, "
	    "4 message_created, 5 member_removed alice, 6 owner_changed bob, "
	    "7 message_created");
	cr_expect_eq(leave(CAROL, group), 200);
	cr_expect_eq(leave(BOB, group), 200);
	cr_expect_eq(number("SELECT count(*) AS n FROM dm_channels WHERE "
			    "deleted_at IS NOT NULL AND owner_id IS NOT NULL"),
	    1);
	cr_expect_eq(add(BOB, group, CAROL).status, 403);
	cr_expect_eq(number("SELECT count(*) AS n FROM federation_outbox"), 0);
}

Test(group, only_its_owner_removes_and_hands_over)
{
	const char *group = group_of(3);

	cr_expect_eq(kick(BOB, group, CAROL), 403);
	cr_expect_eq(kick(ALICE, group, ALICE), 400);
	cr_expect_eq(kick(ALICE, group, &people[4]), 404);
	cr_expect_eq(kick(ALICE, group, CAROL), 200);
	cr_expect_str_eq(members(), "alice bob dave");
	cr_expect(strstr(notices(), "\"reason\":\"kick\"}"));
	cr_expect_eq(hand_over(BOB, group, BOB).status, 403);
	cr_expect_eq(hand_over(ALICE, group, CAROL).status, 400);
	cr_expect_eq(hand_over(ALICE, group, ALICE).status, 200);
	cr_expect_eq(hand_over(ALICE, group, BOB).status, 200);
	cr_expect_eq(kick(ALICE, group, DAVE), 403);
	cr_expect_eq(kick(BOB, group, DAVE), 200);
	cr_expect_str_eq(members(), "alice bob");
}

/* An owner is there whatever a hand in the database does. */
Test(group, none_is_without_an_owner)
{
	struct conn *conn = test_db_conn(node->database);
	struct err err = { 0 };

	group_of(2);
	cr_expect(
	    !conn_script(conn, "UPDATE dm_channels SET owner_id = NULL", &err));
	conn_free(&conn);
}
