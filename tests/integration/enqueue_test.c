/* Activities that an administrator owes to inboxes, by HTTP. */
#include <criterion/criterion.h>

#include "tests/lib/test_db.h"
#include "tests/lib/test_trust.h"

#define PATH "/api/fediverse/outbound"
#define INBOX "\"inbox\":\"https://far.example/inbox\""
#define ACTIVITY "\"activity\":{\"id\":\"https://x.example/1\"}"

static struct world *world;

static void begin(void)
{
	test_db_needed();
	world = world_new("nova.localhost", NULL, NULL);
	world_sql(world, "UPDATE instance_settings SET fediverse = true");
	cr_assert_eq(
	    test_post(world->arena, world->node->port, "/api/fediverse/actors",
		world->token, "{\"username\":\"alice\"}")
		.status,
	    201);
}

static void end(void)
{
	world_free(&world);
}

TestSuite(enqueue, .init = begin, .fini = end, .timeout = 120);

static struct test_reply post(const char *json)
{
	return test_post(
	    world->arena, world->node->port, PATH, world->token, json);
}

static const char *one_text(const char *query)
{
	return test_db_text(world->arena, world->node->database, query);
}

static int64_t rows(void)
{
	return test_db_number(world->node->database,
	    "SELECT count(*) AS n FROM fediverse_outbound_queue");
}

/* Spaces, order, escapes and numbers as they came. */
Test(enqueue, an_activity_goes_out_letter_for_letter)
{
	static const char payload[] =
	    "{ \"type\":\"Like\",  \"id\" : \"https://x.example/1\","
	    "\"n\":1.50, \"s\":\"\\u00e9/\\/\",\"@context\":[ ] }";
	struct test_reply reply = post(arena_printf(world->arena,
	    "{\"actor\":\"Alice\",\"sharedInbox\":true," INBOX
	    ",\"activity\":%s}",
	    payload));

	cr_assert_eq(reply.status, 202, "%s", reply.body);
	cr_expect_str_eq(
	    test_text(world->arena, &reply, "deliveries.0.status"), "pending");
	cr_expect_str_eq(
	    one_text("SELECT payload_json AS t FROM fediverse_outbound_queue"),
	    payload);
	cr_expect_str_eq(
	    one_text("SELECT concat_ws('|', q.activity_id, q.target_inbox,"
		     " q.target_domain, a.username, q.shared, q.transport) AS t"
		     " FROM fediverse_outbound_queue q"
		     " JOIN fediverse_actors a ON a.id = q.actor_user_id"),
	    "https://x.example/1|https://far.example/inbox|far.example|alice|"
	    "t");
}

Test(enqueue, many_inboxes_are_rows_and_a_repeat_finds_them)
{
	static const char json[] =
	    "{\"actor\":\"alice\"," ACTIVITY
	    ",\"inboxes\":[\"https://FAR.example:443/inbox\","
	    "\"https://near.example/i\",\"https://far.example/inbox\"]}";

	cr_assert_eq(post(json).status, 202);
	cr_expect_eq(rows(), 2);
	cr_assert_eq(post(json).status, 202);
	cr_expect_eq(rows(), 2);
	{
		const struct test_request request = { .method = "GET",
			.path = PATH "?activityId=https%3A%2F%2Fx.example%2F1",
			.token = world->token };
		struct test_reply reply =
		    test_http(world->arena, world->node->port, &request);

		cr_assert_eq(reply.status, 200, "%s", reply.body);
		cr_expect_str_eq(
		    test_text(world->arena, &reply, "deliveries.1.inbox"),
		    "https://near.example/i");
	}
}

Test(enqueue, towards_the_dead_a_row_is_dead)
{
	struct test_reply reply;

	world_sql(world,
	    "INSERT INTO fediverse_domains (domain, state)"
	    " VALUES ('far.example', 'dead')");
	reply = post("{\"actor\":\"alice\"," ACTIVITY "," INBOX "}");
	cr_assert_eq(reply.status, 202, "%s", reply.body);
	cr_expect_str_eq(
	    test_text(world->arena, &reply, "deliveries.0.status"), "dead");
}

Test(enqueue, what_is_no_order_is_refused_whole)
{
	/* clang-format off */
	static const struct { const char *json; int status; } cases[] = {
		{ "{}",                                                        400 },
		{ "{\"actor\":\"alice\"," INBOX "}",                           400 },
		{ "{\"actor\":\"alice\"," ACTIVITY "}",                        400 },
		{ "{\"actor\":\"alice\",\"inboxes\":[]," ACTIVITY "}",         400 },
		{ "{\"actor\":\"alice\",\"inboxes\":[1]," ACTIVITY "}",        400 },
		{ "{" ACTIVITY "," INBOX "}",                                  400 },
		{ "{\"actor\":\"nobody\"," ACTIVITY "," INBOX "}",             404 },
		{ "{\"actor\":\"alice\",\"activity\":[]," INBOX "}",           400 },
		{ "{\"actor\":\"alice\",\"activity\":{}," INBOX "}",           400 },
		{ "{\"actor\":\"alice\",\"inbox\":\"far\"," ACTIVITY "}",      400 },
		{ "{\"actor\":\"alice\",\"transport\":\"A b\"," ACTIVITY "," INBOX "}", 400 },
		{ "{\"actor\":\"alice\",\"sharedInbox\":1," ACTIVITY "," INBOX "}", 400 },
		{ "{\"actor\":\"alice\",\"inboxes\":[\"https://a.example/\",\"ftp://b.example/\"]," ACTIVITY "}", 400 },
	};
	/* clang-format on */

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct test_reply reply = post(cases[i].json);

		cr_expect_eq(reply.status, cases[i].status, "%s: %s",
		    cases[i].json, reply.body);
		cr_expect_neq(*test_text(world->arena, &reply, "error"), '\0');
	}
	cr_expect_eq(rows(), 0);
}

Test(enqueue, a_payload_has_a_bound)
{
	char *big = arena_alloc(world->arena, 262145);
	struct test_reply reply;

	memset(big, 'x', 262144);
	big[262144] = '\0';
	reply = post(arena_printf(world->arena,
	    "{\"actor\":\"alice\"," INBOX ",\"activity\":{\"id\":\"i\","
	    "\"x\":\"%s\"}}",
	    big));
	cr_expect_eq(reply.status, 413, "%s", reply.body);
	cr_expect_eq(rows(), 0);
}

Test(enqueue, only_an_administrator_may_and_only_while_it_is_on)
{
	static const char json[] =
	    "{\"actor\":\"alice\"," ACTIVITY "," INBOX "}";
	struct test_person bob =
	    test_person(world->node, world->node->port, "bob");

	cr_expect_eq(
	    test_post(world->arena, world->node->port, PATH, bob.token, json)
		.status,
	    403);
	cr_expect_eq(
	    test_post(world->arena, world->node->port, PATH, NULL, json).status,
	    401);
	world_sql(world, "UPDATE instance_settings SET fediverse = false");
	cr_expect_eq(post(json).status, 404);
	cr_expect_eq(rows(), 0);
}
