/* How many requests of one address are served. */
#include <criterion/criterion.h>

#include "common/base/clock.h"
#include "common/crypto/sign.h"
#include "tests/lib/test_db.h"
#include "tests/lib/test_http.h"
#include "tests/lib/test_node.h"

static struct test_node *node;
static struct arena *arena;

static void begin_with(const char *const *settings)
{
	test_db_needed();
	arena = arena_new();
	node = test_node_new("nova.localhost");
	test_frontd(node, settings);
}

static void end(void)
{
	test_node_free(&node);
	if (arena)
		arena_free(&arena);
}

static void begin_limited(void)
{
	static const char *const settings[] = { "rate_limits=on",
		"rate_general=5", NULL };

	begin_with(settings);
}

Test(rates, the_general_counter_holds_and_says_when_it_ends,
    .init = begin_limited, .fini = end, .timeout = 300)
{
	struct test_reply reply;
	const char *left;

	for (int i = 0; i < 5; i++) {
		reply = test_get(arena, node->port, "/api/health", NULL);
		left = test_header(arena, &reply, "x-ratelimit-remaining");
		cr_expect_eq(reply.status, 200);
		cr_expect_str_eq(left, arena_printf(arena, "%d", 4 - i));
	}
	reply = test_get(arena, node->port, "/api/instance/info", NULL);
	cr_expect_eq(reply.status, 429);
	cr_expect_str_eq(
	    test_text(arena, &reply, "message"), "Rate limit exceeded");
	cr_expect_str_eq(test_header(arena, &reply, "retry-after"),
	    arena_printf(
		arena, "%" PRId64, test_number(arena, &reply, "retryAfter")));
	reply = test_get(
	    arena, node->port, "/api/auth/check-username?username=x", NULL);
	cr_expect_eq(reply.status, 200, "routes with a rate count apart");
	cr_expect_str_eq(test_header(arena, &reply, "x-ratelimit-limit"), "30");
}

Test(rates, an_invented_forwarded_address_changes_nothing,
    .init = begin_limited, .fini = end, .timeout = 300)
{
	struct test_reply reply = { .status = 0 };

	for (int i = 0; i < 6; i++)
		reply = test_http(arena, node->port,
		    &(struct test_request){ .method = "GET",
			.path = "/api/health",
			.headers = arena_printf(
			    arena, "X-Forwarded-For: 192.0.2.%d\r\n", i + 1) });
	cr_expect_eq(reply.status, 429);
}

static void begin_behind_proxy(void)
{
	static const char *const settings[] = { "rate_limits=on",
		"rate_general=2", "trusted_proxies=127.0.0.1", NULL };

	begin_with(settings);
}

static int status_from(const char *forwarded_for)
{
	return test_http(arena, node->port,
	    &(struct test_request){ .method = "GET",
		.path = "/api/health",
		.headers = arena_printf(
		    arena, "X-Forwarded-For: %s\r\n", forwarded_for) })
	    .status;
}

Test(rates, behind_a_proxy_the_right_most_address_counts,
    .init = begin_behind_proxy, .fini = end, .timeout = 300)
{
	cr_expect_eq(status_from("192.0.2.1"), 200);
	cr_expect_eq(status_from("10.1.1.1, 192.0.2.1"), 200);
	cr_expect_eq(status_from("10.1.1.2, 192.0.2.1"), 429);
	cr_expect_eq(status_from("192.0.2.2"), 200);
	cr_expect_eq(status_from("2001:db8::1"), 200);
	cr_expect_eq(status_from("2001:db8::2"), 200);
	cr_expect_eq(status_from("2001:db8::3"), 429, "one /64");
}

/* ---- who claims to be a peer ---- */

#define LUNA "https://luna.example"
#define LUNAS "luna's secret"

static void begin_with_peer(void)
{
	begin_behind_proxy();
	test_db_script(node->database,
	    "UPDATE instance_settings SET peer_accept_policy = 'open'");
	cr_assert_eq(
	    test_post(arena, node->port, "/api/federation/peer/accept", NULL,
		"{\"sourceOrigin\":\"" LUNA "\","
		"\"hmacSecret\":\"" LUNAS "\"}")
		.status,
	    200);
}

static struct test_reply relay_from(
    const char *address, const char *path, const char *secret)
{
	static const char body[] =
	    "{\"version\":1,\"sourceInstance\":\"" LUNA "\",\"events\":[]}";
	const char *timestamp =
	    arena_printf(arena, "%" PRId64, clock_wall_ms());
	const char *nonce = nonce_fresh(arena);
	char signature[SIGN_TEXT_MAX];

	sign_make(secret, timestamp, nonce,
	    (struct bytes){ body, strlen(body) }, signature);
	return test_http(arena, node->port,
	    &(struct test_request){ .method = "POST",
		.path = path,
		.body = body,
		.headers = arena_printf(arena,
		    "X-Forwarded-For: %s\r\nX-Federation-Origin: " LUNA
		    "\r\nX-Federation-Timestamp: %s\r\n"
		    "X-Federation-Nonce: %s\r\n"
		    "X-Federation-Signature: %s\r\n",
		    address, timestamp, nonce, signature) });
}

Test(rates, who_proves_nothing_is_counted_by_address_and_costs_no_peer_anything,
    .init = begin_with_peer, .fini = end, .timeout = 300)
{
	static const char relay[] = "/api/federation/relay";
	static const char rotate[] = "/api/federation/peer/rotate";
	struct test_reply reply;

	for (int i = 0; i < 10; i++) {
		reply = relay_from("192.0.2.1", relay, LUNAS);
		cr_expect_eq(reply.status, 200, "%d: %s", i, reply.body);
		cr_expect_null(test_header(arena, &reply, "x-ratelimit-limit"));
	}
	cr_expect_eq(relay_from("2001:db8::1", relay, "forged").status, 401);
	cr_expect_eq(relay_from("2001:db8::2", rotate, "forged").status, 401);
	reply = relay_from("2001:db8::3", relay, "forged");
	cr_expect_eq(reply.status, 429);
	cr_expect_str_eq(
	    test_text(arena, &reply, "message"), "Rate limit exceeded");
	cr_expect_not_null(test_header(arena, &reply, "retry-after"));
	cr_expect_eq(
	    relay_from("2001:db8:0:1::1", relay, "forged").status, 401);
	cr_expect_eq(relay_from("192.0.2.1", relay, LUNAS).status, 200);
	cr_expect_eq(status_from("2001:db8::4"), 200, "people count apart");
}

/* ---- the handshake's own counter, as recorded ---- */

static struct test_reply offer(const char *json)
{
	return test_post(
	    arena, node->port, "/api/federation/peer/accept", NULL, json);
}

Test(rates, an_accept_counts_unless_it_is_no_json, .init = begin_limited,
    .fini = end, .timeout = 300)
{
	struct test_reply reply;

	for (int i = 0; i < 10; i++) {
		cr_expect_eq(offer("{\"sourceOrigin\":").status, 400);
		cr_expect_eq(offer("").status, 400);
		reply = offer("{}");
		cr_expect_eq(reply.status, 400, "%d: %s", i, reply.body);
		cr_expect_str_eq(reply.body,
		    "{\"error\":\"sourceOrigin is required\","
		    "\"statusCode\":400}");
	}
	reply = offer("{}");
	cr_expect_eq(reply.status, 429);
	cr_expect_str_eq(reply.body,
	    "{\"error\":\"Too many peering requests \xe2\x80\x94 try again "
	    "later\",\"statusCode\":429}");
	cr_expect_not_null(test_header(arena, &reply, "retry-after"));
	cr_expect_eq(offer("[").status, 400);
}

static const char *const own_counters[] = {
	"/api/auth/register",
	"/api/auth/login",
};

Test(rates, sign_up_and_log_in_count_apart_from_each_other,
    .init = begin_limited, .fini = end, .timeout = 300)
{
	static const int max[] = { 10, 15 };

	for (size_t i = 0; i < COUNT(own_counters); i++) {
		for (int n = 0; n < max[i]; n++)
			cr_expect_eq(test_post(arena, node->port,
					 own_counters[i], NULL, "{}")
					 .status,
			    400, "%s %d", own_counters[i], n);
		cr_expect_eq(
		    test_post(arena, node->port, own_counters[i], NULL, "{}")
			.status,
		    429, "%s", own_counters[i]);
	}
}
