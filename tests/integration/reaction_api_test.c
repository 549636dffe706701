/* Reactions through the API of one node: shown, told, and at once. */
#include <pthread.h>

#include <criterion/criterion.h>

#include "tests/lib/test_db.h"
#include "tests/lib/test_http.h"
#include "tests/lib/test_node.h"

#define THUMB "\xf0\x9f\x91\x8d"

struct api {
	struct test_node *node;
	struct arena *arena;
	struct test_person alice;
	struct test_person bob;
	struct test_person carol;
	const char *channel;
	const char *message;
};

static struct api api;

static void api_begin(void)
{
	struct test_reply reply;

	test_db_needed();
	api = (struct api){ .arena = arena_new() };
	api.node = test_node_new("nova.localhost");
	test_frontd(api.node, NULL);
	api.alice = test_person(api.node, api.node->port, "alice");
	api.bob = test_person(api.node, api.node->port, "bob");
	api.carol = test_person(api.node, api.node->port, "carol");
	reply = test_post(api.arena, api.node->port, "/api/dm", api.alice.token,
	    arena_printf(api.arena, "{\"userId\":\"%s\"}", api.bob.id));
	api.channel = test_text(api.arena, &reply, "id");
	reply = test_post(api.arena, api.node->port,
	    arena_printf(api.arena, "/api/dm/%s/messages", api.channel),
	    api.alice.token, "{\"content\":\"hello\"}");
	cr_assert_eq(reply.status, 201, "%s", reply.body);
	api.message = test_text(api.arena, &reply, "id");
}

static void api_end(void)
{
	test_node_free(&api.node);
	if (api.arena)
		arena_free(&api.arena);
}

TestSuite(reaction_api, .init = api_begin, .fini = api_end, .timeout = 300);

static struct test_reply react(const char *method,
    const struct test_person *who, const char *message, const char *emoji)
{
	struct test_request request = {
		.method = method,
		.path = arena_printf(api.arena,
		    "/api/dm/messages/%s/reactions/%s", message, emoji),
		.token = who->token,
	};

	return test_http(api.arena, api.node->port, &request);
}

static struct test_reply page(void)
{
	return test_get(api.arena, api.node->port,
	    arena_printf(api.arena, "/api/dm/%s/messages", api.channel),
	    api.alice.token);
}

Test(reaction_api, shows_under_the_message_until_it_is_taken_away)
{
	struct test_reply reply =
	    react("PUT", &api.bob, api.message, "%F0%9F%91%8D");
	struct test_reply again =
	    react("PUT", &api.bob, api.message, "%F0%9F%91%8D");
	struct test_reply shown = page();

	cr_assert_eq(reply.status, 201, "%s", reply.body);
	cr_expect_eq(again.status, 200, "%s", again.body);
	cr_expect_str_eq(again.body, reply.body);
	cr_expect_str_eq(
	    test_text(api.arena, &shown, "0.reactions.0.emoji"), THUMB);
	cr_expect_str_eq(
	    test_text(api.arena, &shown, "0.reactions.0.user.username"), "bob");
	cr_expect_str_eq(test_text(api.arena, &shown, "0.reactions.0.id"),
	    test_text(api.arena, &reply, "id"));
	cr_expect_eq(
	    react("DELETE", &api.alice, api.message, "%F0%9F%91%8D").status,
	    200, "nobody takes away another's");
	shown = page();
	cr_expect_eq(
	    json_count(test_json(api.arena, &shown, "0.reactions")), 1);
	for (int i = 0; i < 2; i++)
		cr_expect_eq(
		    react("DELETE", &api.bob, api.message, "%F0%9F%91%8D")
			.status,
		    200);
	shown = page();
	cr_expect_eq(
	    json_count(test_json(api.arena, &shown, "0.reactions")), 0);
}

Test(reaction_api, the_line_of_changes_says_which_message)
{
	struct test_reply events;

	react("PUT", &api.bob, api.message, "x");
	react("DELETE", &api.bob, api.message, "x");
	react("DELETE", &api.bob, api.message, "x");
	events = test_get(api.arena, api.node->port,
	    arena_printf(
		api.arena, "/api/conversations/%s/events?since=2", api.channel),
	    api.alice.token);
	cr_expect_eq(json_count(test_json(api.arena, &events, "events")), 2);
	for (int i = 0; i < 2; i++)
		cr_expect_str_eq(
		    test_text(api.arena, &events,
			arena_printf(api.arena, "events.%d.messageId", i)),
		    api.message, "%s", events.body);
	cr_expect_str_eq(
	    test_text(api.arena, &events, "events.1.kind"), "reaction_removed");
}

Test(reaction_api, a_later_word_of_ours_is_later_whatever_the_clock_says)
{
	react("PUT", &api.bob, api.message, "x");
	react("DELETE", &api.bob, api.message, "x");
	test_db_script(api.node->database,
	    "UPDATE reaction_tombstones SET removed_at = now() + "
	    "interval '1 hour'");
	cr_expect_eq(react("PUT", &api.bob, api.message, "x").status, 201);
	cr_expect_eq(test_db_number(api.node->database,
			 "SELECT count(*) AS n FROM dm_reactions r,"
			 " reaction_tombstones t"
			 " WHERE r.changed_at > t.removed_at"),
	    1);
	cr_expect_eq(react("DELETE", &api.bob, api.message, "x").status, 200);
	cr_expect_eq(test_db_number(api.node->database,
			 "SELECT count(*) AS n FROM dm_reactions"),
	    0);
}

Test(reaction_api, strangers_and_bad_words_change_nothing)
{
	static const char *const bad[] = { "%20", "a%20b", "%0a", "%7F",
		"12345678901234567890123456789012345678901234567890"
		"123456789012345" };

	cr_expect_eq(react("PUT", &api.carol, api.message, "x").status, 404);
	cr_expect_eq(react("DELETE", &api.carol, api.message, "x").status, 404);
	cr_expect_eq(react("PUT", &api.bob, "99", "x").status, 404);
	cr_expect_eq(react("PUT", &api.bob, "no-id", "x").status, 404);
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct test_reply reply =
		    react("PUT", &api.bob, api.message, bad[i]);

		cr_expect_eq(reply.status, 400, "%s: %s", bad[i], reply.body);
	}
	test_db_script(
	    api.node->database, "UPDATE dm_messages SET type = 'system'");
	cr_expect_eq(react("PUT", &api.bob, api.message, "x").status, 400);
	cr_expect_eq(test_db_number(api.node->database,
			 "SELECT count(*) AS n FROM dm_reactions"),
	    0);
	cr_expect_eq(test_db_number(api.node->database,
			 "SELECT count(*) AS n FROM reaction_tombstones"),
	    0);
}

/* ---- what we send, and by which name ---- */

Test(reaction_api, each_node_is_told_the_name_it_knows)
{
	const char *db = api.node->database;

	test_db_script(db,
	    "INSERT INTO federation_peers (origin, host, status, hmac_secret)"
	    " VALUES ('https://luna.test', 'luna.test', 'active', 'x'),"
	    " ('https://moon.test', 'moon.test', 'active', 'x');"
	    "UPDATE users SET replicated_instances = '[{\"origin\":"
	    "\"https://luna.test\",\"username\":\"a\"},{\"origin\":"
	    "\"https://moon.test\",\"username\":\"a\"}]'"
	    " WHERE username = 'alice';"
	    "UPDATE dm_messages SET source_instance = 'https://moon.test',"
	    " source_message_id = 'w9'");
	cr_expect_eq(react("PUT", &api.bob, api.message, "x").status, 201);
	cr_expect_str_eq(
	    test_db_text(api.arena, db,
		arena_printf(api.arena,
		    "SELECT string_agg(host || ' ' ||"
		    " replace(r ->> 'messageId', '%s', 'ours') || ' ' ||"
		    " replace(r ->> 'messageHomeInstance', '%s', 'us'), ', '"
		    " ORDER BY host) AS t FROM (SELECT p.host,"
		    " ('{' || o.payload || '}')::json -> 'reaction' AS r"
		    " FROM federation_outbox o JOIN federation_peers p"
		    " ON p.id = o.peer_id) x",
		    api.message, api.node->origin)),
	    "luna.test ours us, moon.test w9 https://moon.test");
}

/* ---- at once ---- */

enum { RACERS = 6, ROUNDS = 12 };

struct racer {
	pthread_t thread;
	struct arena *arena;
	const char *token;
	const char *method; /* NULL: both in turn */
	int bad;	    /* answers that are none of those expected */
};

static void *race(void *arg)
{
	struct racer *racer = arg;

	for (int i = 0; i < ROUNDS; i++) {
		const char *method = racer->method;
		struct test_request request = {
			.method = method ? method
			    : i % 2	 ? "DELETE"
					 : "PUT",
			.path = arena_printf(racer->arena,
			    "/api/dm/messages/%s/reactions/x", api.message),
			.token = racer->token,
		};
		int status =
		    test_http(racer->arena, api.node->port, &request).status;

		racer->bad += status != 200 && status != 201 && status != 404;
	}
	return NULL;
}

static void race_all(const char *method)
{
	struct racer racers[RACERS];

	for (int i = 0; i < RACERS; i++) {
		racers[i] = (struct racer){ .arena = arena_new(),
			.token = api.bob.token,
			.method = method };
		cr_assert_eq(
		    pthread_create(&racers[i].thread, NULL, race, &racers[i]),
		    0);
	}
	for (int i = 0; i < RACERS; i++) {
		pthread_join(racers[i].thread, NULL);
		cr_expect_eq(racers[i].bad, 0);
		arena_free(&racers[i].arena);
	}
}

TestSuite(reaction_race, .init = api_begin, .fini = api_end, .timeout = 300);

/* bob's devices disagree: each change happened once, and in one order. */
Test(reaction_race, what_is_told_is_what_is_there)
{
	const char *db = api.node->database;

	test_db_script(db,
	    "INSERT INTO federation_peers (origin, host, status, hmac_secret)"
	    " VALUES ('https://luna.test', 'luna.test', 'active', 'x');"
	    "UPDATE users SET replicated_instances = '[{\"origin\":"
	    "\"https://luna.test\",\"username\":\"a\"}]'"
	    " WHERE username = 'alice'");
	race_all(NULL);
	cr_expect_eq(test_db_number(db,
			 "SELECT count(*) AS n FROM (SELECT kind, lag(kind)"
			 " OVER (ORDER BY seq) AS before FROM"
			 " conversation_events WHERE kind LIKE 'reaction%') x"
			 " WHERE kind = before"),
	    0);
	cr_expect_eq(
	    test_db_number(db,
		"SELECT (SELECT count(*) FROM dm_reactions) -"
		" (SELECT count(*) FILTER (WHERE kind = 'reaction_added') -"
		" count(*) FILTER (WHERE kind = 'reaction_removed')"
		" FROM conversation_events) AS n"),
	    0);
	/* luna hears the same, in the same order, and later words as later. */
	cr_expect_str_eq(
	    test_db_text(api.arena, db,
		"SELECT string_agg(event_type, ' ' ORDER BY id) AS t"
		" FROM federation_outbox"),
	    test_db_text(api.arena, db,
		"SELECT string_agg(CASE kind WHEN 'reaction_added' THEN"
		" 'reaction_add' ELSE 'reaction_remove' END, ' ' ORDER BY seq)"
		" AS t FROM conversation_events WHERE kind LIKE 'reaction%'"));
	cr_expect_eq(
	    test_db_number(db,
		"SELECT count(*) AS n FROM (SELECT at, lag(at) OVER (ORDER BY"
		" id) AS before FROM (SELECT id, CASE event_type WHEN"
		" 'reaction_remove' THEN (extract(epoch FROM created_at) *"
		" 1000)::bigint ELSE (('{' || payload || '}')::json #>>"
		" '{reaction,createdAt}')::bigint END AS at"
		" FROM federation_outbox) o) x WHERE at < before"),
	    0);
}

Test(reaction_race, a_deletion_meanwhile_leaves_nothing)
{
	pthread_t thread;
	struct racer racer = {
		.arena = arena_new(), .token = api.bob.token, .method = "PUT"
	};
	struct test_reply reply;

	cr_assert_eq(pthread_create(&thread, NULL, race, &racer), 0);
	reply = test_delete(api.arena, api.node->port,
	    arena_printf(api.arena, "/api/dm/messages/%s", api.message),
	    api.alice.token);
	pthread_join(thread, NULL);
	arena_free(&racer.arena);
	cr_expect_eq(reply.status, 200, "%s", reply.body);
	cr_expect_eq(racer.bad, 0);
	cr_expect_eq(test_db_number(api.node->database,
			 "SELECT count(*) AS n FROM dm_reactions"),
	    0);
}
