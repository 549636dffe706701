/*
 * The recorded handshakes, with a scripted peer in the other server's place
 * and the policy that does as the reference does.
 */
#include <criterion/criterion.h>

#include <unistd.h>

#include "common/base/clock.h"
#include "common/crypto/sign.h"
#include "tests/lib/test_http.h"
#include "tests/lib/test_peer.h"
#include "tests/wire/replay.h"

enum { WAIT_MS = 15000 };
static const char accept_path[] = "/api/federation/peer/accept";
static const char initiate_path[] = "/api/federation/peer/initiate";

struct scene {
	struct replay replay;
	struct test_peer *peer;
	struct recording recording;
	const char *stand_for; /* the recorded origin of the peer */
	struct test_peer_answer answer;
	bool answers; /* with answer instead of taking everything */
};

static void script(void *arg, struct arena *arena UNUSED,
    const struct test_peer_request *request, struct test_peer_answer *answer)
{
	struct scene *scene = arg;

	if (scene->answers && !strcmp(request->path, accept_path))
		*answer = scene->answer;
}

/* version NULL: the older one. */
static void scene_begin(struct scene *scene, const char *version,
    const char *name, const char *stand_for)
{
	recording_check();
	*scene = (struct scene){ .stand_for = stand_for };
	replay_begin(&scene->replay, "nova.test", "open");
	test_outboxd(scene->replay.node,
	    (const char *const[]){ "origin=https://nova.test", NULL });
	scene->peer = test_peer_new("luna.localhost", script, scene);
	scene->recording =
	    recording_load_of(scene->replay.arena, version, name);
}

static void scene_end(struct scene *scene)
{
	replay_end(&scene->replay);
	test_peer_free(&scene->peer);
}

static const char *ours(struct scene *scene, const char *text)
{
	return text_replaced(scene->replay.arena, text, scene->stand_for,
	    test_peer_origin(scene->peer));
}

/* The place-th client call of the record, here. */
static struct test_reply client_call(struct scene *scene, size_t place)
{
	const struct exchange *call = &scene->recording.exchanges[place];
	struct replay *replay = &scene->replay;
	bool known = json_member(call->headers, "Authorization") != NULL;
	struct test_request request = {
		.method = call->method,
		.path = call->path,
		.token = !known		  ? NULL
		    : call->status == 403 ? replay->member.token
					  : replay->admin.token,
		.body = call->body.len ? ours(scene, call->body.data) : NULL,
	};

	return test_http(replay->arena, replay->port, &request);
}

static void expect_recorded(
    struct scene *scene, size_t place, const struct test_reply *reply)
{
	const struct exchange *call = &scene->recording.exchanges[place];
	const char *want = ours(scene, call->answer);

	cr_expect_eq(reply->status, call->status, "exchange %zu: %d %s", place,
	    reply->status, reply->body);
	cr_expect(replay_agree(&scene->replay, want, reply->body),
	    "exchange %zu: %s, recorded %s", place, reply->body, want);
}

static void expect_client(struct scene *scene, size_t place)
{
	struct test_reply reply = client_call(scene, place);

	expect_recorded(scene, place, &reply);
}

/* What we sent as accept has the recorded members and nothing else. */
static const char *secret_of_accept(struct scene *scene, size_t place)
{
	struct test_peer_request sent;
	const struct json *body = NULL;
	struct err err = { 0 };

	cr_assert(test_peer_got(scene->peer, accept_path, place + 1, WAIT_MS));
	sent = test_peer_nth(scene->peer, accept_path, place);
	cr_assert(json_parse(scene->replay.arena, sent.body, &body, &err));
	cr_expect_str_eq(json_string(json_member(body, "sourceOrigin")),
	    "https://nova.test");
	cr_expect_eq(strspn(json_string(json_member(body, "hmacSecret")),
			 "0123456789abcdef"),
	    64);
	cr_expect_eq(sent.body.len,
	    strlen("{\"sourceOrigin\":\"https://nova.test\","
		   "\"hmacSecret\":\"\"}") +
		64);
	return json_string(json_member(body, "hmacSecret"));
}

Test(wire_handshake, initiate_and_accept_010, .timeout = 300)
{
	struct scene scene;

	scene_begin(
	    &scene, NULL, "010-peer-initiate-accept", "https://orbit.test");
	expect_client(&scene, 0);
	secret_of_accept(&scene, 0);
	expect_client(&scene, 2);
	expect_client(&scene, 4);
	cr_expect_eq(test_peer_count(scene.peer, accept_path), 1);
	scene_end(&scene);
}

static void initiate_errors(const char *version)
{
	struct scene scene;
	struct test_reply reply;
	int slow;
	const char *body;

	scene_begin(
	    &scene, version, "013-peer-initiate-errors", "https://luna.test");
	for (size_t i = 0; i < 7; i++)
		expect_client(&scene, i);
	scene.answers = true;
	scene.answer = (struct test_peer_answer){
		.status = 403,
		.body = "{\"error\":\"Peering with this instance has been "
			"revoked\",\"statusCode\":403}",
	};
	expect_client(&scene, 7);
	/* Handshake: an unknown outcome keeps row and secret. */
	scene.answer = (struct test_peer_answer){ .status = 0 };
	reply = client_call(&scene, 9);
	cr_expect_eq(reply.status, 502, "%s", reply.body);
	scene.answer = (struct test_peer_answer){ .hold_ms = 30000 };
	body = arena_printf(scene.replay.arena, "{\"remoteOrigin\":\"%s\"}",
	    test_peer_origin(scene.peer));
	slow = test_http_connect(scene.replay.port);
	body = arena_printf(scene.replay.arena,
	    "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"
	    "Content-Type: application/json\r\nContent-Length: %zu\r\n"
	    "\r\n%s",
	    initiate_path, scene.replay.admin.token, strlen(body), body);
	cr_assert(test_http_write(slow, body, strlen(body)));
	cr_assert(test_peer_got(scene.peer, accept_path, 3, WAIT_MS));
	expect_client(&scene, 13);
	reply = test_http_read(scene.replay.arena, slow);
	close(slow);
	expect_recorded(&scene, 11, &reply);
	cr_expect_str_eq(
	    secret_of_accept(&scene, 1), secret_of_accept(&scene, 2));
	scene.answers = false;
	reply = client_call(&scene, 15);
	expect_recorded(&scene, 15, &reply);
	scene_end(&scene);
}

Test(wire_handshake, initiate_errors_013, .timeout = 300)
{
	initiate_errors(NULL);
}

Test(wire_handshake, initiate_errors_013_newer, .timeout = 300)
{
	initiate_errors("backspace-8e13aaa");
}

/* A signed empty relay from the peer. */
static int relay_with(struct scene *scene, const char *secret)
{
	struct arena *arena = scene->replay.arena;
	const char *body = arena_printf(arena,
	    "{\"version\":1,\"sourceInstance\":\"%s\",\"events\":[]}",
	    test_peer_origin(scene->peer));
	const char *timestamp =
	    arena_printf(arena, "%lld", (long long)clock_wall_ms());
	const char *nonce = nonce_fresh(arena);
	char signature[SIGN_TEXT_MAX];
	struct test_request request = {
		.method = "POST",
		.path = "/api/federation/relay",
		.body = body,
	};

	sign_make(secret, timestamp, nonce,
	    (struct bytes){ body, strlen(body) }, signature);
	request.headers = arena_printf(arena,
	    "X-Federation-Origin: %s\r\nX-Federation-Timestamp: %s\r\n"
	    "X-Federation-Nonce: %s\r\nX-Federation-Signature: %s\r\n",
	    test_peer_origin(scene->peer), timestamp, nonce, signature);
	return test_http(arena, scene->replay.port, &request).status;
}

static void both_initiate(const char *version)
{
	static const char theirs[] =
	    "45e00c8fba572910d5030784ac020f2e897adab9bcf6f3a9b476286af388c8b6";
	struct scene scene;
	struct test_reply reply;
	const char *body;
	int slow;

	scene_begin(
	    &scene, version, "015-peer-both-initiate", "https://luna.test");
	scene.answers = true;
	scene.answer = (struct test_peer_answer){
		.status = 200,
		.body = "{\"accepted\":true}",
		.hold_ms = 400,
	};
	body = arena_printf(scene.replay.arena, "{\"remoteOrigin\":\"%s\"}",
	    test_peer_origin(scene.peer));
	body = arena_printf(scene.replay.arena,
	    "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n"
	    "Content-Type: application/json\r\nContent-Length: %zu\r\n"
	    "\r\n%s",
	    initiate_path, scene.replay.admin.token, strlen(body), body);
	slow = test_http_connect(scene.replay.port);
	cr_assert(test_http_write(slow, body, strlen(body)));
	cr_assert(test_peer_got(scene.peer, accept_path, 1, WAIT_MS));
	reply =
	    test_post(scene.replay.arena, scene.replay.port, accept_path, NULL,
		arena_printf(scene.replay.arena,
		    "{\"sourceOrigin\":\"%s\",\"hmacSecret\":\"%s\"}",
		    test_peer_origin(scene.peer), theirs));
	/* The newer one also tells its name. */
	cr_expect_eq(reply.status, scene.recording.exchanges[2].status);
	cr_expect_str_eq(reply.body, "{\"accepted\":true}");
	reply = test_http_read(scene.replay.arena, slow);
	close(slow);
	expect_recorded(&scene, 0, &reply);
	cr_expect_eq(relay_with(&scene, theirs), 200);
	cr_expect_eq(relay_with(&scene, secret_of_accept(&scene, 0)), 401);
	scene_end(&scene);
}

Test(wire_handshake, both_initiate_015, .timeout = 300)
{
	both_initiate(NULL);
}

Test(wire_handshake, both_initiate_015_newer, .timeout = 300)
{
	both_initiate("backspace-8e13aaa");
}
