/* Direct messages through the API of one node. */
#include <unistd.h>

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
	test_db_needed();
	arena = arena_new();
	node = test_node_new("nova.localhost");
	test_frontd(node, NULL);
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

TestSuite(dm, .init = begin, .fini = end, .timeout = 300);

static const char *channel_of(
    const struct test_person *from, const struct test_person *to)
{
	struct test_reply reply = test_post(arena, node->port, "/api/dm",
	    from->token, arena_printf(arena, "{\"userId\":\"%s\"}", to->id));

	cr_assert(reply.status == 201 || reply.status == 200, "%d %s",
	    reply.status, reply.body);
	return test_text(arena, &reply, "id");
}

static struct test_reply say(
    const struct test_person *from, const char *channel, const char *json)
{
	return test_post(arena, node->port,
	    arena_printf(arena, "/api/dm/%s/messages", channel), from->token,
	    json);
}

static const char *say_text(
    const struct test_person *from, const char *channel, const char *text)
{
	struct test_reply reply = say(
	    from, channel, arena_printf(arena, "{\"content\":\"%s\"}", text));

	cr_assert_eq(reply.status, 201, "%d %s", reply.status, reply.body);
	return test_text(arena, &reply, "id");
}

static struct test_reply page(
    const struct test_person *who, const char *channel, const char *query)
{
	return test_get(arena, node->port,
	    arena_printf(arena, "/api/dm/%s/messages%s", channel, query),
	    who->token);
}

/* ---- conversations ---- */

Test(dm, opening_twice_gives_the_same_conversation)
{
	struct test_reply first = test_post(arena, node->port, "/api/dm",
	    alice.token, arena_printf(arena, "{\"userId\":\"%s\"}", bob.id));
	struct test_reply again = test_post(arena, node->port, "/api/dm",
	    bob.token, arena_printf(arena, "{\"userId\":\"%s\"}", alice.id));

	cr_expect_eq(first.status, 201, "%s", first.body);
	cr_expect_eq(again.status, 200, "%s", again.body);
	cr_expect_str_eq(
	    test_text(arena, &first, "id"), test_text(arena, &again, "id"));
	cr_expect_eq(json_count(test_json(arena, &first, "members")), 2);
	cr_expect_eq(json_type(test_json(arena, &first, "ownerId")), JSON_NULL);
}

Test(dm, a_person_of_another_node_becomes_a_stub)
{
	static const char json[] =
	    "{\"homeUserId\":\"310000000000000777\","
	    "\"homeInstance\":\"https://Other.Example/\"}";
	struct test_reply first =
	    test_post(arena, node->port, "/api/dm", alice.token, json);
	struct test_reply again =
	    test_post(arena, node->port, "/api/dm", alice.token, json);

	cr_expect_eq(first.status, 201, "%s", first.body);
	cr_expect_eq(again.status, 200);
	cr_expect_eq(strlen(test_text(arena, &first, "federatedId")), 32);
	cr_expect_eq(test_db_number(node->database,
			 "SELECT count(*) AS n FROM users WHERE home_instance "
			 "= 'other.example' AND home_user_id = "
			 "'310000000000000777'"),
	    1);
}

static const char *const bad_targets[] = {
	"{}",
	"{\"userId\":5}",
	"{\"userId\":\"abc\"}",
	"{\"userId\":\"9223372036854775808\"}",
	"{\"homeUserId\":\"1\",\"homeInstance\":\"a b\"}",
	"{\"homeUserId\":\"a\\u0000\",\"homeInstance\":\"other.example\"}",
};

Test(dm, bad_targets_are_400_and_unknown_ones_404)
{
	struct test_reply reply;

	for (size_t i = 0; i < COUNT(bad_targets); i++) {
		reply = test_post(
		    arena, node->port, "/api/dm", alice.token, bad_targets[i]);
		cr_expect_eq(reply.status, 400, "case %zu: %d %s", i,
		    reply.status, reply.body);
	}
	reply = test_post(arena, node->port, "/api/dm", alice.token,
	    "{\"userId\":\"12345\"}");
	cr_expect_eq(reply.status, 404);
}

/* Beyond what an index can hold (known fault 1.8). */
Test(dm, very_long_ids_are_refused_before_the_database)
{
	static const char *const shapes[] = {
		"{\"homeUserId\":\"%s\",\"homeInstance\":\"a.example\"}",
		"{\"homeUserId\":\"1\",\"homeInstance\":\"%s.example\"}",
		"{\"userId\":\"%s\"}",
	};
	static const size_t lengths[] = { 300, 3000, 20000 };
	struct buf text;
	struct buf json;

	for (size_t i = 0; i < COUNT(shapes) * COUNT(lengths); i++) {
		const char *shape = shapes[i % COUNT(shapes)];
		const char *gap = strstr(shape, "%s");

		buf_init(&text, arena, 1 << 20);
		while (text.len < lengths[i / COUNT(shapes)])
			buf_printf(&text, "%zx", text.len * 2654435761u);
		buf_init(&json, arena, 1 << 20);
		buf_add(&json, shape, (size_t)(gap - shape));
		buf_text(&json, text.data);
		buf_text(&json, gap + 2);
		cr_expect_eq(test_post(arena, node->port, "/api/dm",
				 alice.token, json.data)
				 .status,
		    400, "case %zu", i);
	}
}

Test(dm, a_closed_conversation_comes_back_with_the_next_message)
{
	const char *channel = channel_of(&alice, &bob);
	struct test_reply reply = test_delete(arena, node->port,
	    arena_printf(arena, "/api/dm/%s", channel), bob.token);

	cr_expect_str_eq(reply.body, "{\"success\":true}");
	reply = test_get(arena, node->port, "/api/dm", bob.token);
	cr_expect_eq(json_count(test_json(arena, &reply, "")), 0);
	say_text(&alice, channel, "hi");
	reply = test_get(arena, node->port, "/api/dm", bob.token);
	cr_expect_str_eq(test_text(arena, &reply, "0.id"), channel);
	cr_expect_str_eq(
	    test_text(arena, &reply, "0.lastMessage.content"), "hi");
}

Test(dm, strangers_see_and_do_nothing)
{
	const char *channel = channel_of(&alice, &bob);
	const char *paths[] = {
		arena_printf(arena, "/api/dm/%s/messages", channel),
		arena_printf(arena, "/api/conversations/%s/events", channel),
		"/api/dm/1/messages",
		"/api/dm/abc/messages",
	};

	for (size_t i = 0; i < COUNT(paths); i++)
		cr_expect_eq(
		    test_get(arena, node->port, paths[i], carol.token).status,
		    403, "case %zu", i);
	cr_expect_eq(say(&carol, channel, "{\"content\":\"x\"}").status, 403);
	cr_expect_eq(
	    test_delete(arena, node->port,
		arena_printf(arena, "/api/dm/%s", channel), carol.token)
		.status,
	    403);
}

/* ---- messages ---- */

Test(dm, a_message_comes_back_trimmed_and_otherwise_unchanged)
{
	const char *channel = channel_of(&alice, &bob);
	struct test_reply reply = say(&alice, channel,
	    "{\"content\":\"  a \\\"b\\\" \\u00e9 \\ud83d\\ude00 / "
	    "\\u2028 z\\n \"}");

	cr_assert_eq(reply.status, 201, "%s", reply.body);
	cr_expect_str_eq(test_text(arena, &reply, "content"),
	    "a \"b\" \xc3\xa9 \xf0\x9f\x98\x80 / \xe2\x80\xa8 z");
	cr_expect_str_eq(test_text(arena, &reply, "dmChannelId"), channel);
	cr_expect_str_eq(test_text(arena, &reply, "userId"), alice.id);
	cr_expect_str_eq(test_text(arena, &reply, "user.username"), "alice");
	cr_expect_eq(
	    json_type(test_json(arena, &reply, "channelId")), JSON_ABSENT);
}

static const char *content_of(const char *piece, size_t count)
{
	struct buf buf;

	buf_init(&buf, arena, 1 << 20);
	buf_text(&buf, "{\"content\":\"");
	for (size_t i = 0; i < count; i++)
		buf_text(&buf, piece);
	buf_text(&buf, "\"}");
	return buf.data;
}

Test(dm, the_limit_is_4000_units_after_trimming)
{
	const char *channel = channel_of(&alice, &bob);
	static const struct {
		const char *piece;
		size_t count;
		int status;
	} cases[] = {
		{ "x", 4000, 201 },
		{ "x", 4001, 400 },
		{ "\xc3\xa4", 4000, 201 },
		{ "\xf0\x9f\x98\x80", 2000, 201 },
		{ "\xf0\x9f\x98\x80", 2001, 400 },
		{ " ", 5000, 400 },
		{ "", 0, 400 },
	};

	for (size_t i = 0; i < COUNT(cases); i++)
		cr_expect_eq(say(&alice, channel,
				 content_of(cases[i].piece, cases[i].count))
				 .status,
		    cases[i].status, "case %zu", i);
}

static const char *const bad_messages[] = {
	"{}",
	"{\"content\":5}",
	"{\"content\":null}",
	"{\"content\":[\"x\"]}",
	"{\"content\":\"a\\u0000b\"}",
	"{\"content\":\"a\\ud800b\"}",
	"{\"content\":\"x\",\"replyToId\":5}",
	"{\"content\":\"x\",\"replyToId\":\"abc\"}",
	"{\"content\":\"x\",\"attachments\":[5]}",
	"{\"content\":\"x\",\"attachments\":\"1\"}",
	"{\"content\":\"x\",\"attachments\":[\"12345\"]}",
	"{\"content\":\"x\",\"content\":\"y\"}",
};

Test(dm, bad_messages_are_400_and_leave_nothing)
{
	const char *channel = channel_of(&alice, &bob);

	for (size_t i = 0; i < COUNT(bad_messages); i++) {
		struct test_reply reply = say(&alice, channel, bad_messages[i]);

		cr_expect_eq(reply.status, 400, "case %zu: %d %s", i,
		    reply.status, reply.body);
	}
	cr_expect_eq(test_db_number(node->database,
			 "SELECT count(*) AS n FROM dm_messages"),
	    0);
}

Test(dm, a_reply_stays_in_its_conversation)
{
	const char *here = channel_of(&alice, &bob);
	const char *there = channel_of(&alice, &carol);
	const char *first = say_text(&alice, here, "first");
	struct test_reply reply = say(&alice, here,
	    arena_printf(
		arena, "{\"content\":\"re\",\"replyToId\":\"%s\"}", first));

	cr_expect_eq(reply.status, 201, "%s", reply.body);
	cr_expect_str_eq(test_text(arena, &reply, "replyToId"), first);
	cr_expect_str_eq(test_text(arena, &reply, "replyTo.content"), "first");
	reply = say(&alice, there,
	    arena_printf(
		arena, "{\"content\":\"re\",\"replyToId\":\"%s\"}", first));
	cr_expect_eq(reply.status, 400, "%s", reply.body);
}

Test(dm, only_the_author_edits_and_deletes)
{
	const char *channel = channel_of(&alice, &bob);
	const char *id = say_text(&alice, channel, "one");
	const char *path = arena_printf(arena, "/api/dm/messages/%s", id);
	struct test_reply reply;

	reply = test_patch(
	    arena, node->port, path, bob.token, "{\"content\":\"two\"}");
	cr_expect_eq(reply.status, 403);
	reply = test_patch(
	    arena, node->port, path, alice.token, "{\"content\":\" two \"}");
	cr_expect_eq(reply.status, 200, "%s", reply.body);
	cr_expect_str_eq(test_text(arena, &reply, "content"), "two");
	cr_expect_gt(test_number(arena, &reply, "editedAt"), 0);
	reply = test_patch(
	    arena, node->port, path, alice.token, "{\"content\":\"  \"}");
	cr_expect_eq(reply.status, 400);
	cr_expect_eq(
	    test_delete(arena, node->port, path, bob.token).status, 403);
	reply = test_delete(arena, node->port, path, alice.token);
	cr_expect_str_eq(reply.body, "{\"success\":true}");
	cr_expect_eq(
	    test_delete(arena, node->port, path, alice.token).status, 404);
	reply = page(&bob, channel, "");
	cr_expect_eq(json_count(test_json(arena, &reply, "")), 0);
}

/* ---- pages ---- */

Test(dm, pages_are_full_ordered_and_joined_without_a_gap)
{
	static const struct {
		const char *text;
		size_t count;
	} limits[] = { { "x", 7 }, { "0", 7 }, { "", 7 }, { "-5", 1 },
		{ "101", 7 }, { "99999999999999999999", 7 } };
	const char *channel = channel_of(&alice, &bob);
	struct test_reply reply;
	const char *before = "";

	for (int i = 0; i < 7; i++)
		say_text(&alice, channel, arena_printf(arena, "m%d", i));
	reply = page(&bob, channel, "?limit=3");
	cr_expect_eq(json_count(test_json(arena, &reply, "")), 3);
	cr_expect_str_eq(test_text(arena, &reply, "0.content"), "m4");
	cr_expect_str_eq(test_text(arena, &reply, "2.content"), "m6");
	before = arena_printf(
	    arena, "?limit=3&before=%s", test_text(arena, &reply, "0.id"));
	reply = page(&bob, channel, before);
	cr_expect_str_eq(test_text(arena, &reply, "0.content"), "m1");
	cr_expect_str_eq(test_text(arena, &reply, "2.content"), "m3");
	for (size_t i = 0; i < COUNT(limits); i++) {
		reply = page(&bob, channel,
		    arena_printf(arena, "?limit=%s", limits[i].text));
		cr_expect_eq(json_count(test_json(arena, &reply, "")),
		    limits[i].count, "limit=%s", limits[i].text);
	}
	cr_expect_eq(page(&bob, channel, "?before=x").status, 400);
}

/* Neighbours that a double cannot tell apart (known fault 1.6). */
Test(dm, ids_are_texts_and_come_back_digit_for_digit)
{
	const char *channel = channel_of(&alice, &bob);
	struct test_reply reply;

	test_db_script(node->database,
	    arena_printf(arena,
		"INSERT INTO dm_messages (id, dm_channel_id, user_id, content)"
		" VALUES (653247040368672768, %s, %s, 'even'),"
		" (653247040368672769, %s, %s, 'odd')",
		channel, alice.id, channel, alice.id));
	reply = page(&bob, channel, "");
	cr_expect_eq(json_count(test_json(arena, &reply, "")), 2);
	cr_expect_not_null(strstr(reply.body, "\"id\":\"653247040368672768\""));
	cr_expect_not_null(strstr(reply.body, "\"id\":\"653247040368672769\""));
	cr_expect_eq(test_delete(arena, node->port,
			 "/api/dm/messages/653247040368672769", alice.token)
			 .status,
	    200);
	reply = page(&bob, channel, "");
	cr_expect_str_eq(test_text(arena, &reply, "0.content"), "even");
}

/* ---- events ---- */

static struct test_reply events(const char *channel, const char *query)
{
	return test_get(arena, node->port,
	    arena_printf(
		arena, "/api/conversations/%s/events%s", channel, query),
	    bob.token);
}

Test(dm, events_tell_what_changed_since_a_seq)
{
	const char *channel = channel_of(&alice, &bob);
	const char *id = say_text(&alice, channel, "one");
	const char *path = arena_printf(arena, "/api/dm/messages/%s", id);
	struct test_reply reply = events(channel, "");
	int64_t before = test_number(arena, &reply, "seq");

	cr_expect_gt(before, 0, "%s", reply.body);
	test_patch(
	    arena, node->port, path, alice.token, "{\"content\":\"two\"}");
	test_delete(arena, node->port, path, alice.token);
	reply = events(channel, arena_printf(arena, "?since=%" PRId64, before));
	cr_expect_eq(json_count(test_json(arena, &reply, "events")), 2);
	cr_expect_str_eq(
	    test_text(arena, &reply, "events.0.kind"), "message_updated");
	cr_expect_str_eq(
	    test_text(arena, &reply, "events.1.kind"), "message_deleted");
	cr_expect_str_eq(test_text(arena, &reply, "events.1.entityId"), id);
	cr_expect_str_eq(
	    test_text(arena, &reply, "events.1.actorId"), alice.id);
	cr_expect_eq(test_number(arena, &reply, "seq"), before + 2);
	reply = events(
	    channel, arena_printf(arena, "?since=%" PRId64 "&limit=1", before));
	cr_expect_eq(json_count(test_json(arena, &reply, "events")), 1);
	cr_expect_not_null(strstr(reply.body, "\"hasMore\":true"));
}

Test(dm, events_before_what_is_kept_are_gone)
{
	const char *channel = channel_of(&alice, &bob);

	for (int i = 0; i < 3; i++)
		say_text(&alice, channel, "x");
	test_db_script(node->database,
	    arena_printf(arena,
		"DELETE FROM conversation_events WHERE conversation_id = %s "
		"AND seq < 3; UPDATE dm_channels SET events_kept_from = 3 "
		"WHERE id = %s",
		channel, channel));
	cr_expect_eq(events(channel, "?since=1").status, 410);
	cr_expect_eq(events(channel, "?since=2").status, 200);
}

/* Two daemons on one database are one node. */
Test(dm, a_second_frontd_serves_the_same_node)
{
	struct test_daemon *second = test_frontd(node, NULL);
	const char *channel = channel_of(&alice, &bob);
	struct test_reply reply;

	say_text(&alice, channel, "hello");
	cr_expect_neq(second->port, node->port);
	reply = test_get(arena, second->port,
	    arena_printf(arena, "/api/dm/%s/messages", channel), bob.token);
	cr_expect_str_eq(test_text(arena, &reply, "0.content"), "hello");
}
