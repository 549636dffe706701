/*
 * What real servers sent, sent to our node: the recorded status and an
 * equivalent answer, or a row of the design's deliberate deviations.
 */
#include <criterion/criterion.h>

#include "common/base/clock.h"
#include "common/crypto/sign.h"
#include "tests/lib/test_http.h"
#include "tests/wire/replay.h"

static void case_alone(
    const char *host, const char *name, const struct deviation *deviations)
{
	struct replay replay;

	recording_check();
	replay_begin(&replay, host, "open");
	replay.deviations = deviations;
	replay_case(&replay, name);
	replay_end(&replay);
}

/* The recorded server had orbit as a peer that it had synced with. */
static void case_after_orbit(
    const char *name, const struct deviation *deviations)
{
	struct replay replay;

	recording_check();
	replay_begin(&replay, "nova.test", "open");
	replay_peer(&replay, "orbit.test", "a-secret-of-orbit");
	replay_sql(
	    &replay, "UPDATE federation_peers SET last_synced_at = now()");
	replay.deviations = deviations;
	replay_case(&replay, name);
	replay_end(&replay);
}

/* The secret that the recorded pair had, before any of their messages. */
static void pair_begin(struct replay *replay, const char *host)
{
	struct recording talk;

	recording_check();
	replay_begin(replay, host, "open");
	talk = recording_load(replay->arena, "020-dm-message-create");
	replay_peer(replay,
	    !strcmp(host, "nova.test") ? "orbit.test" : "nova.test",
	    talk.exchanges[0].secret);
}

static void conversation_of(const char *host)
{
	static const char *const cases[] = { "020-dm-message-create",
		"021-dm-message-edit", "022-dm-message-delete",
		"023-dm-message-create-ws", "024-dm-coalesce", "025-dm-reply",
		"026-dm-homeward" };
	struct replay replay;

	pair_begin(&replay, host);
	if (!strcmp(host, "nova.test"))
		replay_sql(&replay,
		    "UPDATE users SET replicated_instances ="
		    " '[{\"origin\":\"https://orbit.test\","
		    "\"username\":\"alice@nova.test\"}]'"
		    " WHERE username = 'alice'");
	for (size_t i = 0; i < COUNT(cases); i++)
		replay_case(&replay, cases[i]);
	replay_end(&replay);
}

Test(wire_inbound, conversation_as_orbit, .timeout = 300)
{
	conversation_of("orbit.test");
}

Test(wire_inbound, conversation_as_nova, .timeout = 300)
{
	conversation_of("nova.test");
}

Test(wire_inbound, accept_variants_011, .timeout = 300)
{
	static const struct deviation deviations[] = {
		{ 5, "accept for an active peer with another secret", 409,
		    "PEER_EXISTS" },
		{ 0 },
	};

	case_after_orbit("011-peer-accept-variants", deviations);
}

Test(wire_inbound, accept_body_errors_012, .timeout = 300)
{
	case_alone("nova.test", "012-peer-accept-body-errors", NULL);
}

Test(wire_inbound, admin_api_014, .timeout = 300)
{
	case_after_orbit("014-peer-admin-api", NULL);
}

Test(wire_inbound, relay_authentication_120, .timeout = 300)
{
	struct replay replay;
	struct recording recording;

	recording_check();
	replay_begin(&replay, "nova.test", "open");
	recording = recording_load(replay.arena, "120-relay-auth-errors");
	for (size_t i = 0; i < recording.count; i++) {
		/* The last one meets a peer that was revoked meanwhile. */
		if (i == recording.count - 1)
			replay_sql(&replay,
			    "UPDATE federation_peers SET status = 'revoked'");
		replay_exchange(&replay, &recording, i);
	}
	replay_end(&replay);
}

Test(wire_inbound, relay_body_rules_121, .timeout = 300)
{
	static const char signature[] = "signature check";
	static const struct deviation deviations[] = {
		{ 13, "homeward relay: sourceInstance must be the signer's",
		    400, "sourceInstance" },
		{ 16, signature, 200, "\"accepted\":[]" },
		{ 17, signature, 401, "Invalid signature" },
		{ 18, signature, 200, "\"accepted\":[]" },
		{ 19, signature, 401, "Invalid signature" },
		{ 20, signature, 200, "\"accepted\":[]" },
		{ 21, signature, 200, "\"accepted\":[]" },
		/* Duplicate members have no one meaning: refused. */
		{ 24, signature, 400, "Bad Request" },
		{ 25, signature, 200, "\"accepted\":[]" },
		{ 26, signature, 200, "\"accepted\":[]" },
		{ 27, signature, 200, "\"accepted\":[]" },
		{ 33, signature, 401, "Invalid signature" },
		{ 0 },
	};

	case_alone("nova.test", "121-relay-body-errors", deviations);
}

Test(wire_inbound, relay_size_limit_122, .timeout = 300)
{
	static const struct deviation deviations[] = {
		{ 3, "sync", 200, "\"events\":[],\"hasMore\":false" },
		{ 0 },
	};
	struct replay replay;
	struct recording recording;

	recording_check();
	replay_begin(&replay, "nova.test", "open");
	recording = recording_load(replay.arena, "122-relay-size-limit");
	replay.deviations = deviations;
	replay_peer(&replay, "luna.test", recording.exchanges[0].secret);
	for (size_t i = 0; i < recording.count; i++)
		replay_exchange(&replay, &recording, i);
	replay_end(&replay);
}

static const struct deviation refusals_123[] = {
	/* alice has no account at luna: her message from there and
	 * its deletion are not taken. The record's server had met the
	 * number 12 before. */
	{ 1, "homeward relay", 200,
	    "{\"accepted\":[\"c4-02952\",\"c8-02952\",\"c9-02952\","
	    "\"c10-02952\",null,12],\"rejected\":["
	    "{\"messageId\":\"c0-02952\","
	    "\"reason\":\"missing_message_payload\"},"
	    "{\"messageId\":\"c1-02952\","
	    "\"reason\":\"missing_participants\"},"
	    "{\"messageId\":\"c2-02952\","
	    "\"reason\":\"missing_participants\"},"
	    "{\"messageId\":\"c3-02952\","
	    "\"reason\":\"attribution_mismatch\"},"
	    "{\"messageId\":\"c4-02952\",\"reason\":\"duplicate\"},"
	    "{\"messageId\":\"c5-02952\","
	    "\"reason\":\"author_not_found\"},"
	    "{\"messageId\":\"c6-02952\","
	    "\"reason\":\"channel_not_found\"},"
	    "{\"messageId\":\"c7-02952\","
	    "\"reason\":\"attribution_mismatch\"},"
	    "{\"messageId\":\"c11-02952\","
	    "\"reason\":\"processing_error\"}],"
	    "\"maxUploadSize\":104857600}" },
	/* One bad event costs only itself. */
	{ 2, "rejected entries", 200,
	    "[{\"messageId\":\"nope-02952\","
	    "\"reason\":\"unknown_message\"}" },
	{ 4, "homeward relay", 200,
	    "{\"accepted\":[\"c4-02952\",\"c4-02952\"],\"rejected\":["
	    "{\"messageId\":\"nope-02952\","
	    "\"reason\":\"unknown_message\"},"
	    "{\"messageId\":\"c4-02952\","
	    "\"reason\":\"attribution_mismatch\"},"
	    "{\"messageId\":\"nope-02952\","
	    "\"reason\":\"unknown_message\"},"
	    "{\"messageId\":\"c7-02952\","
	    "\"reason\":\"unknown_message\"},"
	    "{\"messageId\":\"c7-02952\","
	    "\"reason\":\"unknown_message\"}],"
	    "\"maxUploadSize\":104857600}" },
	/* A kick is judged by host, whatever its spelling. */
	{ 7, "membership events", 200,
	    "{\"accepted\":["
	    "\"g3-02952\",\"g4-02952\",\"g6-02952\","
	    "\"g-703-02952\",\"g-704-02952\",\"g-705-02952\","
	    "\"g-706-02952\",\"g-707-02952\",\"g-708-02952\","
	    "\"g-709-02952\",\"g-710-02952\",\"g20-02952\","
	    "\"g21-02952\",\"g8-02952\",\"g10-02952\","
	    "\"g11-02952\",\"g12-02952\",\"g14-02952\","
	    "\"g16-02952\"],"
	    "\"rejected\":["
	    "{\"messageId\":\"g0-02952\","
	    "\"reason\":\"missing_membership_payload\"},"
	    "{\"messageId\":\"g1-02952\","
	    "\"reason\":\"channel_not_found\"},"
	    "{\"messageId\":\"g2-02952\","
	    "\"reason\":\"attribution_mismatch\"},"
	    "{\"messageId\":\"g5-02952\","
	    "\"reason\":\"attribution_mismatch\"},"
	    "{\"messageId\":\"g-711-02952\","
	    "\"reason\":\"max_members_exceeded\"},"
	    "{\"messageId\":\"g7-02952\","
	    "\"reason\":\"missing_membership_payload\"},"
	    "{\"messageId\":\"g9-02952\","
	    "\"reason\":\"attribution_mismatch\"},"
	    "{\"messageId\":\"g13-02952\","
	    "\"reason\":\"missing_ownership_payload\"},"
	    "{\"messageId\":\"g15-02952\","
	    "\"reason\":\"attribution_mismatch\"}],"
	    "\"maxUploadSize\":104857600}" },
	{ 0 },
};

Test(wire_inbound, relay_event_refusals_123, .timeout = 300)
{
	struct replay replay;
	struct recording recording;

	recording_check();
	replay_begin(&replay, "nova.test", "open");
	recording = recording_load(replay.arena, "123-relay-event-rejections");
	replay.deviations = refusals_123;
	/* The last one needs calls. */
	for (size_t i = 0; i < 8; i++)
		replay_exchange(&replay, &recording, i);
	replay_end(&replay);
}

/* The record leaves out the requests between the first and the 91st. */
Test(wire_inbound, relay_rate_limit_124, .timeout = 300)
{
	static const struct deviation deviations[] = {
		/* Counted after the signature, so a wrong one is 401. */
		{ 8, "rate limit per peer", 401, "Invalid signature" },
		{ 0 },
	};
	struct replay replay;
	struct recording recording;
	struct exchange *second;
	size_t first_429 = 0;

	recording_check();
	replay_begin(&replay, "nova.test", "open");
	recording = recording_load(replay.arena, "124-relay-rate-limit");
	replay.deviations = deviations;
	second = &recording.exchanges[1];
	while (recording.exchanges[first_429].status != 429)
		first_429++;
	for (size_t i = 0; i < first_429; i++)
		replay_exchange(&replay, &recording, i);
	for (size_t sent = first_429 - 1; sent < 90; sent++) {
		const char *timestamp = arena_printf(
		    replay.arena, "%lld", (long long)clock_wall_ms());
		const char *nonce = nonce_fresh(replay.arena);
		char signature[SIGN_TEXT_MAX];
		struct test_request request = {
			.method = "POST",
			.path = "/api/federation/relay",
			.bytes = second->body,
			.content_type = "application/json",
		};

		sign_make(
		    second->secret, timestamp, nonce, second->body, signature);
		request.headers = arena_printf(replay.arena,
		    "X-Federation-Origin: https://luna.test\r\n"
		    "X-Federation-Timestamp: %s\r\n"
		    "X-Federation-Nonce: %s\r\n"
		    "X-Federation-Signature: %s\r\n",
		    timestamp, nonce, signature);
		cr_assert_eq(
		    test_http(replay.arena, replay.port, &request).status, 200);
	}
	for (size_t i = first_429; i < recording.count; i++)
		replay_exchange(&replay, &recording, i);
	replay_end(&replay);
}

static void expect_header(struct replay *replay, const struct test_reply *reply,
    const char *name, const char *want)
{
	const char *value = test_header(replay->arena, reply, name);

	cr_assert_not_null(value, "%s", name);
	cr_expect_str_eq(value, want, "%s: %s", name, value);
}

/* The record leaves out the requests between the first and the 200th. */
Test(wire_inbound, global_rate_limit_125, .timeout = 300)
{
	struct replay replay;
	struct recording recording;
	struct test_reply reply;
	const char *path;

	recording_check();
	replay_begin_with(&replay, "nova.test", "open", 200);
	recording = recording_load(replay.arena, "125-global-rate-limit");
	path = recording.exchanges[0].path;
	replay_exchange(&replay, &recording, 0);
	for (int sent = 1; sent < 199; sent++) {
		reply = test_get(replay.arena, replay.port, path, NULL);
		cr_assert_eq(reply.status, 200);
		expect_header(&replay, &reply, "x-ratelimit-limit", "200");
		expect_header(&replay, &reply, "x-ratelimit-remaining",
		    arena_printf(replay.arena, "%d", 199 - sent));
	}
	replay_exchange(&replay, &recording, 1);
	replay_exchange(&replay, &recording, 2);
	reply = test_get(replay.arena, replay.port, path, NULL);
	cr_expect_str_eq(
	    test_text(replay.arena, &reply, "message"), "Rate limit exceeded");
	expect_header(&replay, &reply, "x-ratelimit-remaining", "0");
	expect_header(&replay, &reply, "retry-after",
	    test_header(replay.arena, &reply, "x-ratelimit-reset"));
	replay_end(&replay);
}

/* ---- what a third peer is told, and a peer that did not answer ---- */

/* As a peer of nova that the case's own secrets are good for. */
static void told_by_nova(const char *host, int64_t upload_max)
{
	struct replay replay;
	struct recording talk;
	size_t first = 0;

	recording_check();
	replay_begin(&replay, host, "open");
	replay_sql(&replay,
	    arena_printf(replay.arena,
		"UPDATE instance_settings SET max_upload_size_bytes = %" PRId64,
		upload_max));
	talk = recording_load(replay.arena, "140-third-peer-broadcast");
	while (strcmp(talk.exchanges[first].to, host) != 0)
		first++;
	replay_peer(&replay, "nova.test", talk.exchanges[first].secret);
	replay_case(&replay, "140-third-peer-broadcast");
	replay_sql(&replay,
	    "DO $$ BEGIN IF EXISTS (SELECT FROM dm_messages) THEN"
	    " RAISE 'a message is left'; END IF; END $$");
	replay_end(&replay);
}

Test(
    wire_inbound, a_conversation_with_a_third_peer_as_orbit_140, .timeout = 300)
{
	told_by_nova("orbit.test", 104857600);
}

/* Others' private messages: yes to all of it, and nothing is kept. */
Test(wire_inbound, a_conversation_with_a_third_peer_as_luna_140, .timeout = 300)
{
	told_by_nova("luna.test", 1048576);
}

Test(wire_inbound, from_an_unreachable_peer_150, .timeout = 300)
{
	static const struct deviation deviations[] = {
		{ 20, "failures are counted by us", 0, NULL },
		{ 21, "relay from an unreachable peer", 200,
		    "\"accepted\":[\"" },
		{ 22, "relay from an unreachable peer", 200,
		    "\"accepted\":[\"" },
		{ 23, "a row that is there already", 200, "unreachable" },
		{ 0 },
	};
	struct replay replay;
	struct recording talk;

	recording_check();
	replay_begin(&replay, "nova.test", "open");
	talk = recording_load(replay.arena, "150-peer-unreachable");
	replay_peer(&replay, "orbit.test", talk.exchanges[21].secret);
	replay_sql(
	    &replay, "UPDATE federation_peers SET status = 'unreachable'");
	replay.deviations = deviations;
	replay_case(&replay, "150-peer-unreachable");
	replay_end(&replay);
}
