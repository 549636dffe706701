/*
 * Groups over three nodes: who is told, by whom, how often; and what a peer
 * that plays false brings about.
 */
#include <criterion/criterion.h>

#include "common/base/clock.h"
#include "tests/integration/three_site.h"
#include "tests/lib/test_db.h"

static struct three *three;

static void begin(void)
{
	three = three_begin();
}

static void end(void)
{
	if (three)
		three_end(&three);
}

TestSuite(three, .init = begin, .fini = end, .timeout = 300);

#define NOVA three->nova
#define ORBIT three->orbit
#define MIA "300"

static const char *path(struct world *world, const char *rest)
{
	return arena_printf(
	    three->arena, "/api/dm/%s%s", three_group_at(three, world), rest);
}

/* Somebody's id at a node. */
static const char *id_at(struct world *world, const char *home_id)
{
	return test_db_text(three->arena, world->node->database,
	    arena_printf(three->arena,
		"SELECT id::text AS t FROM users WHERE home_user_id = '%s' "
		"OR (home_instance IS NULL AND id::text = '%s')",
		home_id, home_id));
}

static void until_message(struct world *world, const char *text)
{
	three_until(three, world,
	    arena_printf(three->arena,
		"SELECT count(*) = 1 AS b FROM dm_messages m JOIN dm_channels "
		"c ON c.id = m.dm_channel_id WHERE c.federated_id = '%s' AND "
		"m.content = '%s'",
		three->federated_id, text));
}

static void until_quiet(void)
{
	three_until_quiet(three, NOVA);
	three_until_quiet(three, ORBIT);
}

static void expect_luna_got(const char *type, const char *text, size_t count)
{
	cr_expect_eq(three_got(three, three->luna, type, text), count,
	    "%s %s: %zu", type, text,
	    three_got(three, three->luna, type, text));
}

/* An event of luna about the group; more is its payload. */
static const char *said_by_luna(
    const char *type, const char *id, const char *more)
{
	return arena_printf(three->arena,
	    "{\"eventType\":\"%s\",\"contextType\":\"dm\",\"messageId\":"
	    "\"%s\",\"encryptionVersion\":0,\"timestamp\":%" PRId64
	    ",\"federatedId\":\"%s\",%s}",
	    type, id, clock_wall_ms(), three->federated_id, more);
}

static const char *who(const char *id, const char *host)
{
	return arena_printf(three->arena,
	    "{\"homeUserId\":\"%s\",\"homeInstance\":\"%s\"}", id, host);
}

static const char *mia(void)
{
	return who(MIA, "luna.localhost");
}

static const char *mia_writes(const char *id, const char *text)
{
	return said_by_luna("create", id,
	    arena_printf(three->arena,
		"\"participants\":[%s,%s],\"message\":{\"homeUserId\":"
		"\"300\",\"homeInstance\":\"luna.localhost\",\"content\":"
		"\"%s\",\"createdAt\":%" PRId64 "}",
		mia(), who(three->alice.id, "nova.localhost"), text,
		clock_wall_ms()));
}

/* ---- who is told ---- */

Test(three, each_change_reaches_each_node_concerned_once)
{
	static const char from_mia[] = "from mia";

	expect_luna_got("member_add", three->bob.id, 1);
	expect_luna_got("member_add", MIA, 1);
	three_say(three, ORBIT, &three->bob, "from bob");
	until_message(NOVA, "from bob");
	three_luna_says(three, NOVA, mia_writes("m1", from_mia));
	three_luna_says(three, ORBIT, mia_writes("m1", from_mia));
	until_message(ORBIT, from_mia);
	/* The owner hands over, the new one removes the only one of luna. */
	cr_assert_eq(
	    three_call(three, NOVA, &three->alice, "PATCH", path(NOVA, ""),
		arena_printf(three->arena, "{\"ownerId\":\"%s\"}",
		    id_at(NOVA, three->bob.id))),
	    200);
	three_until_members(three, ORBIT, "300 alice ann bob*");
	cr_assert_eq(three_call(three, ORBIT, &three->bob, "DELETE",
			 path(ORBIT,
			     arena_printf(three->arena, "/members/%s",
				 id_at(ORBIT, MIA))),
			 NULL),
	    200);
	three_until_members(three, NOVA, "alice ann bob*");
	until_quiet();
	expect_luna_got("create", "from bob", 1);
	expect_luna_got("create", from_mia, 0);
	expect_luna_got("ownership_transfer", three->bob.id, 1);
	expect_luna_got("member_remove", MIA, 1);
	/* Nobody of luna is in it any more. */
	three_say(three, ORBIT, &three->bob, "without luna");
	until_message(NOVA, "without luna");
	until_quiet();
	expect_luna_got("create", "without luna", 0);
	cr_expect_eq(three_got(three, three->sol, NULL, NULL), 0,
	    "who has no part in it hears nothing");
}

Test(three, an_owner_who_leaves_passes_it_on_everywhere)
{
	cr_assert_eq(three_call(three, NOVA, &three->alice, "DELETE",
			 path(NOVA, "/members"), NULL),
	    200);
	three_until_members(three, NOVA, "300 ann* bob");
	three_until_members(three, ORBIT, "300 ann* bob");
	cr_assert_eq(three_call(three, ORBIT, &three->bob, "DELETE",
			 path(ORBIT, "/members"), NULL),
	    200);
	three_until_members(three, NOVA, "300 ann*");
	cr_assert_eq(three_call(three, NOVA, &three->ann, "DELETE",
			 path(NOVA, "/members"), NULL),
	    200);
	until_quiet();
	expect_luna_got("member_remove", three->alice.id, 1);
	expect_luna_got("ownership_transfer", three->ann.id, 1);
	expect_luna_got("member_remove", three->bob.id, 1);
	expect_luna_got("member_remove", three->ann.id, 1);
	expect_luna_got("ownership_transfer", MIA, 1);
	cr_expect_eq(three_got(three, three->sol, NULL, NULL), 0);
}

/* Who comes back finds the group as it became meanwhile. */
Test(three, who_left_and_comes_back_sees_the_group_of_now)
{
	cr_assert_eq(three_call(three, ORBIT, &three->bob, "DELETE",
			 path(ORBIT, "/members"), NULL),
	    200);
	three_until_members(three, NOVA, "300 alice* ann");
	/* Nobody tells orbit of these. */
	cr_assert_eq(
	    three_call(three, NOVA, &three->alice, "DELETE",
		path(NOVA,
		    arena_printf(three->arena, "/members/%s", three->ann.id)),
		NULL),
	    200);
	cr_assert_eq(three_call(three, NOVA, &three->alice, "POST",
			 path(NOVA, "/members"),
			 arena_printf(three->arena,
			     "{\"homeUserId\":\"%s\",\"homeInstance\":"
			     "\"orbit.localhost\"}",
			     three->bob.id)),
	    200);
	three_until_members(three, ORBIT, "300 alice* bob");
	three_say(three, ORBIT, &three->bob, "back again");
	until_message(NOVA, "back again");
}

/* ---- homeward ---- */

/* bob's account at nova, declared at his home. */
static struct test_person bob_at_nova(void)
{
	struct test_person bob = { .username = "bob@orbit.localhost" };
	struct test_reply reply = test_post(three->arena, NOVA->node->port,
	    "/api/auth/register", NULL,
	    arena_printf(three->arena,
		"{\"username\":\"bob@orbit.localhost\",\"password\":\"%s\","
		"\"homeInstance\":\"orbit.localhost\",\"homeUserId\":\"%s\"}",
		TEST_PASSWORD, three->bob.id));

	cr_assert(reply.status == 200 || reply.status == 201, "%s", reply.body);
	bob.token = test_text(three->arena, &reply, "token");
	bob.id = test_text(three->arena, &reply, "user.id");
	world_sql(ORBIT,
	    "UPDATE users SET replicated_instances = "
	    "'[{\"origin\":\"%s\",\"username\":\"bob@orbit.localhost\"}]' "
	    "WHERE username = 'bob'",
	    NOVA->node->origin);
	return bob;
}

Test(three, what_ours_do_elsewhere_goes_on_from_their_home_only)
{
	struct test_person bob = bob_at_nova();
	size_t before;

	three_say(three, NOVA, &bob, "bob at nova");
	until_message(ORBIT, "bob at nova");
	until_quiet();
	expect_luna_got("create", "bob at nova", 1);
	cr_expect_eq(test_db_number(NOVA->node->database,
			 "SELECT count(*) AS n FROM dm_messages WHERE content "
			 "= 'bob at nova'"),
	    1, "never back to where it came from");
	before = three_got(three, three->luna, NULL, NULL);
	cr_assert_eq(three_call(three, NOVA, &bob, "DELETE",
			 path(NOVA, "/members"), NULL),
	    200);
	three_until_members(three, ORBIT, "300 alice* ann");
	until_quiet();
	expect_luna_got("member_remove", three->bob.id, 1);
	cr_expect_eq(three_got(three, three->luna, NULL, NULL), before + 1);
	cr_expect_eq(three_got(three, three->sol, NULL, NULL), 0);
}

Test(three, a_new_account_elsewhere_brings_its_groups_along)
{
	const char *sol = test_peer_origin(three->sol);

	cr_expect_eq(three_got(three, three->sol, NULL, NULL), 0);
	cr_assert_eq(
	    three_call(three, NOVA, &three->alice, "PATCH", "/api/users/@me",
		arena_printf(three->arena,
		    "{\"replicatedInstances\":[{\"origin\":\"%s\","
		    "\"username\":\"alice@nova.localhost\"}]}",
		    sol)),
	    200);
	three_say(three, NOVA, &three->alice, "there, too");
	until_quiet();
	cr_expect_eq(
	    three_got(three, three->sol, "member_add", three->alice.id), 1);
	cr_expect_eq(three_got(three, three->sol, "create", "there, too"), 1);
}

/* bob's home is not the owner's: it says where he has an account, and from
 * then on everybody who tells his home tells that node. */
Test(three, all_tell_the_node_where_somebody_of_another_has_an_account)
{
	cr_assert_eq(
	    three_call(three, ORBIT, &three->bob, "PATCH", "/api/users/@me",
		arena_printf(three->arena,
		    "{\"replicatedInstances\":[{\"origin\":\"%s\","
		    "\"username\":\"bob@orbit.localhost\"}]}",
		    test_peer_origin(three->sol))),
	    200);
	three_until(three, NOVA,
	    "SELECT count(*) = 1 AS b FROM users WHERE home_instance = "
	    "'orbit.localhost' AND replicated_instances @> "
	    "'[{\"username\": \"bob@orbit.localhost\"}]'");
	three_say(three, NOVA, &three->alice, "to all of bob");
	until_quiet();
	cr_expect_eq(
	    three_got(three, three->sol, "member_add", three->bob.id), 1);
	cr_expect_eq(
	    three_got(three, three->sol, "create", "to all of bob"), 1);
	expect_luna_got("profile_update", NULL, 1);
	/* Once he has none there, that node is nobody's business. */
	cr_assert_eq(three_call(three, ORBIT, &three->bob, "PATCH",
			 "/api/users/@me", "{\"replicatedInstances\":[]}"),
	    200);
	three_until(three, NOVA,
	    "SELECT count(*) = 0 AS b FROM users WHERE home_instance = "
	    "'orbit.localhost' AND replicated_instances <> '[]'");
	three_say(three, NOVA, &three->alice, "no longer there");
	three_say(three, ORBIT, &three->bob, "nor from here");
	until_quiet();
	cr_expect_eq(
	    three_got(three, three->sol, "create", "no longer there"), 0);
	cr_expect_eq(
	    three_got(three, three->sol, "create", "nor from here"), 0);
}

static const char *accounts_said(
    const char *id, const char *instance, int64_t at, const char *places)
{
	return arena_printf(three->arena,
	    "{\"eventType\":\"profile_update\",\"contextType\":"
	    "\"profile\",\"messageId\":\"%s\",\"encryptionVersion\":0,"
	    "\"timestamp\":%" PRId64 ",\"profileUpdate\":{\"homeUserId\":"
	    "\"%s\",\"homeInstance\":\"%s\",\"profileUpdatedAt\":%" PRId64
	    ",\"replicatedInstances\":%s}}",
	    id, at, id, instance, at, places);
}

static const char *places_of_mia(void)
{
	return test_db_text(three->arena, NOVA->node->database,
	    "SELECT replicated_instances::text AS t FROM users WHERE "
	    "home_instance = 'luna.localhost'");
}

Test(three, only_somebodys_home_says_where_he_has_accounts)
{
	int64_t now = clock_wall_ms();
	const char *sol = arena_printf(three->arena,
	    "[{\"origin\":\"%s\",\"username\":\"mia\"}]",
	    test_peer_origin(three->sol));
	const char *junk = "[7,{},{\"origin\":\"sol\"},{\"origin\":\"ftp://x\","
			   "\"username\":\"mia\"},{\"username\":\"mia\"}]";

	cr_expect(strstr(
	    three_luna_says(three, NOVA,
		accounts_said(three->bob.id, "orbit.localhost", now, sol)),
	    "attribution_mismatch"));
	cr_expect(strstr(
	    three_luna_says(three, NOVA,
		accounts_said(three->alice.id, "nova.localhost", now, sol)),
	    "attribution_mismatch"));
	/* Somebody whom we may hear of later is to be said again. */
	cr_expect(strstr(three_luna_says(three, NOVA,
			     accounts_said("999", "luna.localhost", now, sol)),
	    "processing_error"));
	three_luna_says(
	    three, NOVA, accounts_said(MIA, "luna.localhost", now, junk));
	cr_expect_str_eq(places_of_mia(), "[]");
	until_quiet();
	cr_expect_eq(three_got(three, three->sol, NULL, NULL), 0);
	three_luna_says(
	    three, NOVA, accounts_said(MIA, "luna.localhost", now, sol));
	three_luna_says(
	    three, NOVA, accounts_said(MIA, "luna.localhost", now, sol));
	/* What was true before. */
	three_luna_says(
	    three, NOVA, accounts_said(MIA, "luna.localhost", now - 1, "[]"));
	three_say(three, NOVA, &three->alice, "to mia");
	until_quiet();
	cr_expect_eq(three_got(three, three->sol, "member_add", MIA), 1);
	cr_expect_eq(three_got(three, three->sol, "create", "to mia"), 1);
	/* orbit was not told. */
	three_say(three, ORBIT, &three->bob, "not to sol");
	until_message(NOVA, "not to sol");
	until_quiet();
	cr_expect_eq(three_got(three, three->sol, "create", "not to sol"), 0);
}

/* ---- a peer that plays false ---- */

static const char *state_of(struct world *world)
{
	return test_db_text(three->arena, world->node->database,
	    "SELECT concat_ws('/', (SELECT string_agg(id || ' ' || seq || "
	    "coalesce(owner_id, 0) || (deleted_at IS NULL), ',' ORDER BY id) "
	    "FROM dm_channels), (SELECT string_agg(m::text, ',' ORDER BY "
	    "m::text) FROM dm_members m), (SELECT count(*) FROM dm_messages), "
	    "(SELECT count(*) FROM users), (SELECT count(*) FROM user_events), "
	    "(SELECT count(*) FROM federation_outbox), (SELECT count(*) FROM "
	    "events_heard), (SELECT count(*) FROM dm_departures)) AS t");
}

static const char *membership(
    const char *user, const char *role, const char *actor, const char *more)
{
	return arena_printf(three->arena,
	    "\"membership\":{\"user\":%s,\"%s\":%s%s}", user, role, actor,
	    more);
}

static const char *ownership(const char *to, const char *from)
{
	return arena_printf(three->arena,
	    "\"ownership\":{\"newOwner\":%s,\"previousOwner\":%s}", to, from);
}

Test(three, a_member_of_it_takes_no_group_over)
{
	const char *alice = who(three->alice.id, NOVA->node->origin);
	const char *bob = who(three->bob.id, "orbit.localhost");
	const char *eve = who("301", "luna.localhost");
	const char *kick = ",\"reason\":\"kick\"";
	const struct {
		const char *type;
		const char *payload;
	} lies[] = {
		{ "member_remove",
		    membership(alice, "removedBy", mia(), kick) },
		{ "member_remove", membership(bob, "removedBy", mia(), kick) },
		{ "member_remove", membership(bob, "removedBy", alice, kick) },
		{ "member_remove", membership(alice, "removedBy", bob, kick) },
		{ "member_remove",
		    membership(
			bob, "removedBy", bob, ",\"reason\":\"leave\"") },
		{ "member_remove",
		    membership(
			alice, "removedBy", mia(), ",\"reason\":\"leave\"") },
		{ "member_remove", membership(bob, "x", bob, "") },
		{ "ownership_transfer", ownership(mia(), mia()) },
		{ "ownership_transfer", ownership(mia(), alice) },
		{ "ownership_transfer", ownership(mia(), bob) },
		{ "member_add", membership(eve, "addedBy", eve, "") },
		{ "member_add", membership(eve, "addedBy", alice, "") },
		{ "member_add", membership(eve, "addedBy", bob, "") },
	};
	const char *at_nova = state_of(NOVA);
	const char *at_orbit = state_of(ORBIT);

	for (size_t i = 0; i < COUNT(lies); i++) {
		const char *event =
		    said_by_luna(lies[i].type, "lie", lies[i].payload);

		cr_expect(strstr(three_luna_says(three, NOVA, event),
			      "\"accepted\":[],"),
		    "%zu at nova", i);
		cr_expect(strstr(three_luna_says(three, ORBIT, event),
			      "\"accepted\":[],"),
		    "%zu at orbit", i);
	}
	cr_expect_str_eq(state_of(NOVA), at_nova);
	cr_expect_str_eq(state_of(ORBIT), at_orbit);
}

/* While luna is away everything else goes on; then it hears all of it once
 * and in order. */
Test(three, a_peer_that_fails_holds_nobody_up)
{
	size_t before = three_got(three, three->luna, NULL, NULL);
	size_t failed;

	three->luna_status = 503;
	three_say(three, NOVA, &three->alice, "one");
	until_message(ORBIT, "one");
	cr_assert_eq(
	    three_call(three, NOVA, &three->alice, "DELETE",
		path(NOVA,
		    arena_printf(three->arena, "/members/%s", three->ann.id)),
		NULL),
	    200);
	three_until_members(three, ORBIT, "300 alice* bob");
	three_say(three, NOVA, &three->alice, "two");
	until_message(ORBIT, "two");
	cr_assert(test_peer_got(
	    three->luna, "/api/federation/relay", 1, THREE_WAIT_MS));
	three_until(three, NOVA,
	    "SELECT transport_failures > 0 AS b FROM federation_peers WHERE "
	    "host = 'luna.localhost'");
	failed = three_got(three, three->luna, NULL, NULL);
	cr_expect_gt(failed, before);
	three->luna_status = 0;
	world_sql(NOVA, "UPDATE federation_peers SET next_attempt_at = now()");
	until_quiet();
	cr_expect_eq(test_db_number(NOVA->node->database,
			 "SELECT count(*) AS n FROM dead_letters"),
	    0);
	cr_expect_geq(three_got(three, three->luna, "create", "one"), 1);
	cr_expect_geq(
	    three_got(three, three->luna, "member_remove", three->ann.id), 1);
	cr_expect_geq(three_got(three, three->luna, "create", "two"), 1);
	cr_expect_eq(three_got(three, three->sol, NULL, NULL), 0);
}
