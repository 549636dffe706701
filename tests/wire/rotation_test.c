/*
 * The recorded rotations of a secret: as the one that is told, and as the one
 * that begins, with a scripted peer in the other server's place.
 */
#include <criterion/criterion.h>

#include "common/crypto/sign.h"
#include "tests/lib/test_http.h"
#include "tests/lib/test_peer.h"
#include "tests/wire/replay.h"

enum { WAIT_MS = 15000 };
static const char rotate_path[] = "/api/federation/peer/rotate";
static const char relay_path[] = "/api/federation/relay";

/* ---- as the one that is told ---- */

static const char *first_secret(const struct recording *recording)
{
	size_t place = 0;

	while (!recording->exchanges[place].secret)
		place++;
	return recording->exchanges[place].secret;
}

/* version NULL: the older one. */
static void told_begin(struct replay *replay, struct recording *recording,
    const char *version, const char *name)
{
	recording_check();
	replay_begin(replay, "orbit.test", "open");
	*recording = recording_load_of(replay->arena, version, name);
	replay_peer(replay, "nova.test", first_secret(recording));
}

Test(wire_rotation, told_of_a_rotation_100, .timeout = 300)
{
	struct replay replay;
	struct recording recording;

	told_begin(&replay, &recording, NULL, "100-secret-rotation");
	for (size_t i = 0; i < recording.count; i++)
		if (!strcmp(recording.exchanges[i].to, "orbit.test"))
			replay_exchange(&replay, &recording, i);
	replay_end(&replay);
}

Test(wire_rotation, told_by_a_newer_server_100, .timeout = 300)
{
	struct replay replay;
	struct recording recording;

	told_begin(
	    &replay, &recording, "backspace-8e13aaa", "100-secret-rotation");
	replay_sql(&replay,
	    "UPDATE users SET id = 385902957727604736"
	    " WHERE username = 'bob';"
	    "UPDATE federation_peers SET instance_name = 'Backspace'");
	for (size_t i = 0; i < recording.count; i++)
		if (!strcmp(recording.exchanges[i].to, "orbit.test"))
			replay_exchange(&replay, &recording, i);
	replay_end(&replay);
}

/* The record's timers were shortened: here the clock is moved. */
Test(wire_rotation, told_and_over_152, .timeout = 300)
{
	struct replay replay;
	struct recording recording;

	told_begin(&replay, &recording, NULL, "152-rotation-finalised");
	replay_exchange(&replay, &recording, 1);
	replay_sql(&replay,
	    "UPDATE federation_peers SET"
	    " secret_rotation_at = now() - interval '15 minutes'");
	for (size_t i = 3; i < recording.count; i++)
		replay_exchange(&replay, &recording, i);
	replay_end(&replay);
}

/* ---- as the one that begins ---- */

struct scene {
	struct replay replay;
	struct recording recording;
	struct test_peer *peer;
	const char *secret;
	const struct exchange *answer; /* to the next rotate */
};

static void script(void *arg, struct arena *arena UNUSED,
    const struct test_peer_request *request, struct test_peer_answer *answer)
{
	const struct scene *scene = arg;

	if (strcmp(request->path, rotate_path) != 0)
		return;
	answer->status = scene->answer->status;
	answer->body = scene->answer->answer;
}

static void scene_begin(
    struct scene *scene, const char *version, const char *name)
{
	recording_check();
	*scene = (struct scene){ 0 };
	replay_begin(&scene->replay, "nova.test", "open");
	test_outboxd(scene->replay.node,
	    (const char *const[]){ "origin=https://nova.test", NULL });
	scene->recording =
	    recording_load_of(scene->replay.arena, version, name);
	scene->secret = first_secret(&scene->recording);
	scene->peer = test_peer_new("luna.localhost", script, scene);
	cr_assert_eq(test_post(scene->replay.arena, scene->replay.port,
			 "/api/federation/peer/accept", NULL,
			 arena_printf(scene->replay.arena,
			     "{\"sourceOrigin\":\"%s\",\"hmacSecret\":\"%s\"}",
			     test_peer_origin(scene->peer), scene->secret))
			 .status,
	    200);
}

static void scene_end(struct scene *scene)
{
	replay_end(&scene->replay);
	test_peer_free(&scene->peer);
}

/* The client call at place; what it makes us send is recorded at sent. */
static void begin_rotation(struct scene *scene, size_t place, size_t sent)
{
	struct replay *replay = &scene->replay;
	const struct exchange *call = &scene->recording.exchanges[place];
	struct test_reply reply = test_get(replay->arena, replay->port,
	    "/api/federation/peers", replay->admin.token);

	scene->answer = &scene->recording.exchanges[sent];
	reply = test_post(replay->arena, replay->port,
	    arena_printf(replay->arena, "/api/federation/peers/%s/rotate",
		test_text(replay->arena, &reply, "peers.0.id")),
	    replay->admin.token, NULL);
	cr_expect_eq(reply.status, call->status, "exchange %zu: %d %s", place,
	    reply.status, reply.body);
	cr_expect_str_eq(reply.body, call->answer, "exchange %zu", place);
}

static bool is_signed_with(struct scene *scene,
    const struct test_peer_request *sent, const char *secret)
{
	struct arena *arena = scene->replay.arena;

	cr_expect_str_eq(test_peer_header(arena, sent, "x-federation-origin"),
	    "https://nova.test");
	return sign_verify(secret,
	    test_peer_header(arena, sent, "x-federation-timestamp"),
	    test_peer_header(arena, sent, "x-federation-nonce"), sent->body,
	    test_peer_header(arena, sent, "x-federation-signature"));
}

/* The recorded bytes but for the new secret, which it gives. */
static const char *expect_sent(
    struct scene *scene, size_t place, const struct exchange *recorded)
{
	struct arena *arena = scene->replay.arena;
	struct test_peer_request sent;
	const struct json *body = NULL;
	const struct json *want = NULL;
	struct err err = { 0 };
	const char *fresh;

	cr_assert(test_peer_got(scene->peer, rotate_path, place + 1, WAIT_MS));
	sent = test_peer_nth(scene->peer, rotate_path, place);
	cr_expect(is_signed_with(scene, &sent, scene->secret));
	cr_expect_str_eq(
	    test_peer_header(arena, &sent, "content-type"), "application/json");
	cr_assert(json_parse(arena, sent.body, &body, &err));
	cr_assert(json_parse(arena, recorded->body, &want, &err));
	fresh = json_string(json_member(body, "newSecret"));
	cr_assert_not_null(fresh);
	cr_expect_eq(strspn(fresh, "0123456789abcdef"), 64);
	cr_expect_str_eq(arena_textn(arena, sent.body.data, sent.body.len),
	    text_replaced(arena,
		arena_textn(arena, recorded->body.data, recorded->body.len),
		json_string(json_member(want, "newSecret")), fresh));
	return fresh;
}

Test(wire_rotation, begun_by_us_100, .timeout = 300)
{
	struct scene scene;
	struct test_peer_request sent;
	const char *fresh;
	struct test_reply reply;

	scene_begin(&scene, NULL, "100-secret-rotation");
	begin_rotation(&scene, 0, 1);
	fresh = expect_sent(&scene, 0, &scene.recording.exchanges[1]);
	reply = test_get(scene.replay.arena, scene.replay.port,
	    "/api/federation/peers", scene.replay.admin.token);
	cr_expect_not_null(strstr(reply.body, "\"rotationInProgress\":true"));
	cr_expect_not_null(strstr(reply.body, "\"secretRotatedAt\":null"));
	begin_rotation(&scene, 10, 1);
	cr_expect_eq(test_peer_count(scene.peer, rotate_path), 1);
	replay_sql(&scene.replay,
	    "INSERT INTO federation_outbox (peer_id, context_type, context_id,"
	    " event_type, entity_id, payload, expires_at)"
	    " SELECT id, 'dm', '1', 'delete', '1', '', now() + '1 day'"
	    " FROM federation_peers");
	cr_assert(test_peer_got(scene.peer, relay_path, 1, WAIT_MS));
	sent = test_peer_nth(scene.peer, relay_path, 0);
	cr_expect(is_signed_with(&scene, &sent, fresh));
	scene_end(&scene);
}

/* The record's server makes another secret after a lost answer; we send the
 * same one, for the peer may have taken it (unknown outcomes). */
static void refused_and_lost(
    const char *version, const size_t calls[3], const size_t sent[3])
{
	struct scene scene;
	const char *fresh[3];

	scene_begin(&scene, version, "101-secret-rotation-remote-refuses");
	for (size_t i = 0; i < 3; i++)
		begin_rotation(&scene, calls[i], sent[i]);
	for (size_t i = 0; i < 3; i++)
		fresh[i] =
		    expect_sent(&scene, i, &scene.recording.exchanges[sent[i]]);
	cr_expect_str_neq(fresh[0], fresh[1]);
	cr_expect_str_eq(fresh[1], fresh[2]);
	scene_end(&scene);
}

Test(wire_rotation, refused_and_lost_101, .timeout = 300)
{
	static const size_t calls[] = { 1, 3, 5 };
	static const size_t sent[] = { 2, 4, 6 };

	refused_and_lost(NULL, calls, sent);
}

Test(wire_rotation, refused_and_lost_101_newer, .timeout = 300)
{
	static const size_t calls[] = { 2, 5, 8 };
	static const size_t sent[] = { 3, 7, 9 };

	refused_and_lost("backspace-8e13aaa", calls, sent);
}
