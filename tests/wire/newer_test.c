/*
 * Peers of the newer recorded version (8e13aaa): what they send, sent to our
 * node, and what our node does with their answers to a handshake. Presence,
 * closing and reopening, and the looks of groups are not ours.
 *
 * What it tells of itself in an answer to an accept (instanceName, instanceId)
 * we do not tell; its servers do without (209).
 */
#include <criterion/criterion.h>

#include "tests/lib/test_http.h"
#include "tests/lib/test_peer.h"
#include "tests/wire/replay.h"

#define ACCEPTED "{\"accepted\":true}"
#define EXISTS "PEER_EXISTS_RESET_REQUIRED"
static const char name_of_ours[] = "names in an answer to an accept";
static const char sync_todo[] = "sync";

/* The place of the first exchange that tells a secret of the pair. */
static const char *secret_of(const struct recording *recording)
{
	size_t place = 0;

	while (!recording->exchanges[place].secret)
		place++;
	return recording->exchanges[place].secret;
}

static void case_begin(struct replay *replay, struct recording *recording,
    const char *name, const struct deviation *deviations)
{
	recording_check();
	replay_begin(replay, "nova.test", "open");
	*recording =
	    recording_load_of(replay->arena, "backspace-8e13aaa", name);
	replay->deviations = deviations;
}

/* Those from host. */
static void send_all(
    struct replay *replay, const struct recording *recording, const char *host)
{
	for (size_t i = 0; i < recording->count; i++)
		if (!strcmp(recording->exchanges[i].to, replay->node->host) &&
		    (!host || !strcmp(recording->exchanges[i].from, host)))
			replay_exchange(replay, recording, i);
}

/* ---- what they send ---- */

Test(wire_newer, accept_variants_011, .timeout = 300)
{
	static const struct deviation deviations[] = {
		{ 4, name_of_ours, 200, ACCEPTED },
		{ 5, name_of_ours, 409, EXISTS },
		{ 0 },
	};
	struct replay replay;
	struct recording recording;

	case_begin(&replay, &recording, "011-peer-accept-variants", deviations);
	replay_peer(&replay, "orbit.test", "a-secret-of-orbit");
	replay_sql(&replay,
	    "UPDATE federation_peers SET last_synced_at = now(),"
	    " instance_name = 'Backspace'");
	send_all(&replay, &recording, NULL);
	replay_end(&replay);
}

Test(wire_newer, admin_api_014, .timeout = 300)
{
	static const struct deviation deviations[] = {
		{ 0, name_of_ours, 200, ACCEPTED },
		{ 0 },
	};
	struct replay replay;
	struct recording recording;

	case_begin(&replay, &recording, "014-peer-admin-api", deviations);
	replay_peer(&replay, "orbit.test", "a-secret-of-orbit");
	replay_sql(
	    &replay, "UPDATE federation_peers SET instance_name = 'Backspace'");
	replay_exchange(&replay, &recording, 0);
	replay_sql(
	    &replay, "UPDATE federation_peers SET last_synced_at = now()");
	for (size_t i = 1; i < recording.count; i++)
		if (!strcmp(recording.exchanges[i].to, "nova.test"))
			replay_exchange(&replay, &recording, i);
	replay_end(&replay);
}

Test(wire_newer, relay_authentication_120, .timeout = 300)
{
	static const struct deviation deviations[] = {
		{ 0, name_of_ours, 200, ACCEPTED },
		{ 0 },
	};
	struct replay replay;
	struct recording recording;

	case_begin(&replay, &recording, "120-relay-auth-errors", deviations);
	for (size_t i = 0; i < recording.count; i++) {
		/* The last one meets a peer that was revoked meanwhile. */
		if (i == recording.count - 1)
			replay_sql(&replay,
			    "UPDATE federation_peers SET status = 'revoked'");
		if (!strcmp(recording.exchanges[i].to, "nova.test"))
			replay_exchange(&replay, &recording, i);
	}
	replay_end(&replay);
}

Test(wire_newer, relay_body_rules_121, .timeout = 300)
{
	static const char signature[] = "signature check";
	static const struct deviation deviations[] = {
		{ 0, name_of_ours, 200, ACCEPTED },
		{ 7, "rejected entries", 400, "Invalid relay request format" },
		{ 16, "homeward relay: sourceInstance must be the signer's",
		    400, "sourceInstance" },
		{ 19, signature, 200, "\"accepted\":[]" },
		{ 20, signature, 401, "Invalid signature" },
		{ 21, signature, 200, "\"accepted\":[]" },
		{ 22, signature, 401, "Invalid signature" },
		{ 23, signature, 200, "\"accepted\":[]" },
		{ 24, signature, 200, "\"accepted\":[]" },
		/* Duplicate members have no one meaning: refused. */
		{ 27, signature, 400, "Bad Request" },
		{ 28, signature, 200, "\"accepted\":[]" },
		{ 29, signature, 200, "\"accepted\":[]" },
		{ 30, signature, 200, "\"accepted\":[]" },
		{ 36, signature, 401, "Invalid signature" },
		{ 0 },
	};
	struct replay replay;
	struct recording recording;

	case_begin(&replay, &recording, "121-relay-body-errors", deviations);
	send_all(&replay, &recording, "luna.test");
	replay_end(&replay);
}

Test(wire_newer, relay_size_limit_122, .timeout = 300)
{
	static const struct deviation deviations[] = {
		{ 0, name_of_ours, 200, ACCEPTED },
		{ 17, sync_todo, 0, NULL },
		{ 18, sync_todo, 0, NULL },
		{ 0 },
	};
	struct replay replay;
	struct recording recording;

	case_begin(&replay, &recording, "122-relay-size-limit", deviations);
	send_all(&replay, &recording, "luna.test");
	replay_end(&replay);
}

Test(wire_newer, relay_event_refusals_123, .timeout = 300)
{
	static const struct deviation deviations[] = {
		/* As of the older version (inbound_test.c). */
		{ 0, "homeward relay", 200,
		    "{\"accepted\":[\"c4-02133\",\"c8-02133\",\"c9-02133\","
		    "\"c10-02133\",null,12],\"rejected\":["
		    "{\"messageId\":\"c0-02133\","
		    "\"reason\":\"missing_message_payload\"},"
		    "{\"messageId\":\"c1-02133\","
		    "\"reason\":\"missing_participants\"},"
		    "{\"messageId\":\"c2-02133\","
		    "\"reason\":\"missing_participants\"},"
		    "{\"messageId\":\"c3-02133\","
		    "\"reason\":\"attribution_mismatch\"},"
		    "{\"messageId\":\"c4-02133\",\"reason\":\"duplicate\"},"
		    "{\"messageId\":\"c5-02133\","
		    "\"reason\":\"author_not_found\"},"
		    "{\"messageId\":\"c6-02133\","
		    "\"reason\":\"channel_not_found\"},"
		    "{\"messageId\":\"c7-02133\","
		    "\"reason\":\"attribution_mismatch\"},"
		    "{\"messageId\":\"c11-02133\","
		    "\"reason\":\"processing_error\"}],"
		    "\"maxUploadSize\":104857600}" },
		{ 2, "rejected entries", 200,
		    "[{\"messageId\":\"nope-02133\","
		    "\"reason\":\"unknown_message\"}" },
		{ 4, "homeward relay", 200,
		    "{\"accepted\":[\"c4-02133\",\"c4-02133\"],\"rejected\":["
		    "{\"messageId\":\"nope-02133\","
		    "\"reason\":\"unknown_message\"},"
		    "{\"messageId\":\"c4-02133\","
		    "\"reason\":\"attribution_mismatch\"},"
		    "{\"messageId\":\"nope-02133\","
		    "\"reason\":\"unknown_message\"},"
		    "{\"messageId\":\"c7-02133\","
		    "\"reason\":\"unknown_message\"},"
		    "{\"messageId\":\"c7-02133\","
		    "\"reason\":\"unknown_message\"}],"
		    "\"maxUploadSize\":104857600}" },
		{ 0 },
	};
	struct replay replay;
	struct recording recording;

	case_begin(
	    &replay, &recording, "123-relay-event-rejections", deviations);
	replay_sql(&replay,
	    "UPDATE users SET id = 385902953156198400"
	    " WHERE username = 'alice'");
	replay_peer(&replay, "luna.test", secret_of(&recording));
	for (size_t i = 0; i < 5; i++)
		if (!strcmp(recording.exchanges[i].to, "nova.test"))
			replay_exchange(&replay, &recording, i);
	replay_end(&replay);
}

/* A message of ours that was served while they thought us away. */
Test(wire_newer, relay_of_who_was_away_151, .timeout = 300)
{
	static const struct deviation deviations[] = {
		{ 0, "relay from an unreachable peer", 200,
		    "{\"accepted\":[\"385904345144647680\"],"
		    "\"rejected\":[],\"maxUploadSize\":104857600}" },
		{ 0 },
	};
	struct replay replay;
	struct recording recording;

	case_begin(&replay, &recording, "151-peer-recovered", deviations);
	replay_sql(&replay,
	    "UPDATE users SET id = 385902953156198400"
	    " WHERE username = 'alice'");
	replay_peer(&replay, "orbit.test", secret_of(&recording));
	replay_sql(
	    &replay, "UPDATE federation_peers SET status = 'unreachable'");
	replay_exchange(&replay, &recording, 0);
	replay_exchange(&replay, &recording, 7);
	replay_end(&replay);
}

Test(wire_newer, epoch_202, .timeout = 300)
{
	static const char epoch[] = "signed answers";
	static const struct deviation deviations[] = {
		{ 1, epoch, 200, "\"instanceId\":\"" },
		{ 10, epoch, 200, "\"instanceId\":\"" },
		{ 13, epoch, 200, "\"instanceId\":\"" },
		{ 14, epoch, 200, "\"instanceId\":\"" },
		{ 20, name_of_ours, 409, EXISTS },
		/* Another instance id of somebody who proves nothing: no
		 * reason to stop talking to the peer. */
		{ 21, name_of_ours, 409, EXISTS },
		{ 22, "nothing changes", 200, "\"status\":\"active\"" },
		{ 23, epoch, 200, "\"instanceId\":\"" },
		{ 24, "nothing changes", 200, "\"accepted\":[]" },
		{ 0 },
	};
	struct replay replay;
	struct recording recording;

	case_begin(&replay, &recording, "202-epoch", deviations);
	replay_peer(&replay, "luna.test", secret_of(&recording));
	send_all(&replay, &recording, NULL);
	replay_end(&replay);
}

/* ---- a handshake that we begin ---- */

static const char accept_path[] = "/api/federation/peer/accept";

struct scene {
	struct replay replay;
	struct recording recording;
	struct test_peer *peer;
	const struct exchange *answer; /* to the next accept */
};

static void script(void *arg, struct arena *arena UNUSED,
    const struct test_peer_request *request, struct test_peer_answer *answer)
{
	const struct scene *scene = arg;

	if (!scene->answer || strcmp(request->path, accept_path) != 0)
		return;
	answer->status = scene->answer->status;
	answer->body = scene->answer->answer;
}

static void scene_begin(struct scene *scene, const char *name)
{
	*scene = (struct scene){ 0 };
	case_begin(&scene->replay, &scene->recording, name, NULL);
	test_outboxd(scene->replay.node,
	    (const char *const[]){ "origin=https://nova.test", NULL });
	scene->peer = test_peer_new("orbit.localhost", script, scene);
}

static void scene_end(struct scene *scene)
{
	replay_end(&scene->replay);
	test_peer_free(&scene->peer);
}

static const char *here(struct scene *scene, const char *recorded)
{
	return text_replaced(scene->replay.arena, recorded,
	    "https://orbit.test", test_peer_origin(scene->peer));
}

/* The client call at place, whose accept is recorded after it. */
static void initiate(struct scene *scene, size_t place, int status)
{
	struct replay *replay = &scene->replay;
	const struct exchange *call = &scene->recording.exchanges[place];
	struct test_reply reply;

	scene->answer = call + 1;
	reply = test_post(replay->arena, replay->port, call->path,
	    replay->admin.token, here(scene, call->body.data));
	cr_expect_eq(reply.status, status, "exchange %zu: %d %s", place,
	    reply.status, reply.body);
	cr_expect(replay_agree(replay, here(scene, call->answer), reply.body),
	    "exchange %zu: %s, recorded %s", place, reply.body, call->answer);
}

static const char *sent_secret(struct scene *scene, size_t place)
{
	struct test_peer_request sent =
	    test_peer_nth(scene->peer, accept_path, place);
	const struct json *body = NULL;
	struct err err = { 0 };

	cr_assert(json_parse(scene->replay.arena, sent.body, &body, &err));
	return json_string(json_member(body, "hmacSecret"));
}

/* The exchange at place in the name of the scripted peer. */
static struct test_reply as_peer(
    struct scene *scene, size_t place, const char *secret)
{
	struct replay *replay = &scene->replay;
	struct exchange exchange = scene->recording.exchanges[place];

	exchange.body.data = here(scene, exchange.body.data);
	exchange.body.len = strlen(exchange.body.data);
	return replay_as(
	    replay, &exchange, test_peer_origin(scene->peer), secret);
}

/* It names itself in its answer, and we keep that. */
Test(wire_newer, we_initiate_010, .timeout = 300)
{
	struct scene scene;

	scene_begin(&scene, "010-peer-initiate-accept");
	initiate(&scene, 0, 200);
	cr_expect_eq(test_peer_count(scene.peer, accept_path), 1);
	scene_end(&scene);
}

/* Queued, denied, refused, queued again, approved. */
Test(wire_newer, we_are_queued_200, .timeout = 300)
{
	struct scene scene;
	struct test_reply reply;

	scene_begin(&scene, "200-approval-queue");
	initiate(&scene, 0, 200);
	reply = as_peer(&scene, 5, "not-our-secret");
	cr_expect_eq(reply.status, 401, "%s", reply.body);
	reply = as_peer(&scene, 5, sent_secret(&scene, 0));
	cr_expect_eq(reply.status, 200);
	cr_expect_str_eq(reply.body, scene.recording.exchanges[5].answer);
	reply = as_peer(&scene, 5, sent_secret(&scene, 0));
	cr_expect_eq(reply.status, 403, "%s", reply.body);
	initiate(&scene, 8, 502);
	initiate(&scene, 12, 200);
	reply = as_peer(&scene, 16, NULL);
	cr_expect_eq(reply.status, 200);
	cr_expect_str_eq(reply.body, ACCEPTED);
	reply = test_get(scene.replay.arena, scene.replay.port,
	    "/api/federation/peers", scene.replay.admin.token);
	cr_expect_not_null(strstr(reply.body,
	    "\"instanceName\":\"Backspace\",\"status\":\"active\""));
	/* A denial that comes late denies nothing. */
	reply = as_peer(&scene, 5, sent_secret(&scene, 2));
	cr_expect_eq(reply.status, 403, "%s", reply.body);
	scene_end(&scene);
}

/* An older server comes to a newer one, and an older accept to us. */
Test(wire_newer, an_accept_without_names_209, .timeout = 300)
{
	static const struct deviation deviations[] = {
		{ 21, name_of_ours, 200, ACCEPTED },
		{ 0 },
	};
	struct replay replay;
	struct recording recording;

	case_begin(&replay, &recording, "209-peer-without-epoch", deviations);
	send_all(&replay, &recording, "luna.test");
	replay_end(&replay);
}
