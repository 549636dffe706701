#include "tests/integration/three_site.h"

#include <criterion/criterion.h>

#include "tests/lib/test_db.h"

#define RELAY "/api/federation/relay"

static void luna_script(void *arg, struct arena *arena,
    const struct test_peer_request *request, struct test_peer_answer *answer)
{
	const struct three *three = arg;

	(void)arena;
	if (!three->luna_status || strcmp(request->path, RELAY))
		return;
	answer->status = three->luna_status;
	answer->body = "{\"error\":\"not now\",\"statusCode\":503}";
}

static void trust(struct world *world, const char *origin)
{
	struct test_reply reply = world_initiate(world, origin);

	cr_assert_eq(reply.status, 200, "%s: %s", origin, reply.body);
}

static void nodes_come(struct three *three)
{
	three->nova = world_new("nova.localhost", NULL, NULL);
	three->orbit = world_new("orbit.localhost", NULL, NULL);
	three->luna = test_peer_new("luna.localhost", luna_script, three);
	three->sol = test_peer_new("sol.localhost", NULL, NULL);
	trust(three->nova, three->orbit->node->origin);
	trust(three->nova, test_peer_origin(three->luna));
	trust(three->nova, test_peer_origin(three->sol));
	trust(three->orbit, test_peer_origin(three->luna));
	trust(three->orbit, test_peer_origin(three->sol));
}

static struct test_person person(struct world *world, const char *name)
{
	return test_person(world->node, world->node->port, name);
}

int three_call(struct three *three, struct world *world,
    const struct test_person *who, const char *method, const char *path,
    const char *body)
{
	struct test_request request = {
		.method = method,
		.path = path,
		.token = who->token,
		.body = body,
	};

	return test_http(three->arena, world->node->port, &request).status;
}

static void group_comes(struct three *three)
{
	struct test_reply reply;

	world_sql(three->nova,
	    "INSERT INTO users (username, password_hash, home_instance, "
	    "home_user_id) VALUES ('%s@orbit.localhost', "
	    "'!federation-replicated', 'orbit.localhost', '%s'), "
	    "('300@luna.localhost', '!federation-replicated', "
	    "'luna.localhost', '300')",
	    three->bob.id, three->bob.id);
	world_sql(three->nova,
	    "INSERT INTO friends (user_id, friend_id) SELECT a.id, b.id FROM "
	    "users a, users b WHERE a.username = 'alice' AND b.username NOT "
	    "IN ('alice', 'admin')");
	reply = test_post(three->arena, three->nova->node->port,
	    "/api/dm/group", three->alice.token,
	    arena_printf(three->arena,
		"{\"users\":[{\"id\":\"%s\"},{\"id\":\"%s\",\"homeUserId\":"
		"\"%s\",\"homeInstance\":\"orbit.localhost\"},{\"id\":"
		"\"300\",\"homeUserId\":\"300\",\"homeInstance\":"
		"\"luna.localhost\"}]}",
		three->ann.id, three->bob.id, three->bob.id));
	cr_assert_eq(reply.status, 201, "%s", reply.body);
	three->group = test_text(three->arena, &reply, "id");
	three->federated_id = test_text(three->arena, &reply, "federatedId");
}

struct three *three_begin(void)
{
	struct arena *arena;
	struct three *three;

	if (!test_db_available())
		cr_skip_test("POSTRIDER_TEST_DB is not set");
	arena = arena_new();
	three = ARENA_NEW(arena, struct three);
	three->arena = arena;
	nodes_come(three);
	three->alice = person(three->nova, "alice");
	three->ann = person(three->nova, "ann");
	three->bob = person(three->orbit, "bob");
	group_comes(three);
	three_until_members(three, three->orbit, "300 alice* ann bob");
	three_until_quiet(three, three->nova);
	return three;
}

void three_end(struct three **three)
{
	struct arena *arena = *three ? (*three)->arena : NULL;

	if (!*three)
		return;
	world_free(&(*three)->nova);
	world_free(&(*three)->orbit);
	test_peer_free(&(*three)->luna);
	test_peer_free(&(*three)->sol);
	*three = NULL;
	arena_free(&arena);
}

const char *three_group_at(struct three *three, struct world *world)
{
	return test_db_text(three->arena, world->node->database,
	    arena_printf(three->arena,
		"SELECT id::text AS t FROM dm_channels WHERE federated_id = "
		"'%s'",
		three->federated_id));
}

void three_say(struct three *three, struct world *world,
    const struct test_person *who, const char *text)
{
	int status = three_call(three, world, who, "POST",
	    arena_printf(three->arena, "/api/dm/%s/messages",
		three_group_at(three, world)),
	    arena_printf(three->arena, "{\"content\":\"%s\"}", text));

	cr_assert_eq(status, 201, "%d", status);
}

void three_until(struct three *three, struct world *world, const char *query)
{
	(void)three;
	cr_assert(test_db_until(world->node->database, query, THREE_WAIT_MS),
	    "%s: not within %d ms: %s", world->node->host, THREE_WAIT_MS,
	    query);
}

void three_until_members(
    struct three *three, struct world *world, const char *members)
{
	/* Each person has one name, wherever his row came from. */
	three_until(three, world,
	    arena_printf(three->arena,
		"SELECT coalesce(string_agg(k.name || CASE WHEN c.owner_id = "
		"u.id THEN '*' ELSE '' END, ' ' ORDER BY k.name), '') = '%s' "
		"AS b FROM dm_channels c JOIN dm_members m ON m.dm_channel_id "
		"= c.id JOIN users u ON u.id = m.user_id CROSS JOIN LATERAL "
		"(SELECT CASE coalesce(u.home_user_id, u.id::text) WHEN '%s' "
		"THEN 'alice' WHEN '%s' THEN 'ann' WHEN '%s' THEN 'bob' ELSE "
		"u.home_user_id END AS name) k WHERE c.federated_id = '%s'",
		members, three->alice.id, three->ann.id, three->bob.id,
		three->federated_id));
}

void three_until_quiet(struct three *three, struct world *world)
{
	three_until(three, world,
	    "SELECT NOT EXISTS (SELECT FROM federation_outbox) AS b");
}

static const char *said(const struct json *event, const char *member,
    const char *inner, const char *leaf)
{
	const struct json *value = json_member(event, member);

	if (inner)
		value = json_member(value, inner);
	return json_string(json_member(value, leaf));
}

/* Is it about this text: a message of it, somebody of this home id? */
static bool is_about(const struct json *event, const char *text)
{
	const char *const all[] = {
		said(event, "message", NULL, "content"),
		said(event, "membership", "user", "homeUserId"),
		said(event, "ownership", "newOwner", "homeUserId"),
	};

	for (size_t i = 0; i < COUNT(all); i++)
		if (all[i] && strcmp(all[i], text) == 0)
			return true;
	return false;
}

static size_t events_of(
    const struct json *events, const char *type, const char *text)
{
	size_t count = 0;

	for (size_t i = 0; i < json_count(events); i++) {
		const struct json *event = json_element(events, i);
		const char *name = json_string(json_member(event, "eventType"));

		count += (!type || (name && strcmp(name, type) == 0)) &&
		    (!text || is_about(event, text));
	}
	return count;
}

size_t three_got(struct three *three, struct test_peer *peer, const char *type,
    const char *text)
{
	size_t requests = test_peer_count(peer, RELAY);
	size_t count = 0;

	for (size_t i = 0; i < requests; i++) {
		struct test_peer_request got = test_peer_nth(peer, RELAY, i);
		const struct json *body = NULL;
		struct err err = { 0 };

		cr_assert(json_parse(three->arena, got.body, &body, &err));
		count += events_of(json_member(body, "events"), type, text);
	}
	return count;
}

const char *three_luna_says(
    struct three *three, struct world *world, const char *events)
{
	const char *origin = test_peer_origin(three->luna);
	struct signed_request request = {
		.path = RELAY,
		.origin = origin,
		.secret = world_secret(world, origin),
		.body = arena_printf(three->arena,
		    "{\"version\":1,\"sourceInstance\":\"%s\",\"events\":[%s]}",
		    origin, events),
	};
	struct test_reply reply = world_send(world, &request);

	cr_assert_eq(reply.status, 200, "%d %s", reply.status, reply.body);
	return reply.body;
}
