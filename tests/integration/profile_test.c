/* Profiles: changed through the API, told to others, taken from their homes. */
#include <criterion/criterion.h>

#include "common/base/clock.h"
#include "tests/integration/relay_site.h"
#include "tests/lib/test_db.h"
#include "tests/lib/test_http.h"
#include "tests/lib/test_node.h"

static struct test_node *node;
static struct arena *arena;
static struct test_person alice;
static struct test_person bob;
static struct test_person carol;

static void begin(void)
{
	test_db_needed();
	arena = arena_new();
	node = test_node_new("nova.localhost");
	test_frontd(node, NULL);
	alice = test_person(node, node->port, "alice");
	bob = test_person(node, node->port, "bob");
	carol = test_person(node, node->port, "carol");
}

static void end(void)
{
	test_node_free(&node);
	if (arena)
		arena_free(&arena);
}

TestSuite(profile, .init = begin, .fini = end, .timeout = 300);

static void sql(const char *text)
{
	test_db_script(node->database, text);
}

static const char *text(const char *query)
{
	return test_db_text(arena, node->database, query);
}

static struct test_reply patch(const char *json)
{
	return test_patch(
	    arena, node->port, "/api/users/@me", alice.token, json);
}

static void expect_patch(const char *json, int status)
{
	struct test_reply reply = patch(json);

	cr_expect_eq(
	    reply.status, status, "%s: %d %s", json, reply.status, reply.body);
}

static struct test_reply get(const char *path)
{
	return test_get(arena, node->port, path, alice.token);
}

Test(profile, every_field_changes_and_clears)
{
	struct test_reply reply = patch(
	    "{\"displayName\":\" Alice A. \",\"avatar\":\"/api/uploads/a.png\","
	    "\"banner\":\"https://pics.example/b.png\","
	    "\"accentColor\":\"#12AbCd\",\"avatarColor\":\"teal\","
	    "\"bio\":\"hello\",\"customStatus\":\"busy\",\"status\":\"dnd\","
	    "\"discoverable\":false,\"showActivity\":false}");
	int64_t version;

	cr_assert_eq(reply.status, 200, "%s", reply.body);
	cr_expect_str_eq(test_text(arena, &reply, "displayName"), "Alice A.");
	cr_expect_str_eq(test_text(arena, &reply, "avatar"), "a.png");
	cr_expect_str_eq(
	    test_text(arena, &reply, "banner"), "https://pics.example/b.png");
	cr_expect_str_eq(test_text(arena, &reply, "accentColor"), "#12AbCd");
	cr_expect_str_eq(test_text(arena, &reply, "avatarColor"), "teal");
	cr_expect_str_eq(test_text(arena, &reply, "bio"), "hello");
	cr_expect_str_eq(test_text(arena, &reply, "customStatus"), "busy");
	cr_expect_str_eq(test_text(arena, &reply, "status"), "dnd");
	cr_expect(!json_truth(test_json(arena, &reply, "discoverable")));
	cr_expect(!json_truth(test_json(arena, &reply, "showActivity")));
	version = test_number(arena, &reply, "profileUpdatedAt");
	cr_expect_gt(version, 1700000000000);
	reply = patch("{\"displayName\":\"\",\"avatar\":\"\",\"banner\":null,"
		      "\"accentColor\":\"\",\"avatarColor\":null,\"bio\":\"\","
		      "\"customStatus\":null}");
	cr_assert_eq(reply.status, 200, "%s", reply.body);
	cr_expect_eq(
	    json_type(test_json(arena, &reply, "displayName")), JSON_NULL);
	cr_expect_eq(json_type(test_json(arena, &reply, "bio")), JSON_NULL);
	cr_expect_eq(
	    json_type(test_json(arena, &reply, "avatarColor")), JSON_NULL);
	cr_expect_gt(test_number(arena, &reply, "profileUpdatedAt"), version);
}

static const char *const bad_edits[] = {
	"{}",
	"{\"profileUpdatedAt\":5}",
	"{\"unknown\":1}",
	"{\"displayName\":7}",
	"{\"displayName\":\"123456789012345678901234567890123\"}",
	"{\"displayName\":\"a\\u0000b\"}",
	"{\"bio\":\"\\ud800\"}",
	"{\"accentColor\":\"red\"}",
	"{\"accentColor\":\"#12345\"}",
	"{\"accentColor\":\"#1234567\"}",
	"{\"avatarColor\":\"crimson\"}",
	"{\"avatar\":\"../etc/passwd\"}",
	"{\"avatar\":\"a/b.png\"}",
	"{\"avatar\":\"a\\\\b.png\"}",
	"{\"avatar\":\"/api/uploads/\"}",
	"{\"avatar\":\"javascript:alert(1)\"}",
	"{\"banner\":true}",
	"{\"status\":\"away\"}",
	"{\"status\":null}",
	"{\"discoverable\":\"yes\"}",
	"{\"replicatedInstances\":{}}",
	"{\"replicatedInstances\":[{}]}",
	"{\"replicatedInstances\":[{\"origin\":\"https://x.example\"}]}",
	"{\"replicatedInstances\":[{\"origin\":\"x.example\","
	"\"username\":\"a\"}]}",
	"{\"replicatedInstances\":[{\"origin\":\"https://x.example\","
	"\"username\":\"\"}]}",
	"[]",
};

Test(profile, bad_edits_are_400_and_change_nothing)
{
	const char *before = text("SELECT users::text AS t FROM users"
				  " WHERE username = 'alice'");
	const char *many = "";

	for (size_t i = 0; i < COUNT(bad_edits); i++)
		expect_patch(bad_edits[i], 400);
	for (int i = 0; i < 21; i++)
		many = arena_printf(arena,
		    "%s%s{\"origin\":\"https://h%d.example\","
		    "\"username\":\"a\"}",
		    many, i ? "," : "", i);
	expect_patch(
	    arena_printf(arena, "{\"replicatedInstances\":[%s]}", many), 400);
	cr_expect_str_eq(text("SELECT users::text AS t FROM users"
			      " WHERE username = 'alice'"),
	    before);
}

static int64_t events(const char *kind, const struct test_person *who)
{
	return test_db_number(node->database,
	    arena_printf(arena,
		"SELECT count(*) AS n FROM user_events WHERE kind = '%s' AND"
		" user_id = %s AND entity_id = '%s'",
		kind, who->id, alice.id));
}

Test(profile, friends_and_co_members_and_oneself_are_told)
{
	sql(arena_printf(arena,
	    "INSERT INTO friends (user_id, friend_id) VALUES (%s, %s)", bob.id,
	    alice.id));
	expect_patch("{\"displayName\":\"A\",\"status\":\"idle\"}", 200);
	cr_expect_eq(events("user_updated", &alice), 1);
	cr_expect_eq(events("user_updated", &bob), 1);
	cr_expect_eq(events("user_updated", &carol), 0);
	cr_expect_eq(events("presence_update", &bob), 1);
	test_post(arena, node->port, "/api/dm", alice.token,
	    arena_printf(arena, "{\"userId\":\"%s\"}", carol.id));
	expect_patch("{\"customStatus\":\"x\",\"status\":\"idle\"}", 200);
	cr_expect_eq(events("user_updated", &carol), 1);
	cr_expect_eq(events("user_updated", &bob), 2);
	cr_expect_eq(events("presence_update", &bob), 1);
	/* What stays as it is tells nobody. */
	expect_patch("{\"displayName\":\"A\",\"discoverable\":true}", 200);
	cr_expect_eq(events("user_updated", &bob), 2);
}

Test(profile, a_replicated_account_changes_at_home)
{
	sql(arena_printf(arena,
	    "UPDATE users SET home_instance = 'orbit.test', is_admin = false"
	    " WHERE id = %s",
	    alice.id));
	expect_patch("{\"bio\":\"x\"}", 403);
	expect_patch("{\"displayName\":null}", 403);
	expect_patch("{\"status\":\"idle\",\"homeUserId\":\"42\"}", 200);
	cr_expect_str_eq(text("SELECT home_user_id AS t FROM users"
			      " WHERE username = 'alice'"),
	    "42");
	/* Never another one, nor somebody else's. */
	expect_patch("{\"homeUserId\":\"43\"}", 400);
	sql(arena_printf(arena,
	    "UPDATE users SET home_instance = 'orbit.test',"
	    " home_user_id = '77' WHERE id = %s;"
	    "UPDATE users SET home_user_id = NULL WHERE id = %s",
	    bob.id, alice.id));
	expect_patch("{\"homeUserId\":\"77\"}", 400);
}

/* ---- to whom it goes ---- */

static void peer(const char *host)
{
	sql(arena_printf(arena,
	    "INSERT INTO federation_peers (origin, host, status, hmac_secret)"
	    " VALUES ('https://%s', '%s', 'active', 'x')",
	    host, host));
}

static void stub(const char *host)
{
	sql(arena_printf(arena,
	    "INSERT INTO users (username, password_hash, home_instance,"
	    " home_user_id) VALUES ('7@%s', '!federation-replicated', '%s',"
	    " '7')",
	    host, host));
}

static const char *told(void)
{
	return text("SELECT coalesce(string_agg(p.host, ',' ORDER BY p.host),"
		    " '') AS t FROM federation_outbox o"
		    " JOIN federation_peers p ON p.id = o.peer_id"
		    " WHERE o.event_type = 'profile_update'");
}

Test(profile, only_nodes_concerned_are_told)
{
	peer("friend.test");
	peer("pair.test");
	peer("declared.test");
	peer("stranger.test");
	stub("friend.test");
	stub("pair.test");
	stub("stranger.test");
	expect_patch("{\"bio\":\"nobody knows\"}", 200);
	cr_expect_str_eq(told(), "");
	sql(arena_printf(arena,
	    "INSERT INTO friends (user_id, friend_id)"
	    " SELECT %s, id FROM users WHERE home_instance = 'friend.test'",
	    alice.id));
	test_post(arena, node->port, "/api/dm", alice.token,
	    "{\"homeUserId\":\"7\",\"homeInstance\":\"pair.test\"}");
	expect_patch("{\"replicatedInstances\":[{\"origin\":"
		     "\"https://declared.test\",\"username\":\"alice\"}]}",
	    200);
	cr_expect_str_eq(told(), "declared.test");
	sql("DELETE FROM federation_outbox");
	expect_patch("{\"bio\":\"some know\"}", 200);
	cr_expect_str_eq(told(), "declared.test,friend.test,pair.test");
	sql("DELETE FROM federation_outbox");
	expect_patch("{\"bio\":\"some know\",\"status\":\"dnd\","
		     "\"customStatus\":\"mine\"}",
	    200);
	cr_expect_str_eq(told(), "");
}

Test(profile, a_new_place_gets_the_profile_as_it_is)
{
	peer("a.test");
	peer("b.test");
	expect_patch("{\"replicatedInstances\":[{\"domain\":\"A.test\","
		     "\"username\":\"alice@nova\"}]}",
	    200);
	cr_expect_str_eq(told(), "a.test");
	expect_patch("{\"replicatedInstances\":["
		     "{\"origin\":\"https://a.test\",\"username\":\"x\"},"
		     "{\"origin\":\"https://a.test/\",\"username\":\"y\"},"
		     "{\"origin\":\"https://b.test\",\"username\":\"z\"}]}",
	    200);
	cr_expect_str_eq(told(), "a.test,b.test");
	cr_expect_str_eq(
	    text("SELECT (replicated_instances -> 1 ->> 'origin') AS t"
		 " FROM users WHERE username = 'alice'"),
	    "https://b.test");
	cr_expect_str_eq(
	    text("SELECT ((('{' || payload || '}')::json -> 'profileUpdate'"
		 " ->> 'profileUpdatedAt')::bigint"
		 " = floor(extract(epoch FROM u.created_at) * 1000))::text"
		 " AS t FROM federation_outbox, users u"
		 " WHERE u.username = 'alice' LIMIT 1"),
	    "true");
}

/* ---- looking at others ---- */

Test(profile, others_are_shown_and_the_deleted_have_no_name)
{
	struct test_reply reply =
	    get(arena_printf(arena, "/api/users/%s", bob.id));

	cr_expect_eq(reply.status, 200);
	cr_expect_str_eq(test_text(arena, &reply, "username"), "bob");
	cr_expect(!strstr(reply.body, "showActivity"));
	cr_expect_eq(get("/api/users/77").status, 404);
	cr_expect_eq(get("/api/users/x").status, 404);
	sql("UPDATE users SET is_deleted = true, bio = 'old'"
	    " WHERE username = 'bob'");
	reply = get(arena_printf(arena, "/api/users/%s", bob.id));
	cr_expect_eq(reply.status, 200);
	cr_expect_str_eq(test_text(arena, &reply, "username"), "Deleted User");
	cr_expect(json_truth(test_json(arena, &reply, "isDeleted")));
	cr_expect(!strstr(reply.body, "old"));
}

Test(profile, mutual_friends_are_those_of_both)
{
	struct test_reply reply;

	sql(arena_printf(arena,
	    "INSERT INTO friends (user_id, friend_id) VALUES (%s, %s),"
	    " (%s, %s)",
	    alice.id, carol.id, carol.id, bob.id));
	reply = get(arena_printf(arena, "/api/users/%s/mutuals", bob.id));
	cr_expect_eq(reply.status, 200, "%s", reply.body);
	cr_expect_str_eq(
	    test_text(arena, &reply, "mutualFriends.0.username"), "carol");
	cr_expect_eq(json_count(test_json(arena, &reply, "mutualSpaces")), 0);
	reply = get("/api/users/77/mutuals");
	cr_expect_str_eq(
	    reply.body, "{\"mutualFriends\":[],\"mutualSpaces\":[]}");
	reply = get(
	    arena_printf(arena, "/api/users/77/mutuals?homeUserId=%s", bob.id));
	cr_expect_eq(json_count(test_json(arena, &reply, "mutualFriends")), 1);
}

/* ---- the registry ---- */

static struct test_reply put_registry(const char *json)
{
	struct test_request request = {
		.method = "PUT",
		.path = "/api/users/@me/federation-registry",
		.token = alice.token,
		.body = json,
	};

	return test_http(arena, node->port, &request);
}

#define ENTRY(origin) \
	"{\"origin\":\"" origin "\",\"status\":\"connected\",\"addedAt\":5}"

Test(profile, the_registry_is_the_clients_and_the_last_writer_wins)
{
	struct test_reply reply = get("/api/users/@me/federation-registry");

	cr_expect_str_eq(reply.body, "{\"registry\":[],\"updatedAt\":0}");
	reply =
	    put_registry("{\"registry\":[{\"origin\":\"https://a\","
			 "\"label\":\"A\",\"username\":\"u\","
			 "\"remoteUserId\":\"9\",\"status\":\"unreachable\","
			 "\"addedAt\":5,\"lastConnectedAt\":6,"
			 "\"disconnectedAt\":null,\"errorMessage\":\"e\"}],"
			 "\"updatedAt\":10}");
	cr_expect_str_eq(reply.body, "{\"ok\":true,\"updatedAt\":10}");
	reply = get("/api/users/@me/federation-registry");
	cr_expect_str_eq(reply.body,
	    "{\"registry\":[{\"origin\":\"https://a\",\"label\":\"A\","
	    "\"username\":\"u\",\"remoteUserId\":\"9\","
	    "\"status\":\"unreachable\",\"addedAt\":5,\"lastConnectedAt\":6,"
	    "\"disconnectedAt\":null,\"errorMessage\":\"e\"}],"
	    "\"updatedAt\":10}");
	cr_expect_eq(
	    put_registry("{\"registry\":[],\"updatedAt\":10}").status, 409);
	cr_expect_eq(put_registry("{\"registry\":[" ENTRY("b") "," ENTRY(
				      "b") "],\"updatedAt\":11}")
			 .status,
	    400);
	cr_expect_eq(
	    put_registry("{\"registry\":[],\"updatedAt\":0}").status, 400);
	cr_expect_eq(put_registry("{\"updatedAt\":11}").status, 400);
	cr_expect_eq(put_registry("{\"registry\":[{\"origin\":\"a\","
				  "\"status\":\"x\",\"addedAt\":1}],"
				  "\"updatedAt\":11}")
			 .status,
	    400);
	cr_expect_eq(
	    put_registry("{\"registry\":[" ENTRY("b") "],"
						      "\"updatedAt\":11}")
		.status,
	    200);
	cr_expect_str_eq(text("SELECT string_agg(origin, ',') AS t"
			      " FROM user_federation_registry"),
	    "b");
}

/* ---- from other nodes ---- */

static struct relay_site site;

static void site_begin(void)
{
	test_db_needed();
	relay_site_begin(&site);
	relay_site_send(&site, relay_site_create(&site, "m", "hello"));
	test_db_script(site.conninfo, "DELETE FROM user_events");
}

static void site_end(void)
{
	relay_site_end(&site);
}

TestSuite(profile_relay, .init = site_begin, .fini = site_end, .timeout = 300);

static const char *said(
    const char *person, const char *home, int64_t at, const char *fields)
{
	return arena_printf(site.arena,
	    "{\"eventType\":\"profile_update\",\"contextType\":\"profile\","
	    "\"messageId\":\"%s\",\"profileUpdate\":{\"homeUserId\":\"%s\","
	    "\"homeInstance\":\"%s\",\"profileUpdatedAt\":%" PRId64 "%s}}",
	    person, person, home, at, fields);
}

static const char *zed(void)
{
	return relay_site_text(&site,
	    "SELECT concat_ws('|', coalesce(display_name, '-'),"
	    " coalesce(avatar, '-'), coalesce(banner, '-'),"
	    " coalesce(accent_color, '-'), coalesce(avatar_color, '-'),"
	    " coalesce(bio, '-')) AS t FROM users WHERE home_user_id = '700'");
}

static void expect(const char *events, const char *part)
{
	const char *answer = relay_site_send(&site, events);

	cr_expect(strstr(answer, part), "%s: %s", events, answer);
}

Test(profile_relay, the_newest_profile_replaces_all_six_fields)
{
	int64_t now = clock_wall_ms();

	expect(said("700", "https://luna.test", now - 5,
		   ",\"displayName\":\"Zed II\",\"avatar\":\"https://luna.test/"
		   "api/uploads/q.png\",\"banner\":\"r.png\","
		   "\"accentColor\":\"#AaBbCc\",\"avatarColor\":\"coral\","
		   "\"bio\":\"hey\""),
	    "\"accepted\":[\"700\"]");
	cr_expect_str_eq(zed(),
	    "Zed II|https://luna.test/api/uploads/q.png|"
	    "https://luna.test/api/uploads/r.png|#AaBbCc|coral|hey");
	cr_expect_str_eq(
	    relay_site_text(&site,
		"SELECT string_agg(u.username || ' ' || kind, ',') AS t"
		" FROM user_events e JOIN users u ON u.id = e.user_id"),
	    "alice user_updated");
	expect(said("700", "luna.test", now - 5, ",\"displayName\":\"stale\""),
	    "\"accepted\":[\"700\"]");
	expect(said("700", "luna.test", now - 9, ",\"displayName\":\"stale\""),
	    "\"accepted\":[\"700\"]");
	cr_expect(strstr(zed(), "Zed II"));
	expect(said("700", "luna.test", now,
		   ",\"displayName\":null,\"avatar\":null,\"banner\":null,"
		   "\"accentColor\":null,\"avatarColor\":null,\"bio\":null"),
	    "\"accepted\":[\"700\"]");
	cr_expect_str_eq(zed(), "-|-|-|-|-|-");
	cr_expect_eq(
	    relay_site_number(&site, "SELECT count(*) AS n FROM user_events"),
	    2);
}

Test(profile_relay, only_the_home_speaks_for_its_people)
{
	int64_t now = clock_wall_ms();

	expect(said(arena_printf(site.arena, "%" PRId64, site.alice),
		   "nova.test", now, ",\"displayName\":\"forged\""),
	    "attribution_mismatch");
	expect(said("700", "evil.test", now, ",\"displayName\":\"forged\""),
	    "attribution_mismatch");
	expect(said("700", "luna.test:8443", now, ""), "attribution_mismatch");
	/* Even where alice has an account there. */
	test_db_script(site.conninfo,
	    "UPDATE users SET replicated_instances = '[{\"origin\":"
	    "\"https://luna.test\",\"username\":\"a\"}]'"
	    " WHERE username = 'alice'");
	expect(said(arena_printf(site.arena, "%" PRId64, site.alice),
		   "nova.test", now, ",\"displayName\":\"forged\""),
	    "attribution_mismatch");
	cr_expect_eq(relay_site_number(&site,
			 "SELECT count(*) AS n FROM users"
			 " WHERE display_name = 'forged'"),
	    0);
}

Test(profile_relay, who_is_not_here_leaves_nothing)
{
	int64_t now = clock_wall_ms();

	expect(said("12345", "luna.test", now, ",\"displayName\":\"nobody\""),
	    "\"accepted\":[\"12345\"]");
	test_db_script(site.conninfo,
	    "UPDATE users SET is_deleted = true, display_name = NULL,"
	    " avatar = NULL, avatar_color = NULL WHERE home_user_id = '700'");
	expect(said("700", "luna.test", now, ",\"displayName\":\"back\""),
	    "\"accepted\":[\"700\"]");
	cr_expect_str_eq(zed(), "-|-|-|-|-|-");
	cr_expect_eq(
	    relay_site_number(&site, "SELECT count(*) AS n FROM users"), 3);
}

static const char *const bad_profiles[] = {
	"{\"eventType\":\"profile_update\",\"messageId\":\"p\"}",
	"{\"eventType\":\"profile_update\",\"messageId\":\"p\","
	"\"profileUpdate\":7}",
	"{\"eventType\":\"profile_update\",\"messageId\":\"p\","
	"\"profileUpdate\":{\"homeInstance\":\"luna.test\","
	"\"profileUpdatedAt\":1}}",
	"{\"eventType\":\"profile_update\",\"messageId\":\"p\","
	"\"profileUpdate\":{\"homeInstance\":\"luna.test\","
	"\"homeUserId\":\"700\"}}",
	"{\"eventType\":\"profile_update\",\"messageId\":\"p\","
	"\"profileUpdate\":{\"homeInstance\":\"luna.test\","
	"\"homeUserId\":\"700\",\"profileUpdatedAt\":1,\"bio\":7}}",
	"{\"eventType\":\"profile_update\",\"messageId\":\"p\","
	"\"profileUpdate\":{\"homeInstance\":\"luna.test\","
	"\"homeUserId\":\"700\",\"profileUpdatedAt\":1,"
	"\"displayName\":\"a\\u0000\"}}",
};

Test(profile_relay, payloads_that_say_nothing_are_refused)
{
	for (size_t i = 0; i < COUNT(bad_profiles); i++)
		expect(bad_profiles[i],
		    "\"reason\":\"missing_profile_update_payload\"");
	cr_expect(strstr(zed(), "Zed|"));
}

/* A name is shown without what only deceives the eye, and cut to what we
 * keep; what belongs to the writing stays. */
Test(profile_relay, names_lose_what_nobody_sees)
{
	static const struct {
		const char *said, *kept;
	} names[] = {
		{ "\\u202ealice\\u202c", "alice" },
		{ "al\\u200bi\\ufeffce\\u2060", "alice" },
		{ "\\u2066bob\\u2069\\u061c", "bob" },
		{ "al\\u200dice", "alice" },
		{ "\\ud83d\\udc69\\u200d\\ud83d\\ude80",
		    "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x9a\x80" },
		{ "\\u0430lice", "\xd0\xb0lice" },
		{ "a\\u0007b\\u0085c", "abc" },
		{ "  spaced  ", "spaced" },
		{ "\\u200b\\u200e", "-" },
		{ "1234567890123456789012345678901\\ud83d\\ude80",
		    "1234567890123456789012345678901" },
	};
	int64_t now = clock_wall_ms();

	for (size_t i = 0; i < COUNT(names); i++) {
		const char *fields = arena_printf(
		    site.arena, ",\"displayName\":\"%s\"", names[i].said);

		expect(said("700", "luna.test", now - 100 + (int64_t)i, fields),
		    "\"accepted\":[\"700\"]");
		cr_expect_str_eq(zed(),
		    arena_printf(site.arena, "%s|-|-|-|-|-", names[i].kept));
	}
}

Test(profile_relay, what_we_would_not_take_from_our_own_is_none)
{
	expect(said("700", "luna.test", clock_wall_ms(),
		   ",\"displayName\":\"Z\",\"avatar\":\"../x\","
		   "\"banner\":\"javascript:x\",\"accentColor\":\"red\","
		   "\"avatarColor\":\"crimson\""),
	    "\"accepted\":[\"700\"]");
	cr_expect_str_eq(zed(), "Z|-|-|-|-|-");
}

Test(profile_relay, a_version_from_the_far_future_does_not_stay_for_ever)
{
	expect(said("700", "luna.test", INT64_C(4070908800000),
		   ",\"displayName\":\"2099\""),
	    "\"accepted\":[\"700\"]");
	expect(said("700", "luna.test", clock_wall_ms() + 1000,
		   ",\"displayName\":\"now\""),
	    "\"accepted\":[\"700\"]");
	cr_expect(strstr(zed(), "now|"));
}

Test(profile_relay, several_in_a_batch_about_one_person_the_newest_counts)
{
	int64_t now = clock_wall_ms();

	expect(arena_printf(site.arena, "%s,%s,%s",
		   said("700", "luna.test", now - 2, ",\"bio\":\"two\""),
		   said("700", "luna.test", now - 1, ",\"bio\":\"one\""),
		   said("700", "luna.test", now - 3, ",\"bio\":\"three\"")),
	    "\"rejected\":[]");
	cr_expect(strstr(zed(), "|one"));
}
