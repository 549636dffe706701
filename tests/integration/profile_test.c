/* Profiles through the API of one node, and who is told of them. */
#include <criterion/criterion.h>

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
	/* All of them tell that node, too, from now on. */
	cr_expect_str_eq(told(), "declared.test,friend.test,pair.test");
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
	cr_expect_str_eq(told(), "a.test,a.test,b.test");
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
