/* Whether a request is really a peer's, and what an administrator may do. */
#include <criterion/criterion.h>

#include "common/base/clock.h"
#include "common/crypto/sign.h"
#include "tests/lib/test_db.h"
#include "tests/lib/test_trust.h"

#define RELAY "/api/federation/relay"
#define PEERS "/api/federation/peers"
#define LUNA "http://luna.localhost:9"
#define SECRET "luna-secret"
#define MINUTE INT64_C(60000)

static struct world *nova;

static void begin(void)
{
	test_db_needed();
	nova = world_new("nova.localhost", "open", NULL);
	cr_assert_eq(world_accept(nova, LUNA, SECRET).status, 200);
}

static void end(void)
{
	world_free(&nova);
}

TestSuite(peer, .init = begin, .fini = end, .timeout = 300);

static const char *at(int64_t offset_ms)
{
	return arena_printf(
	    nova->arena, "%" PRId64, clock_wall_ms() + offset_ms);
}

static struct test_reply relay(const struct signed_request *like)
{
	struct signed_request request = *like;

	request.path = RELAY;
	request.origin = like->origin ? like->origin : LUNA;
	request.secret = like->secret ? like->secret : SECRET;
	request.body = like->body ? like->body
				  : "{\"version\":1,\"sourceInstance\":\"" LUNA
				    "\",\"events\":[]}";
	return world_send(nova, &request);
}

static int64_t nonces(void)
{
	return test_db_number(
	    nova->node->database, "SELECT count(*) AS n FROM nonces");
}

/* ---- the order of authentication, case 120 ---- */

Test(peer, refuses_as_recorded_and_keeps_no_junk)
{
	static const char headers[] = "Missing or malformed federation headers";
	static const char bad[] = "Invalid signature";
	static const char unknown[] = "Unknown or inactive peer";
	static const char zeros[] =
	    "sha256=000000000000000000000000000000000000000000000000000000000"
	    "0000000";
	const struct {
		struct signed_request request;
		int status;
		const char *text;
	} rows[] = {
		{ { .signature = "" }, 401, headers },
		{ { .signature = zeros + 7 }, 401, headers },
		{ { .signature = "sha256=zz" }, 401, headers },
		{ { .signature = "sha256=abcd" }, 401, bad },
		{ { .signature = zeros }, 401, bad },
		{ { .timestamp = "soon" }, 401, headers },
		{ { .timestamp = "-1" }, 401, headers },
		{ { .timestamp = "1e13" }, 401, headers },
		{ { .timestamp = "0x18" }, 401, headers },
		{ { .timestamp = "1796073163" }, 401, bad },
		{ { .timestamp = at(-15 * MINUTE - 5000) }, 401, bad },
		{ { .timestamp = at(15 * MINUTE + 5000) }, 401, bad },
		{ { .timestamp = at(20 * MINUTE) }, 401, bad },
		{ { .nonce = "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
			     "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn" },
		    401, headers },
		{ { .secret = "another" }, 401, bad },
		{ { .origin = "http://unknown.localhost:9" }, 403, unknown },
		{ { .origin = LUNA "/" }, 403, unknown },
		{ { .origin = "luna.localhost" }, 403, unknown },
		{ { .origin = "HTTP://luna.localhost:9" }, 403, unknown },
		{ { .origin = "http://unknown.localhost:9",
		      .signature = zeros },
		    403, unknown },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct test_reply reply = relay(&rows[i].request);

		cr_expect_eq(reply.status, rows[i].status, "row %zu: %d %s", i,
		    reply.status, reply.body);
		cr_expect_not_null(strstr(reply.body, rows[i].text),
		    "row %zu: %s", i, reply.body);
	}
	cr_expect_eq(nonces(), 0);
	cr_expect_eq(test_db_number(nova->node->database,
			 "SELECT count(*) AS n FROM peer_rates"),
	    0);
}

Test(peer, serves_within_fifteen_minutes_either_way)
{
	const int64_t offsets[] = { 0, 14 * MINUTE, -14 * MINUTE };

	for (size_t i = 0; i < COUNT(offsets); i++)
		cr_expect_eq(relay(&(const struct signed_request){
				       .timestamp = at(offsets[i]) })
				 .status,
		    200, "offset %" PRId64, offsets[i]);
}

/* ---- nonces ---- */

Test(peer, a_bad_signature_burns_no_nonce_and_a_nonce_serves_once)
{
	const struct signed_request once = { .nonce = "n-1" };
	struct signed_request forged = once;
	struct test_reply reply;

	forged.secret = "another";
	cr_expect_eq(relay(&forged).status, 401);
	cr_expect_eq(relay(&once).status, 200);
	reply = relay(&once);
	cr_expect_eq(reply.status, 409);
	cr_expect_str_eq(reply.body,
	    "{\"error\":\"Duplicate nonce \xe2\x80\x94 possible replay\","
	    "\"statusCode\":409}");
	cr_expect_eq(relay(&forged).status, 401);
}

Test(peer, a_replay_is_seen_after_a_restart_and_by_another_frontd)
{
	struct test_daemon *other = test_frontd(nova->node, NULL);
	const char *now = at(0);
	struct signed_request once = { .nonce = "n-2", .timestamp = now };

	cr_expect_eq(relay(&once).status, 200);
	once.port = other->port;
	cr_expect_eq(relay(&once).status, 409);
	once.port = 0;
	test_daemon_kill(nova->frontd);
	test_daemon_again(nova->frontd);
	cr_expect_eq(relay(&once).status, 409);
}

Test(peer, revoking_forgets_no_nonce)
{
	const struct signed_request once = { .nonce = "n-3",
		.timestamp = at(0) };

	cr_expect_eq(relay(&once).status, 200);
	world_sql(nova, "DELETE FROM federation_peers");
	cr_assert_eq(world_accept(nova, LUNA, SECRET).status, 200);
	cr_expect_eq(relay(&once).status, 409);
}

Test(peer, who_once_sent_a_nonce_must_go_on)
{
	const struct signed_request without = { .nonce = "" };
	struct test_reply reply;

	cr_expect_eq(relay(&without).status, 200);
	cr_expect_eq(relay(&(const struct signed_request){ 0 }).status, 200);
	reply = relay(&without);
	cr_expect_eq(reply.status, 401);
	cr_expect_not_null(strstr(reply.body,
	    "Nonce required \xe2\x80\x94 peer previously supported nonces"));
}

/* ---- the rate ---- */

Test(peer, the_rate_is_counted_over_all_frontd_and_only_when_verified)
{
	struct test_daemon *other = test_frontd(nova->node, NULL);
	int served = 0;
	struct test_reply reply = { 0 };

	world_sql(
	    nova, "UPDATE instance_settings SET relay_requests_per_minute = 6");
	for (int i = 0; i < 20; i++)
		cr_expect_eq(
		    relay(&(const struct signed_request){ .secret = "forged" })
			.status,
		    401);
	for (int i = 0; i < 14; i++) {
		reply = relay(&(const struct signed_request){
		    .port = i % 2 ? other->port : 0 });
		served += reply.status == 200;
	}
	cr_expect_eq(served, 6, "%d", served);
	cr_expect_str_eq(reply.body,
	    "{\"error\":\"Rate limit exceeded\",\"statusCode\":429}");
}

/* ---- states ---- */

Test(peer, an_unreachable_one_is_served_and_tried_again_at_once)
{
	world_sql(nova,
	    "UPDATE federation_peers SET status = 'unreachable',"
	    " next_attempt_at = now() + interval '1 hour'");
	cr_expect_eq(relay(&(const struct signed_request){ 0 }).status, 200);
	cr_expect_eq(test_db_number(nova->node->database,
			 "SELECT count(*) AS n FROM federation_peers"
			 " WHERE next_attempt_at <= now()"),
	    1);
}

Test(peer, only_served_states_are_served)
{
	static const struct {
		const char *status;
		int answer;
	} rows[] = {
		{ "revoked", 403 },
		{ "awaiting_approval", 403 },
		{ "pending", 200 },
		{ "active", 200 },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		world_sql(nova, "UPDATE federation_peers SET status = '%s'",
		    rows[i].status);
		cr_expect_eq(relay(&(const struct signed_request){ 0 }).status,
		    rows[i].answer, "%s", rows[i].status);
	}
	cr_expect_str_eq(world_status(nova, LUNA), "active");
}

/* ---- bodies of a handshake, cases 011 to 013 ---- */

Test(peer, an_accept_is_read_as_recorded)
{
	static const char https[] = "sourceOrigin must be a valid HTTPS URL "
				    "(HTTP is only allowed for localhost)";
	static const struct {
		const char *body;
		const char *text;
	} rows[] = {
		{ "{}", "sourceOrigin is required" },
		{ "[]", "sourceOrigin is required" },
		{ "null", "sourceOrigin is required" },
		{ "\"x\"", "sourceOrigin is required" },
		{ "{\"sourceOrigin\":1,\"hmacSecret\":\"x\"}",
		    "sourceOrigin is required" },
		{ "{\"sourceOrigin\":\"https://x.test\"}",
		    "hmacSecret is required" },
		{ "{\"sourceOrigin\":\"https://x.test\",\"hmacSecret\":5}",
		    "hmacSecret is required" },
		{ "{\"sourceOrigin\":\"x.test\",\"hmacSecret\":\"s\"}", https },
		{ "{\"sourceOrigin\":\"http://x.test\",\"hmacSecret\":\"s\"}",
		    https },
		{ "{\"sourceOrigin\":\"ftp://x.test\",\"hmacSecret\":\"s\"}",
		    https },
		{ "{\"sourceOrigin\":\"https://u@x.test\","
		  "\"hmacSecret\":\"s\"}",
		    https },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct test_reply reply =
		    test_post(nova->arena, nova->node->port,
			"/api/federation/peer/accept", NULL, rows[i].body);

		cr_expect_eq(reply.status, 400, "row %zu: %s", i, reply.body);
		cr_expect_not_null(strstr(reply.body, rows[i].text),
		    "row %zu: %s", i, reply.body);
	}
}

Test(peer, all_spellings_of_an_origin_are_one_peer)
{
	static const char *const spellings[] = {
		"https://x.test",
		"https://x.test:443/x/y?z#w",
		"HTTPS://X.TEST/",
		"https://x.test.",
	};

	for (size_t i = 0; i < COUNT(spellings); i++)
		cr_expect_eq(
		    world_accept(nova, spellings[i], "one-secret").status, 200,
		    "%s", spellings[i]);
	cr_expect_eq(test_db_number(nova->node->database,
			 "SELECT count(*) AS n FROM federation_peers"
			 " WHERE host LIKE 'x.test%'"),
	    1);
}

Test(peer, an_initiate_is_read_as_recorded)
{
	static const char https[] = "remoteOrigin must be a valid HTTPS URL "
				    "(HTTP is only allowed for localhost)";
	static const struct {
		const char *body;
		const char *text;
	} rows[] = {
		{ "{}", "remoteOrigin is required" },
		{ "{\"remoteOrigin\":5}", "remoteOrigin is required" },
		{ "{\"remoteOrigin\":\"luna.test\"}", https },
		{ "{\"remoteOrigin\":\"http://luna.test\"}", https },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct test_reply reply = test_post(nova->arena,
		    nova->node->port, "/api/federation/peer/initiate",
		    nova->token, rows[i].body);

		cr_expect_eq(reply.status, 400);
		cr_expect_not_null(
		    strstr(reply.body, rows[i].text), "%s", reply.body);
	}
	cr_expect_eq(test_post(nova->arena, nova->node->port,
			 "/api/federation/peer/initiate", NULL, "{}")
			 .status,
	    401);
}

/* ---- the administrator, case 014 ---- */

static const char *peer_path(const char *end)
{
	return arena_printf(nova->arena, PEERS "/%s%s",
	    test_db_text(nova->arena, nova->node->database,
		"SELECT id::text AS t FROM federation_peers"),
	    end);
}

Test(peer, the_list_shows_no_secret)
{
	struct test_reply reply =
	    test_get(nova->arena, nova->node->port, PEERS, nova->token);
	static const char *const members[] = { "\"instanceName\":null,",
		"\"origin\":\"" LUNA "\"", "\"status\":\"active\"",
		"\"lastFailureAt\":null,\"consecutiveFailures\":0,"
		"\"lastSyncedAt\":0,",
		"\"rotationInProgress\":false,\"secretRotatedAt\":null,"
		"\"autoRotateIntervalDays\":90}]}" };

	cr_assert_eq(reply.status, 200);
	for (size_t i = 0; i < COUNT(members); i++)
		cr_expect_not_null(
		    strstr(reply.body, members[i]), "%s", reply.body);
	cr_expect_null(strcasestr(reply.body, "hmac"));
	cr_expect_null(strstr(reply.body, SECRET));
	cr_expect_eq(
	    test_get(nova->arena, nova->node->port, PEERS, NULL).status, 401);
	cr_expect_eq(test_get(nova->arena, nova->node->port, PEERS,
			 test_person(nova->node, nova->node->port, "bob").token)
			 .status,
	    403);
}

Test(peer, the_interval_is_read_as_recorded)
{
	static const struct {
		const char *body;
		int status;
		const char *text;
	} rows[] = {
		{ "{\"autoRotateIntervalDays\":30}", 200, "Days\":30}" },
		{ "{\"autoRotateIntervalDays\":\"45\"}", 200, "Days\":45}" },
		{ "{\"autoRotateIntervalDays\":0}", 400, "between 1 and 365" },
		{ "{\"autoRotateIntervalDays\":366}", 400,
		    "between 1 and 365" },
		{ "{\"autoRotateIntervalDays\":1.5}", 400,
		    "between 1 and 365" },
		{ "{\"autoRotateIntervalDays\":\"x\"}", 400,
		    "between 1 and 365" },
		{ "{\"autoRotateIntervalDays\":null}", 400,
		    "must be an integer" },
		{ "{}", 400, "No valid fields to update" },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct test_reply reply = test_patch(nova->arena,
		    nova->node->port, peer_path(""), nova->token, rows[i].body);

		cr_expect_eq(
		    reply.status, rows[i].status, "row %zu: %s", i, reply.body);
		cr_expect_not_null(strstr(reply.body, rows[i].text),
		    "row %zu: %s", i, reply.body);
	}
	cr_expect_eq(test_patch(nova->arena, nova->node->port, PEERS "/12345",
			 nova->token, "{\"autoRotateIntervalDays\":30}")
			 .status,
	    404);
}

Test(peer, revoking_ends_everything_and_only_then_it_can_be_deleted)
{
	const char *path = peer_path("");
	const char *permanent = peer_path("/permanent");
	struct arena *arena = nova->arena;
	int port = nova->node->port;

	world_sql(nova,
	    "INSERT INTO federation_outbox (peer_id, context_type, context_id,"
	    " event_type, entity_id, payload, expires_at) SELECT id, 'dm', '1',"
	    " 'create', '1', '', now() + interval '1 day'"
	    " FROM federation_peers");
	cr_expect_eq(
	    test_delete(arena, port, permanent, nova->token).status, 400);
	cr_expect_eq(test_delete(arena, port, path, nova->token).status, 200);
	cr_expect_eq(test_delete(arena, port, path, nova->token).status, 200);
	cr_expect_eq(test_db_number(nova->node->database,
			 "SELECT (SELECT count(*) FROM federation_outbox) +"
			 " (SELECT count(hmac_secret) FROM federation_peers)"
			 " AS n"),
	    0);
	cr_expect_eq(relay(&(const struct signed_request){ 0 }).status, 403);
	cr_expect_eq(
	    test_delete(arena, port, permanent, nova->token).status, 200);
	cr_expect_eq(
	    test_delete(arena, port, permanent, nova->token).status, 404);
	cr_expect_eq(test_delete(arena, port, path, nova->token).status, 404);
}
