/*
 * Recorded friends, profiles and ends of identities: as sent to our node, and
 * what our node sends for the same actions.
 */
#include <criterion/criterion.h>

#include "common/crypto/sign.h"
#include "tests/lib/test_db.h"
#include "tests/lib/test_http.h"
#include "tests/wire/replay.h"
#include "tests/wire/talk.h"

enum { WAIT_MS = 15000 };

static const char relay[] = TALK_RELAY;
static const char newer[] = "backspace-8e13aaa";

/* Ids of alice and bob in each version. */
#define ALICE "385898133746929664"
#define ALICE_NEWER "385902953156198400"
#define BOB_NEWER "385902957727604736"

/* ---- sent to us ---- */

static void peer_of(struct replay *replay, const char *version,
    const char *name, const char *host)
{
	struct recording recording =
	    recording_load_of(replay->arena, version, name);
	size_t first = 0;

	while (!recording.exchanges[first].secret)
		first++;
	replay_peer(replay, host, recording.exchanges[first].secret);
}

/* What the other node sent, but for what it sends on the side. */
static void replay_relays(struct replay *replay, const char *version,
    const char *name, const char *types)
{
	struct recording recording =
	    recording_load_of(replay->arena, version, name);
	size_t sent = 0;

	for (size_t i = 0; i < recording.count; i++) {
		const struct exchange *e = &recording.exchanges[i];

		if (strcmp(e->to, replay->node->host) ||
		    strcmp(e->path, relay) ||
		    !exchange_has_only(replay->arena, e, types))
			continue;
		replay_exchange(replay, &recording, i);
		sent++;
	}
	cr_expect_gt(sent, 0, "%s sent nothing", name);
}

static const char friend_types[] =
    "friend_request_create friend_request_update friend_request_cancel "
    "friend_add friend_remove";

/* Requests and friendships by account names. */
static const char ties_sql[] =
    "SELECT coalesce(string_agg(t, ',' ORDER BY t), '') AS t FROM ("
    "SELECT a.username || ' ' || r.status || ' ' || b.username AS t"
    " FROM friend_requests r JOIN users a ON a.id = r.from_id"
    " JOIN users b ON b.id = r.to_id"
    " UNION ALL SELECT a.username || ' friends ' || b.username"
    " FROM friends f JOIN users a ON a.id = f.user_id"
    " JOIN users b ON b.id = f.friend_id) k";

static void expect_ties(struct replay *replay, const char *ties)
{
	cr_expect_str_eq(
	    test_db_text(replay->arena, replay->node->database, ties_sql),
	    ties);
}

static void as_orbit(const char *version, const char *alice)
{
	struct replay replay;

	recording_check();
	replay_begin(&replay, "orbit.test", "open");
	if (version)
		replay_sql(&replay,
		    "INSERT INTO users (id, username, password_hash)"
		    " VALUES (" BOB_NEWER ", 'bob8', '!');"
		    "DELETE FROM users WHERE username = 'bob';"
		    "UPDATE users SET username = 'bob'"
		    " WHERE username = 'bob8'");
	peer_of(&replay, version, "030-friend-request-accept", "nova.test");
	replay_relays(
	    &replay, version, "030-friend-request-accept", friend_types);
	expect_ties(&replay,
	    arena_printf(replay.arena, "%s@nova.test pending bob", alice));
	/* bob had accepted. */
	replay_sql(&replay,
	    "INSERT INTO friends (user_id, friend_id, created_at)"
	    " SELECT from_id, to_id, created_at FROM friend_requests;"
	    "UPDATE friend_requests SET status = 'accepted'");
	replay_relays(&replay, version, "031-friend-remove", friend_types);
	expect_ties(&replay,
	    arena_printf(replay.arena, "%s@nova.test accepted bob", alice));
	replay_relays(
	    &replay, version, "032-friend-request-decline", friend_types);
	expect_ties(&replay,
	    arena_printf(replay.arena,
		"%s@nova.test accepted bob,%s@nova.test pending bob", alice,
		alice));
	/* bob had declined. */
	replay_sql(&replay,
	    "UPDATE friend_requests SET status = 'declined'"
	    " WHERE status = 'pending'");
	replay_relays(
	    &replay, version, "033-friend-request-cancel", friend_types);
	expect_ties(&replay,
	    arena_printf(replay.arena,
		"%s@nova.test accepted bob,%s@nova.test declined bob", alice,
		alice));
	replay_end(&replay);
}

Test(wire_people, friends_as_orbit_030_to_033, .timeout = 300)
{
	as_orbit(NULL, ALICE);
}

Test(wire_people, friends_as_orbit_of_the_newer_version, .timeout = 300)
{
	as_orbit(newer, ALICE_NEWER);
}

/* alice had asked at this time. */
static void alice_asked(struct replay *replay, const char *bob, int64_t at)
{
	replay_sql(replay,
	    arena_printf(replay->arena,
		"INSERT INTO users (username, password_hash, home_instance,"
		" home_user_id) VALUES ('%s@orbit.test',"
		" '!federation-replicated', 'orbit.test', '%s')"
		" ON CONFLICT DO NOTHING;"
		"INSERT INTO friend_requests (from_id, to_id, created_at)"
		" SELECT a.id, b.id, to_timestamp(%" PRId64 " / 1000.0)"
		" FROM users a, users b WHERE a.username = 'alice'"
		" AND b.home_user_id = '%s'",
		bob, bob, at, bob));
}

static void as_nova(
    const char *version, const char *bob, int64_t accepted, int64_t declined)
{
	struct replay replay;

	recording_check();
	replay_begin(&replay, "nova.test", "open");
	if (version)
		replay_sql(&replay,
		    "INSERT INTO users (id, username, password_hash)"
		    " VALUES (" ALICE_NEWER ", 'alice8', '!');"
		    "DELETE FROM users WHERE username = 'alice';"
		    "UPDATE users SET username = 'alice'"
		    " WHERE username = 'alice8'");
	peer_of(&replay, version, "030-friend-request-accept", "orbit.test");
	alice_asked(&replay, bob, accepted);
	replay_relays(
	    &replay, version, "030-friend-request-accept", friend_types);
	expect_ties(&replay,
	    arena_printf(replay.arena,
		"alice accepted %s@orbit.test,alice friends %s@orbit.test", bob,
		bob));
	cr_expect_str_eq(test_db_text(replay.arena, replay.node->database,
			     "SELECT display_name AS t FROM users"
			     " WHERE home_instance = 'orbit.test'"),
	    "Bob");
	replay_sql(&replay, "DELETE FROM friends");
	alice_asked(&replay, bob, declined);
	replay_relays(
	    &replay, version, "032-friend-request-decline", friend_types);
	expect_ties(&replay,
	    arena_printf(replay.arena,
		"alice accepted %s@orbit.test,alice declined %s@orbit.test",
		bob, bob));
	if (!version) {
		replay_sql(&replay,
		    "DELETE FROM friend_requests;"
		    "UPDATE users SET replicated_instances ="
		    " '[{\"origin\":\"https://orbit.test\","
		    "\"username\":\"alice@nova.test\"}]'"
		    " WHERE username = 'alice'");
		replay_relays(
		    &replay, NULL, "034-friend-homeward", friend_types);
		expect_ties(&replay,
		    arena_printf(replay.arena,
			"alice accepted %s@orbit.test,"
			"alice friends %s@orbit.test",
			bob, bob));
	}
	replay_end(&replay);
}

Test(wire_people, friends_as_nova_030_032_034, .timeout = 300)
{
	as_nova(NULL, TALK_BOB, 1796072621184, 1796072628864);
}

Test(wire_people, friends_as_nova_of_the_newer_version, .timeout = 300)
{
	as_nova(newer, BOB_NEWER, 1796074821311, 1796074828926);
}

/* alice and dave are known; the last profile of each stands. */
static void profiles(const char *version, const char *alice, const char *want)
{
	struct replay replay;

	recording_check();
	replay_begin(&replay, "orbit.test", "open");
	peer_of(&replay, version, "080-profile-update", "nova.test");
	replay_sql(&replay,
	    arena_printf(replay.arena,
		"INSERT INTO users (username, password_hash, home_instance,"
		" home_user_id) VALUES ('a', '!federation-replicated',"
		" 'nova.test', '%s')",
		alice));
	replay_relays(&replay, version, "080-profile-update", "profile_update");
	cr_expect_str_eq(
	    test_db_text(replay.arena, replay.node->database,
		"SELECT concat_ws('|', display_name, avatar,"
		" coalesce(banner, '-'), accent_color, avatar_color,"
		" coalesce(bio, '-'), round(extract(epoch FROM"
		" profile_updated_at) * 1000)) AS t"
		" FROM users WHERE username = 'a'"),
	    want);
	replay_end(&replay);
}

Test(wire_people, profiles_080, .timeout = 300)
{
	profiles(NULL, ALICE,
	    "Alice 12757|https://nova.test/api/uploads/385900358024089600.png|"
	    "-|#12AbCd|amber|-|1796073019209");
}

Test(wire_people, profiles_of_the_newer_version, .timeout = 300)
{
	profiles(newer, ALICE_NEWER,
	    "Alice 56437|https://nova.test/api/uploads/385903475200245760.png|"
	    "-|#12AbCd|teal|-|1796073762440");
}

/* Place of the first exchange like this. */
static size_t place_of(const struct recording *recording, const char *from,
    const char *path, int status)
{
	size_t i = 0;

	while (i < recording->count &&
	    (strcmp(recording->exchanges[i].from, from) ||
		strcmp(recording->exchanges[i].path, path) ||
		recording->exchanges[i].status != status))
		i++;
	cr_assert_lt(i, recording->count);
	return i;
}

static const char identity[] = "/api/federation/identity";
static const char accept_path[] = "/api/federation/peer/accept";

static void identities(const char *version, const char *alice)
{
	struct deviation deviations[] = {
		/* There are none that anybody could own. */
		{ 0, "spaces", 200, "{\"success\":true}" },
		/* The newer answer says more than ours. */
		{ 0, "accept", 200, "\"accepted\":true" },
		{ 0 },
	};
	struct replay replay;
	struct recording recording;

	recording_check();
	replay_begin(&replay, "orbit.test", "open");
	recording =
	    recording_load_of(replay.arena, version, "110-identity-delete");
	deviations[0].place = place_of(&recording, "nova.test", identity, 409);
	deviations[1].place =
	    place_of(&recording, "luna.test", accept_path, 200);
	peer_of(&replay, version, "110-identity-delete", "nova.test");
	replay.deviations = deviations;
	/* alice of nova was known there. */
	replay_sql(&replay,
	    arena_printf(replay.arena,
		"INSERT INTO users (username, password_hash, home_instance,"
		" home_user_id) VALUES ('a', '!federation-replicated',"
		" 'nova.test', '%s')",
		alice));
	for (size_t i = 0; i < recording.count; i++)
		if (!strcmp(recording.exchanges[i].to, "orbit.test"))
			replay_exchange(&replay, &recording, i);
	/* Nobody of another home was touched. */
	cr_expect_eq(test_db_number(replay.node->database,
			 "SELECT count(*) AS n FROM users WHERE is_deleted"),
	    0);
	replay_end(&replay);
}

Test(wire_people, identities_110, .timeout = 300)
{
	identities(NULL, ALICE);
}

Test(wire_people, identities_of_the_newer_version, .timeout = 300)
{
	identities(newer, ALICE_NEWER);
}

/* ---- sent by us ---- */

/* As bob, with an id greater than any of ours. */
#define ZED "999999999999999999"

static void bob_begin(struct talk *talk)
{
	talk_begin(talk);
	talk_sql(talk,
	    "UPDATE users SET home_user_id = '" ZED "', username = '" ZED
	    "@orbit.localhost', display_name = 'Bob',"
	    " avatar_color = 'coral' WHERE home_instance IS NOT NULL");
}

static const char *ask(struct talk *talk)
{
	struct test_reply reply =
	    talk_call(talk, "POST", "/api/social/requests",
		"{\"username\":\"" ZED "@orbit.localhost\"}");

	cr_assert_eq(reply.status, 201, "%s", reply.body);
	return test_text(talk->arena, &reply, "requestId");
}

static void must(
    struct talk *talk, const char *method, const char *path, const char *body)
{
	struct test_reply reply = talk_call(talk, method, path, body);

	cr_assert_eq(reply.status, 200, "%s %s: %s", method, path, reply.body);
}

static const char *request_path(struct talk *talk, const char *id)
{
	return arena_printf(talk->arena, "/api/social/requests/%s", id);
}

Test(wire_people, requests_and_withdrawals_as_sent_030_033, .timeout = 300)
{
	static const char name[] = "033-friend-request-cancel";
	struct talk talk;
	struct test_peer_request sent;
	const char *request;

	bob_begin(&talk);
	request = ask(&talk);
	sent = talk_batch(&talk, 0);
	talk_expect(
	    &talk, talk_recorded(&talk, "030-friend-request-accept", 0), &sent);
	must(&talk, "DELETE", request_path(&talk, request), NULL);
	sent = talk_batch(&talk, 1);
	talk_expect(&talk, talk_recorded(&talk, name, 1), &sent);
	/* Both are sent, whatever came of it meanwhile. */
	talk_sql(&talk,
	    "UPDATE federation_peers SET paused_until = now() +"
	    " interval '1 hour'");
	must(&talk, "DELETE", request_path(&talk, ask(&talk)), NULL);
	talk_sql(&talk, "UPDATE federation_peers SET paused_until = NULL");
	sent = talk_batch(&talk, 2);
	talk_expect(&talk, talk_recorded(&talk, name, 2), &sent);
	talk_end(&talk);
}

/* What orbit sent, told by nova: hosts and names change places. */
static const char *swapped(
    struct talk *talk, const char *name, const char *types)
{
	static const char *const words[][2] = { { "nova.test", "orbit.test" },
		{ "\"Alice\"", "\"Bob\"" }, { "amber", "coral" } };
	struct arena *arena = talk->arena;
	struct recording recording = recording_load(arena, name);
	const char *body = NULL;

	for (size_t i = 0; i < recording.count; i++)
		if (!strcmp(recording.exchanges[i].from, "orbit.test") &&
		    exchange_has_only(arena, &recording.exchanges[i], types))
			body = recording.exchanges[i].body.data;
	cr_assert(body);
	for (size_t i = 0; i < COUNT(words); i++) {
		body = text_replaced(arena, body, words[i][0], "\x01");
		body = text_replaced(arena, body, words[i][1], words[i][0]);
		body = text_replaced(arena, body, "\x01", words[i][1]);
	}
	body = text_replaced(arena, body, "\"bob\"", "\"alice\"");
	return text_replaced(
	    arena, body, "alice@orbit.test", "bob@orbit.localhost");
}

/* bob, with an id smaller than any of ours, asks. */
static const char *bob_asks(struct talk *talk)
{
	talk_sql(talk,
	    "UPDATE users SET display_name = 'Bob', avatar_color = 'coral',"
	    " username = 'bob@orbit.localhost'"
	    " WHERE home_instance IS NOT NULL;"
	    "INSERT INTO friend_requests (from_id, to_id, created_at)"
	    " SELECT b.id, a.id, now() FROM users a, users b"
	    " WHERE a.username = 'alice' AND b.home_instance IS NOT NULL");
	return test_db_text(talk->arena, talk->node->database,
	    "SELECT max(id)::text AS t FROM friend_requests");
}

Test(wire_people, answers_as_sent_030_032, .timeout = 300)
{
	struct talk talk;
	struct test_peer_request sent;
	const char *request;

	talk_begin(&talk);
	request = bob_asks(&talk);
	must(&talk, "PATCH", request_path(&talk, request),
	    "{\"status\":\"declined\"}");
	sent = talk_batch(&talk, 0);
	talk_expect(&talk,
	    swapped(
		&talk, "032-friend-request-decline", "friend_request_update"),
	    &sent);
	talk_sql(&talk,
	    "UPDATE federation_peers SET paused_until = now() +"
	    " interval '1 hour'");
	request = bob_asks(&talk);
	must(&talk, "PATCH", request_path(&talk, request),
	    "{\"status\":\"accepted\"}");
	talk_sql(&talk, "UPDATE federation_peers SET paused_until = NULL");
	sent = talk_batch(&talk, 1);
	talk_expect(&talk,
	    swapped(&talk, "030-friend-request-accept",
		"friend_request_update friend_add"),
	    &sent);
	talk_end(&talk);
}

Test(wire_people, removals_as_sent_031, .timeout = 300)
{
	struct talk talk;
	struct test_peer_request sent;

	bob_begin(&talk);
	talk_sql(&talk,
	    "INSERT INTO friends (user_id, friend_id) SELECT a.id, b.id"
	    " FROM users a, users b WHERE a.username = 'alice'"
	    " AND b.home_instance IS NOT NULL");
	must(&talk, "DELETE",
	    arena_printf(talk.arena, "/api/social/friends/%s",
		test_db_text(talk.arena, talk.node->database,
		    "SELECT id::text AS t FROM users"
		    " WHERE home_instance IS NOT NULL")),
	    NULL);
	sent = talk_batch(&talk, 0);
	talk_expect(&talk, talk_recorded(&talk, "031-friend-remove", 0), &sent);
	talk_end(&talk);
}

static const char me[] = "/api/users/@me";

Test(wire_people, profiles_as_sent_080, .timeout = 300)
{
	static const char name[] = "080-profile-update";
	struct talk talk;
	struct test_peer_request sent;

	talk_begin(&talk);
	must(&talk, "PATCH", me,
	    "{\"displayName\":\"Alice 12757\",\"accentColor\":\"#12AbCd\","
	    "\"avatar\":\"/api/uploads/385899497067696128.png\"}");
	sent = talk_batch(&talk, 0);
	talk_expect(&talk, talk_recorded(&talk, name, 0), &sent);
	/* What follows quickly is one event. */
	talk_sql(&talk,
	    "UPDATE federation_peers SET paused_until = now() +"
	    " interval '1 hour'");
	must(&talk, "PATCH", me, "{\"bio\":\"first\"}");
	must(&talk, "PATCH", me,
	    "{\"avatar\":\"385900358024089600.png\","
	    "\"banner\":\"385900358133141504.png\"}");
	must(&talk, "PATCH", me, "{\"bio\":\"bio of alice, second edit\"}");
	talk_sql(&talk, "UPDATE federation_peers SET paused_until = NULL");
	sent = talk_batch(&talk, 1);
	talk_expect(&talk, talk_recorded(&talk, name, 1), &sent);
	must(&talk, "PATCH", me, "{\"banner\":\"\",\"bio\":\"\"}");
	sent = talk_batch(&talk, 2);
	talk_expect(&talk, talk_recorded(&talk, name, 2), &sent);
	/* A new place gets it as it is, whatever else is said. */
	must(&talk, "PATCH", me,
	    "{\"status\":\"dnd\",\"customStatus\":\"x\","
	    "\"displayName\":\"Alice 12757\"}");
	talk_sql(&talk,
	    "UPDATE users SET display_name = 'Dave', avatar = NULL,"
	    " accent_color = NULL, avatar_color = 'sky'"
	    " WHERE username = 'alice'");
	must(&talk, "PATCH", me,
	    arena_printf(talk.arena,
		"{\"replicatedInstances\":[{\"origin\":\"%s\","
		"\"username\":\"dave@nova\"}]}",
		test_peer_origin(talk.peer)));
	sent = talk_batch(&talk, 3);
	talk_expect(&talk, talk_recorded(&talk, name, 3), &sent);
	talk_end(&talk);
}

Test(wire_people, identities_as_sent_110, .timeout = 300)
{
	struct talk talk;
	struct recording recording;
	struct test_peer_request sent;
	struct test_reply reply;
	const char *secret, *want;

	talk_begin(&talk);
	secret = talk.secret;
	recording = recording_load(talk.arena, "110-identity-delete");
	want = recording
		   .exchanges[place_of(&recording, "nova.test", identity, 200)]
		   .body.data;
	reply = talk_call(&talk, "POST",
	    "/api/users/@me/federation-identity/delete",
	    arena_printf(talk.arena, "{\"origins\":[\"%s\"],\"mode\":\"soft\"}",
		test_peer_origin(talk.peer)));
	cr_expect_eq(reply.status, 200, "%s", reply.body);
	cr_assert(test_peer_got(talk.peer, identity, 1, WAIT_MS));
	sent = test_peer_nth(talk.peer, identity, 0);
	cr_expect_str_eq(sent.method, "DELETE");
	talk_expect(&talk,
	    text_replaced(talk.arena, want, "nova.test", "nova.localhost"),
	    &sent);
	cr_expect(sign_verify(secret,
	    test_peer_header(talk.arena, &sent, "x-federation-timestamp"),
	    test_peer_header(talk.arena, &sent, "x-federation-nonce"),
	    sent.body,
	    test_peer_header(talk.arena, &sent, "x-federation-signature")));
	talk_end(&talk);
}
