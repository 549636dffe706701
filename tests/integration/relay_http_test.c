/* A batch through HTTP: answered whole or event by event, never twice. */
#include <criterion/criterion.h>

#include "common/base/clock.h"
#include "common/crypto/sign.h"
#include "tests/lib/test_db.h"
#include "tests/lib/test_http.h"
#include "tests/lib/test_node.h"

#define LUNA "https://luna.test"

static struct arena *arena;
static struct test_node *node;
static struct test_daemon *frontd;
static struct test_person alice;
static const char *secret;

static void begin(void)
{
	test_db_needed();
	arena = arena_new();
	node = test_node_new("nova.localhost");
	frontd = test_frontd(node, NULL);
	alice = test_person(node, frontd->port, "alice");
	test_db_script(node->database,
	    "UPDATE instance_settings SET peer_accept_policy = 'open'");
	secret = secret_fresh(arena);
	cr_assert_eq(
	    test_post(arena, frontd->port, "/api/federation/peer/accept", NULL,
		arena_printf(arena,
		    "{\"sourceOrigin\":\"" LUNA "\",\"hmacSecret\":\"%s\"}",
		    secret))
		.status,
	    200);
}

static void end(void)
{
	test_node_free(&node);
	if (arena)
		arena_free(&arena);
}

TestSuite(relay_http, .init = begin, .fini = end, .timeout = 300);

static struct test_reply relay(const char *body, const char *nonce)
{
	const char *timestamp =
	    arena_printf(arena, "%" PRId64, clock_wall_ms());
	char signature[SIGN_TEXT_MAX];
	const struct test_request request = {
		.method = "POST",
		.path = "/api/federation/relay",
		.body = body,
		.headers = arena_printf(arena,
		    "X-Federation-Origin: " LUNA "\r\n"
		    "X-Federation-Timestamp: %s\r\n"
		    "X-Federation-Nonce: %s\r\n"
		    "X-Federation-Signature: %s\r\n",
		    timestamp, nonce,
		    (sign_make(secret, timestamp, nonce,
			 (struct bytes){ body, strlen(body) }, signature),
			signature)),
	};

	return test_http(arena, frontd->port, &request);
}

static void put_create(struct buf *out, const char *id, const char *content)
{
	buf_printf(out,
	    "{\"eventType\":\"create\",\"contextType\":\"dm\",\"messageId\":"
	    "\"%s\",\"participants\":[{\"homeUserId\":\"700\","
	    "\"homeInstance\":\"luna.test\"},{\"homeUserId\":\"%s\","
	    "\"homeInstance\":\"%s\"}],\"message\":{\"homeUserId\":\"700\","
	    "\"homeInstance\":\"luna.test\",\"content\":\"%s\","
	    "\"createdAt\":1}}",
	    id, alice.id, node->origin, content);
}

/* 50 events; the one in the middle breaks a rule that only the database
 * knows. */
static const char *poisoned(void)
{
	struct buf body;

	test_db_script(node->database,
	    "ALTER TABLE dm_messages ADD CHECK (content <> 'poison')");
	buf_init(&body, arena, 1 << 20);
	buf_text(&body,
	    "{\"version\":1,\"sourceInstance\":\"" LUNA "\",\"events\":[");
	for (int i = 0; i < 50; i++) {
		buf_text(&body, i ? "," : "");
		put_create(&body, arena_printf(arena, "m%d", i),
		    i == 25 ? "poison" : "fine");
	}
	buf_text(&body, "]}");
	return body.data;
}

Test(relay_http, a_batch_that_the_database_refuses_costs_one_event)
{
	const char *body = poisoned();
	const char *nonce = nonce_fresh(arena);
	struct test_reply reply = relay(body, nonce);

	cr_assert_eq(reply.status, 200, "%s", reply.body);
	cr_expect_eq(json_count(test_json(arena, &reply, "accepted")), 49);
	cr_expect_str_eq(
	    test_text(arena, &reply, "rejected.0.messageId"), "m25");
	cr_expect_str_eq(
	    test_text(arena, &reply, "rejected.0.reason"), "processing_error");
	cr_expect_eq(test_db_number(node->database,
			 "SELECT count(*) AS n FROM dm_messages"),
	    49);
	cr_expect_eq(relay(body, nonce).status, 409,
	    "the nonce is remembered although the batch was rolled back");
}

Test(relay_http, a_killed_server_has_taken_what_it_accepted)
{
	struct buf body;

	buf_init(&body, arena, 1 << 20);
	buf_text(&body,
	    "{\"version\":1,\"sourceInstance\":\"" LUNA "\",\"events\":[");
	put_create(&body, "m1", "kept");
	buf_text(&body, "]}");
	cr_assert_eq(relay(body.data, nonce_fresh(arena)).status, 200);
	test_daemon_kill(frontd);
	test_daemon_again(frontd);
	cr_expect(
	    strstr(relay(body.data, nonce_fresh(arena)).body, "duplicate"));
	cr_expect_eq(test_db_number(node->database,
			 "SELECT count(*) AS n FROM dm_messages"),
	    1);
}

Test(relay_http, the_envelope_is_refused_as_recorded)
{
	static const struct {
		const char *body;
		const char *error;
	} rows[] = {
		{ "[]", "Invalid relay request format" },
		{ "null", "Invalid relay request format" },
		{ "{\"version\":\"1\",\"sourceInstance\":\"" LUNA
		  "\",\"events\":[]}",
		    "Invalid relay request format" },
		{ "{\"version\":1,\"sourceInstance\":\"\",\"events\":[]}",
		    "sourceInstance is required" },
		{ "{\"version\":1,\"sourceInstance\":\"https://other.test\","
		  "\"events\":[]}",
		    "sourceInstance does not match the signing origin" },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct test_reply reply =
		    relay(rows[i].body, nonce_fresh(arena));

		cr_expect_eq(reply.status, 400, "row %zu", i);
		cr_expect_str_eq(
		    test_text(arena, &reply, "error"), rows[i].error);
	}
}
