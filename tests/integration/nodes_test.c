/*
 * Three nodes, real daemons: a group of alice (nova), bob (orbit) and carol
 * (luna), and what they put under messages and have read ends alike on all.
 */
#include <criterion/criterion.h>

#include "tests/lib/test_db.h"
#include "tests/lib/test_trust.h"

enum { WAIT_MS = 20000, NODES = 3 };

struct place {
	struct world *world;
	struct test_person person;
	const char *channel;
};

static struct place nova, orbit, luna;
static struct test_person alice_at_luna;
static struct arena *arena;

/* ---- setting up ---- */

static void peers(struct place *a, struct place *b)
{
	struct test_reply reply =
	    world_initiate(a->world, b->world->node->origin);

	cr_assert_eq(reply.status, 200, "%s", reply.body);
}

static const char *host(const struct place *place)
{
	return place->world->node->host;
}

static struct test_reply call(const struct place *at,
    const struct test_person *who, const char *method, const char *path,
    const char *body)
{
	const struct test_request request = {
		.method = method,
		.path = path,
		.token = who->token,
		.body = body,
	};

	return test_http(arena, at->world->node->port, &request);
}

/* nova knows the two and counts them as alice's friends. */
static void friends(void)
{
	world_sql(nova.world,
	    "INSERT INTO users (username, password_hash, home_instance,"
	    " home_user_id) VALUES"
	    " ('%s@%s', '!federation-replicated', '%s', '%s'),"
	    " ('%s@%s', '!federation-replicated', '%s', '%s')",
	    orbit.person.id, host(&orbit), host(&orbit), orbit.person.id,
	    luna.person.id, host(&luna), host(&luna), luna.person.id);
	world_sql(nova.world,
	    "INSERT INTO friends (user_id, friend_id) SELECT a.id, b.id"
	    " FROM users a, users b WHERE a.username = 'alice'"
	    " AND b.home_user_id IS NOT NULL");
}

static const char *group_at(const struct place *place)
{
	const char *db = place->world->node->database;

	cr_assert(test_db_until(db,
		      "SELECT count(*) = 1 AS b FROM dm_channels"
		      " WHERE is_group",
		      test_patience_ms(WAIT_MS)),
	    "%s has no group", host(place));
	return test_db_text(
	    arena, db, "SELECT id::text AS t FROM dm_channels WHERE is_group");
}

static void group_made(void)
{
	struct test_reply reply = call(&nova, &nova.person, "POST",
	    "/api/dm/group",
	    arena_printf(arena,
		"{\"users\":[{\"id\":\"1\",\"homeUserId\":\"%s\","
		"\"homeInstance\":\"%s\"},{\"id\":\"1\",\"homeUserId\":"
		"\"%s\",\"homeInstance\":\"%s\"}]}",
		orbit.person.id, host(&orbit), luna.person.id, host(&luna)));

	cr_assert_eq(reply.status, 201, "%s", reply.body);
	nova.channel = group_at(&nova);
	orbit.channel = group_at(&orbit);
	luna.channel = group_at(&luna);
}

/* alice signs up at luna, too, and says so at home. */
static void alice_comes_to_luna(void)
{
	struct test_reply reply =
	    test_post(arena, luna.world->node->port, "/api/auth/register", NULL,
		arena_printf(arena,
		    "{\"username\":\"alice@%s\",\"password\":\"" TEST_PASSWORD
		    "\",\"homeInstance\":\"%s\",\"homeUserId\":\"%s\"}",
		    host(&nova), host(&nova), nova.person.id));

	cr_assert_eq(reply.status, 201, "%s", reply.body);
	alice_at_luna = (struct test_person){
		.username = "alice",
		.id = test_text(arena, &reply, "user.id"),
		.token = test_text(arena, &reply, "token"),
	};
	world_sql(nova.world,
	    "UPDATE users SET replicated_instances ="
	    " '[{\"origin\":\"%s\",\"username\":\"alice\"}]'"
	    " WHERE username = 'alice'",
	    luna.world->node->origin);
}

static void begin(void)
{
	test_db_needed();
	arena = arena_new();
	nova.world = world_new("nova.localhost", NULL, NULL);
	orbit.world = world_new("orbit.localhost", NULL, NULL);
	luna.world = world_new("luna.localhost", NULL, NULL);
	nova.person =
	    test_person(nova.world->node, nova.world->node->port, "alice");
	orbit.person =
	    test_person(orbit.world->node, orbit.world->node->port, "bob");
	luna.person =
	    test_person(luna.world->node, luna.world->node->port, "carol");
	peers(&nova, &orbit);
	peers(&nova, &luna);
	peers(&orbit, &luna);
	friends();
	alice_comes_to_luna();
	group_made();
}

static void end(void)
{
	world_free(&nova.world);
	world_free(&orbit.world);
	world_free(&luna.world);
	if (arena)
		arena_free(&arena);
}

TestSuite(nodes, .init = begin, .fini = end, .timeout = 300);

/* ---- doing ---- */

static const char *write_at(
    const struct place *at, const struct test_person *who, const char *text)
{
	struct test_reply reply = call(at, who, "POST",
	    arena_printf(arena, "/api/dm/%s/messages", at->channel),
	    arena_printf(arena, "{\"content\":\"%s\"}", text));

	cr_assert_eq(reply.status, 201, "%s", reply.body);
	return test_text(arena, &reply, "id");
}

/* The message's id at a place, once it is there. */
static const char *known(const struct place *at, const char *text)
{
	const char *db = at->world->node->database;

	cr_assert(test_db_until(db,
		      arena_printf(arena,
			  "SELECT count(*) = 1 AS b FROM dm_messages"
			  " WHERE content = '%s'",
			  text),
		      test_patience_ms(WAIT_MS)),
	    "'%s' did not come to %s", text, host(at));
	return test_db_text(arena, db,
	    arena_printf(arena,
		"SELECT id::text AS t FROM dm_messages WHERE content = '%s'",
		text));
}

/* Once all nodes have the message: a reaction that comes before it is taken
 * half a minute later. */
static void react(const struct place *at, const struct test_person *who,
    const char *method, const char *text, const char *emoji)
{
	const struct place *const all[NODES] = { &nova, &orbit, &luna };
	struct test_reply reply;

	for (size_t i = 0; i < NODES; i++)
		known(all[i], text);
	reply = call(at, who, method,
	    arena_printf(arena, "/api/dm/messages/%s/reactions/%s",
		known(at, text), emoji),
	    NULL);
	cr_assert_lt(reply.status, 300, "%d %s", reply.status, reply.body);
}

/* "person emoji" of all reactions, people by their ids at home. */
static void expect_at(const struct place *at, const char *text,
    const struct test_person *const *people, const char *const *emojis)
{
	const char *want = "";

	for (size_t i = 0; people[i]; i++)
		want = arena_printf(arena, "%s%s('%s', '%s')", want,
		    i ? "," : "", people[i]->id, emojis[i]);
	cr_expect(test_db_until(at->world->node->database,
		      arena_printf(arena,
			  "WITH have AS (SELECT coalesce(u.home_user_id,"
			  " u.id::text), r.emoji FROM dm_reactions r"
			  " JOIN users u ON u.id = r.user_id JOIN dm_messages m"
			  " ON m.id = r.dm_message_id AND m.content = '%s'),"
			  " want AS (%s%s) SELECT NOT EXISTS (TABLE have EXCEPT"
			  " TABLE want) AND NOT EXISTS (TABLE want EXCEPT"
			  " TABLE have) AS b",
			  text, *want ? "VALUES " : "SELECT '', '' WHERE false",
			  want),
		      test_patience_ms(WAIT_MS)),
	    "%s has %s", host(at),
	    test_db_text(arena, at->world->node->database,
		"SELECT coalesce(string_agg(u.username || ' ' || emoji, ', '),"
		" 'nothing') AS t FROM dm_reactions r JOIN users u"
		" ON u.id = r.user_id"));
}

#define EXPECT_ALL(text, people_list, emoji_list) \
	do { \
		const struct test_person *const people[] = people_list; \
		const char *const emojis[] = emoji_list; \
		expect_at(&nova, text, people, emojis); \
		expect_at(&orbit, text, people, emojis); \
		expect_at(&luna, text, people, emojis); \
	} while (0)
#define LIST(...) \
	{ \
		__VA_ARGS__, NULL \
	}
#define NOTHING \
	{ \
		NULL \
	}

static void nothing_is_left_to_tell(const struct place *at)
{
	cr_expect(test_db_until(at->world->node->database,
		      "SELECT count(*) = 0 AS b FROM federation_outbox",
		      test_patience_ms(WAIT_MS)),
	    "%s: %s", host(at),
	    test_db_text(arena, at->world->node->database,
		"SELECT string_agg(event_type || ' ' || coalesce(reason, ''),"
		" ', ') AS t FROM federation_outbox"));
	cr_expect_eq(test_db_number(at->world->node->database,
			 "SELECT count(*) AS n FROM dead_letters"),
	    0, "%s", host(at));
}

static void nothing_is_left(void)
{
	nothing_is_left_to_tell(&nova);
	nothing_is_left_to_tell(&orbit);
	nothing_is_left_to_tell(&luna);
}

/* ---- reactions ---- */

/* Born at nova; carol and bob react, bob takes his back while he is away. */
Test(nodes, all_three_show_the_same_reactions)
{
	write_at(&nova, &nova.person, "born at nova");
	react(&luna, &luna.person, "PUT", "born at nova", "x");
	react(&orbit, &orbit.person, "PUT", "born at nova", "x");
	react(&orbit, &orbit.person, "PUT", "born at nova", "y");
	EXPECT_ALL("born at nova",
	    LIST(&luna.person, &orbit.person, &orbit.person),
	    LIST("x", "x", "y"));
	react(&orbit, &orbit.person, "DELETE", "born at nova", "x");
	EXPECT_ALL(
	    "born at nova", LIST(&luna.person, &orbit.person), LIST("x", "y"));
	/* orbit is away; what happens meanwhile reaches it afterwards. */
	test_daemon_stop(orbit.world->frontd);
	react(&luna, &luna.person, "DELETE", "born at nova", "x");
	react(&luna, &luna.person, "PUT", "born at nova", "z");
	react(&nova, &nova.person, "PUT", "born at nova", "x");
	react(&nova, &nova.person, "DELETE", "born at nova", "x");
	react(&nova, &nova.person, "PUT", "born at nova", "x");
	test_daemon_again(orbit.world->frontd);
	world_sql(
	    nova.world, "UPDATE federation_peers SET next_attempt_at = now()");
	world_sql(
	    luna.world, "UPDATE federation_peers SET next_attempt_at = now()");
	EXPECT_ALL("born at nova",
	    LIST(&luna.person, &orbit.person, &nova.person),
	    LIST("z", "y", "x"));
	nothing_is_left();
}

/* alice writes with her account at luna: nova has it from there and sends it
 * on, so that orbit knows it by nova's id and luna by its own. */
Test(nodes, what_came_homeward_gathers_the_same_reactions_everywhere)
{
	write_at(&luna, &alice_at_luna, "written at luna");
	react(&luna, &luna.person, "PUT", "written at luna", "c");
	react(&orbit, &orbit.person, "PUT", "written at luna", "b");
	react(&nova, &nova.person, "PUT", "written at luna", "a");
	EXPECT_ALL("written at luna",
	    LIST(&luna.person, &orbit.person, &nova.person),
	    LIST("c", "b", "a"));
	/* alice takes hers back where she had not put it. */
	react(&luna, &alice_at_luna, "DELETE", "written at luna", "a");
	react(&luna, &alice_at_luna, "PUT", "written at luna", "d");
	react(&orbit, &orbit.person, "DELETE", "written at luna", "b");
	EXPECT_ALL("written at luna", LIST(&luna.person, &nova.person),
	    LIST("c", "d"));
	nothing_is_left();
}

static void change(const struct place *at, const struct test_person *who,
    const char *was, const char *text)
{
	struct test_reply reply = call(at, who, "PATCH",
	    arena_printf(arena, "/api/dm/messages/%s", known(at, was)),
	    arena_printf(arena, "{\"content\":\"%s\"}", text));

	cr_assert_eq(reply.status, 200, "%s", reply.body);
	known(&nova, text);
	known(&orbit, text);
	known(&luna, text);
}

static void take_back(
    const struct place *at, const struct test_person *who, const char *text)
{
	const struct place *const all[NODES] = { &nova, &orbit, &luna };
	struct test_reply reply = call(at, who, "DELETE",
	    arena_printf(arena, "/api/dm/messages/%s", known(at, text)), NULL);

	cr_assert_eq(reply.status, 200, "%s", reply.body);
	for (size_t i = 0; i < NODES; i++)
		cr_expect(test_db_until(all[i]->world->node->database,
			      arena_printf(arena,
				  "SELECT count(*) = 0 AS b FROM dm_messages"
				  " WHERE content = '%s'",
				  text),
			      test_patience_ms(WAIT_MS)),
		    "%s keeps %s", host(all[i]), text);
}

/* Each node names a message by its own id; the one where it was written knows
 * no other. */
Test(nodes, alice_changes_on_one_node_what_she_wrote_on_another)
{
	write_at(&luna, &alice_at_luna, "luna 1");
	change(&nova, &nova.person, "luna 1", "luna 2");
	change(&luna, &alice_at_luna, "luna 2", "luna 3");
	write_at(&nova, &nova.person, "nova 1");
	change(&luna, &alice_at_luna, "nova 1", "nova 2");
	change(&nova, &nova.person, "nova 2", "nova 3");
	take_back(&luna, &alice_at_luna, "nova 3");
	take_back(&nova, &nova.person, "luna 3");
	nothing_is_left();
}

Test(nodes, a_deleted_message_takes_its_reactions_everywhere)
{
	const char *id = write_at(&nova, &nova.person, "to be deleted");

	react(&luna, &luna.person, "PUT", "to be deleted", "x");
	EXPECT_ALL("to be deleted", LIST(&luna.person), LIST("x"));
	cr_expect_eq(call(&nova, &nova.person, "DELETE",
			 arena_printf(arena, "/api/dm/messages/%s", id), NULL)
			 .status,
	    200);
	cr_expect(test_db_until(luna.world->node->database,
	    "SELECT count(*) = 0 AS b FROM dm_messages WHERE type = 'user'",
	    test_patience_ms(WAIT_MS)));
	EXPECT_ALL("to be deleted", NOTHING, NOTHING);
	nothing_is_left();
}

/* ---- read states ---- */

static void ack(
    const struct place *at, const struct test_person *who, const char *text)
{
	struct test_reply reply = call(at, who, "POST",
	    arena_printf(arena, "/api/dm/%s/ack", at->channel),
	    arena_printf(arena, "{\"messageId\":\"%s\"}", known(at, text)));

	cr_assert_eq(reply.status, 200, "%s", reply.body);
}

static void expect_read(
    const struct place *at, const struct test_person *who, const char *text)
{
	cr_expect(test_db_until(at->world->node->database,
		      arena_printf(arena,
			  "SELECT coalesce((SELECT m.content = '%s'"
			  " FROM read_states r JOIN dm_messages m"
			  " ON m.id = r.last_read_message_id"
			  " WHERE r.user_id = %s), false) AS b",
			  text, who->id),
		      test_patience_ms(WAIT_MS)),
	    "%s: %s is not what was read", host(at), text);
}

Test(nodes, what_alice_reads_here_she_has_read_there_and_nobody_else_knows)
{
	write_at(&orbit, &orbit.person, "first");
	known(&nova, "first");
	known(&luna, "first");
	write_at(&orbit, &orbit.person, "second");
	ack(&luna, &alice_at_luna, "first");
	expect_read(&nova, &nova.person, "first");
	ack(&nova, &nova.person, "second");
	expect_read(&luna, &alice_at_luna, "second");
	/* A device that lags behind takes nothing back. */
	ack(&luna, &alice_at_luna, "first");
	write_at(&luna, &alice_at_luna, "third");
	ack(&luna, &alice_at_luna, "third");
	expect_read(&nova, &nova.person, "third");
	nothing_is_left();
	cr_expect_eq(test_db_number(orbit.world->node->database,
			 "SELECT count(*) AS n FROM read_states"),
	    0);
	cr_expect_eq(test_db_number(nova.world->node->database,
			 "SELECT count(*) AS n FROM user_events"
			 " WHERE kind = 'channel_ack'"),
	    3);
}

/* ---- a group that only a second account brings to a node ---- */

static struct place in_group(const struct place *at, const char *federated_id)
{
	const char *db = at->world->node->database;
	struct place place = *at;

	cr_assert(test_db_until(db,
		      arena_printf(arena,
			  "SELECT count(*) = 1 AS b FROM dm_channels"
			  " WHERE federated_id = '%s'",
			  federated_id),
		      test_patience_ms(WAIT_MS)),
	    "%s does not know the group", host(at));
	place.channel = test_db_text(arena, db,
	    arena_printf(arena,
		"SELECT id::text AS t FROM dm_channels"
		" WHERE federated_id = '%s'",
		federated_id));
	return place;
}

static void until_members(const struct place *at, int count)
{
	cr_expect(test_db_until(at->world->node->database,
		      arena_printf(arena,
			  "SELECT count(*) = %d AS b FROM dm_members"
			  " WHERE dm_channel_id = %s",
			  count, at->channel),
		      test_patience_ms(WAIT_MS)),
	    "%s has other members", host(at));
}

/* bob's, with alice and dan of nova: nobody in it is at home at luna. */
static const char *group_of_bob(const struct test_person *dan)
{
	struct test_reply reply;

	world_sql(orbit.world,
	    "INSERT INTO users (username, password_hash, home_instance,"
	    " home_user_id) VALUES"
	    " ('%s@%s', '!federation-replicated', '%s', '%s')",
	    dan->id, host(&nova), host(&nova), dan->id);
	world_sql(orbit.world,
	    "INSERT INTO friends (user_id, friend_id) SELECT a.id, b.id"
	    " FROM users a, users b WHERE a.username = 'bob'"
	    " AND b.home_user_id IS NOT NULL");
	reply = call(&orbit, &orbit.person, "POST", "/api/dm/group",
	    arena_printf(arena,
		"{\"users\":[{\"id\":\"1\",\"homeUserId\":\"%s\","
		"\"homeInstance\":\"%s\"},{\"id\":\"1\",\"homeUserId\":"
		"\"%s\",\"homeInstance\":\"%s\"}]}",
		nova.person.id, host(&nova), dan->id, host(&nova)));
	cr_assert_eq(reply.status, 201, "%s", reply.body);
	return test_text(arena, &reply, "federatedId");
}

Test(nodes, alices_second_account_takes_part_in_what_others_make)
{
	struct test_person dan =
	    test_person(nova.world->node, nova.world->node->port, "dan");
	const char *id = group_of_bob(&dan);
	struct place at_nova = in_group(&nova, id);
	struct place at_orbit = in_group(&orbit, id);
	struct place at_luna = in_group(&luna, id);
	struct test_reply reply;

	write_at(&at_orbit, &orbit.person, "from bob");
	react(&luna, &alice_at_luna, "PUT", "from bob", "x");
	react(&nova, &nova.person, "PUT", "from bob", "y");
	EXPECT_ALL(
	    "from bob", LIST(&nova.person, &nova.person), LIST("x", "y"));
	write_at(&at_luna, &alice_at_luna, "from alice at luna");
	react(&orbit, &orbit.person, "PUT", "from alice at luna", "z");
	EXPECT_ALL("from alice at luna", LIST(&orbit.person), LIST("z"));
	/* bob hands over and goes; luna hears of it from his home. */
	reply = call(&at_orbit, &orbit.person, "DELETE",
	    arena_printf(arena, "/api/dm/%s/members", at_orbit.channel), NULL);
	cr_expect_eq(reply.status, 200, "%s", reply.body);
	until_members(&at_nova, 2);
	until_members(&at_luna, 2);
	write_at(&at_nova, &dan, "from dan");
	known(&luna, "from dan");
	nothing_is_left();
}
