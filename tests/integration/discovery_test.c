/* How other servers find our actors and read them. */
#include <criterion/criterion.h>

#include "tests/lib/test_db.h"
#include "tests/lib/test_trust.h"

#define ACCEPT_ACTIVITY "Accept: application/activity+json\r\n"

static struct world *world;

static void begin(void)
{
	test_db_needed();
	world = world_new("nova.localhost", NULL, NULL);
	world_sql(world, "UPDATE instance_settings SET fediverse = true");
}

static void end(void)
{
	world_free(&world);
}

TestSuite(discovery, .init = begin, .fini = end, .timeout = 120);

static const char *text(const char *format, const char *value)
{
	char *at = strstr(format, "%s");

	if (!at)
		return format;
	return arena_printf(world->arena, "%.*s%s%s", (int)(at - format),
	    format, value, at + 2);
}

static struct test_reply get(const char *path, const char *headers)
{
	const struct test_request request = {
		.method = "GET", .path = path, .headers = headers
	};

	return test_http(world->arena, world->node->port, &request);
}

static const char *authority(void)
{
	return strstr(world->node->origin, "://") + 3;
}

/* Its id. */
static const char *make(const char *json)
{
	struct test_reply reply = test_post(world->arena, world->node->port,
	    "/api/fediverse/actors", world->token, json);

	cr_assert_eq(reply.status, 201, "%s", reply.body);
	return test_text(world->arena, &reply, "actor.id");
}

static void delete (const char *id)
{
	cr_assert_eq(test_delete(world->arena, world->node->port,
			 text("/api/fediverse/actors/%s", id), world->token)
			 .status,
	    200);
}

static struct test_reply finger(const char *resource)
{
	return get(arena_printf(world->arena,
		       "/.well-known/webfinger?resource=%s", resource),
	    NULL);
}

static void expect_header(
    const struct test_reply *reply, const char *name, const char *want)
{
	const char *value = test_header(world->arena, reply, name);

	cr_assert(value, "%s", name);
	cr_expect_str_eq(value, want);
}

Test(discovery, an_actor_is_read_with_all_that_verifying_needs)
{
	struct test_reply reply;
	const char *url;

	make("{\"username\":\"alice\",\"name\":\"Alice\"}");
	reply = get("/users/alice", ACCEPT_ACTIVITY);
	url = text("%s/users/alice", world->node->origin);
	cr_assert_eq(reply.status, 200);
	expect_header(
	    &reply, "content-type", "application/activity+json; charset=utf-8");
	cr_expect(strstr(reply.head, "ary: Accept"));
	const struct {
		const char *path;
		const char *want;
	} rows[] = {
		{ "id", url },
		{ "type", "Person" },
		{ "preferredUsername", "alice" },
		{ "name", "Alice" },
		{ "inbox", text("%s/inbox", url) },
		{ "outbox", text("%s/outbox", url) },
		{ "followers", text("%s/followers", url) },
		{ "endpoints.sharedInbox",
		    text("%s/inbox", world->node->origin) },
		{ "publicKey.id", text("%s#main-key", url) },
		{ "publicKey.owner", url },
		{ "generator.implements.0.href",
		    "https://datatracker.ietf.org/doc/html/rfc9421" },
	};

	for (size_t i = 0; i < COUNT(rows); i++)
		cr_expect_str_eq(test_text(world->arena, &reply, rows[i].path),
		    rows[i].want, "%s", rows[i].path);
	cr_expect(strstr(reply.body, "-----BEGIN PUBLIC KEY-----\\n"));
	cr_expect_not(strstr(reply.body, "PRIVATE"));
}

Test(discovery, whatever_takes_activities_gets_the_document)
{
	static const struct {
		const char *accept;
		int status;
	} rows[] = {
		{ "application/activity+json", 200 },
		{ "application/ld+json; "
		  "profile=\"https://www.w3.org/ns/activitystreams\"",
		    200 },
		{ "text/html, application/activity+json;q=0.5", 200 },
		{ "application/json", 200 },
		{ "*/*", 200 },
		{ "text/html,application/xhtml+xml,*/*;q=0.8", 200 },
		{ "text/html", 406 },
		{ "application/activity+json;q=0, text/html", 406 },
		{ "image/*;q=0.1", 406 },
	};

	make("{\"username\":\"alice\"}");
	cr_expect_eq(get("/users/alice", NULL).status, 200);
	for (size_t i = 0; i < COUNT(rows); i++)
		cr_expect_eq(
		    get("/users/alice", text("Accept: %s\r\n", rows[i].accept))
			.status,
		    rows[i].status, "%s", rows[i].accept);
}

Test(discovery, names_and_addresses_lead_to_the_actor_and_back)
{
	const char *host = authority();
	const char *url = text("%s/users/Alice", world->node->origin);
	const struct {
		const char *resource;
		int status;
	} rows[] = {
		{ text("acct:Alice@%s", host), 200 },
		{ text("acct:alice@%s", host), 200 },
		{ "acct:alice@nova.localhost", 200 },
		{ text("acct%3Aalice%40%s", host), 200 },
		{ url, 200 },
		{ "acct:nobody@nova.localhost", 404 },
		{ "acct:alice@nova.localhost.evil.example", 404 },
		{ "acct:alice@luna.localhost", 404 },
		{ "acct:alice", 404 },
		{ "acct:", 404 },
		{ "https://luna.localhost/users/alice", 404 },
		{ text("%s/users/", world->node->origin), 404 },
		{ "", 400 },
		{ "%ff", 400 },
	};

	make("{\"username\":\"Alice\"}");
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct test_reply reply = finger(rows[i].resource);

		cr_assert_eq(reply.status, rows[i].status, "%s: %s",
		    rows[i].resource, reply.body);
		expect_header(&reply, "access-control-allow-origin", "*");
		if (reply.status != 200)
			continue;
		expect_header(&reply, "content-type",
		    "application/jrd+json; charset=utf-8");
		cr_expect_str_eq(test_text(world->arena, &reply, "subject"),
		    text("acct:Alice@%s", host));
		cr_expect_str_eq(
		    test_text(world->arena, &reply, "links.0.href"), url);
		cr_expect_str_eq(
		    test_text(world->arena, &reply, "links.0.type"),
		    "application/activity+json");
	}
	cr_expect_eq(get("/.well-known/webfinger", NULL).status, 400);
}

Test(discovery, an_answer_to_a_browser_names_one_origin)
{
	struct test_reply reply = get(
	    "/.well-known/nodeinfo", "Origin: https://elsewhere.example\r\n");
	const char *first =
	    strcasestr(reply.head, "access-control-allow-origin");

	cr_assert(first);
	cr_expect_not(strcasestr(first + 1, "access-control-allow-origin"));
	expect_header(&reply, "access-control-allow-origin", "*");
}

Test(discovery, the_instance_has_an_actor_that_needs_no_making)
{
	struct test_reply reply = get("/actor", ACCEPT_ACTIVITY);
	const char *url = text("%s/actor", world->node->origin);
	const char *const resources[] = { world->node->origin,
		text("%s/", world->node->origin),
		"acct:nova.localhost@nova.localhost",
		text("acct:nova.localhost@%s", authority()) };
	const char *key;

	cr_assert_eq(reply.status, 200);
	cr_expect_str_eq(test_text(world->arena, &reply, "id"), url);
	cr_expect_str_eq(
	    test_text(world->arena, &reply, "type"), "Application");
	cr_expect_str_eq(test_text(world->arena, &reply, "implements.0.href"),
	    "https://datatracker.ietf.org/doc/html/rfc9421");
	key = test_text(world->arena, &reply, "publicKey.publicKeyPem");
	for (size_t i = 0; i < COUNT(resources); i++) {
		reply = finger(resources[i]);
		cr_assert_eq(reply.status, 200, "%s", resources[i]);
		cr_expect_str_eq(
		    test_text(world->arena, &reply, "links.0.href"), url);
		cr_expect_str_eq(test_text(world->arena, &reply, "links.1.rel"),
		    "https://www.w3.org/ns/activitystreams#Service");
	}
	reply = get("/actor", ACCEPT_ACTIVITY);
	cr_expect_str_eq(
	    test_text(world->arena, &reply, "publicKey.publicKeyPem"), key,
	    "one and the same");
}

Test(discovery, node_info_says_who_runs_and_what)
{
	static const char *const versions[] = { "2.1", "2.0" };
	struct test_reply links = get("/.well-known/nodeinfo", NULL);

	make("{\"username\":\"alice\"}");
	delete (make("{\"username\":\"gone\"}"));
	get("/actor", NULL);
	cr_assert_eq(links.status, 200);
	for (size_t i = 0; i < COUNT(versions); i++) {
		const char *href = test_text(world->arena, &links,
		    arena_printf(world->arena, "links.%zu.href", i));
		struct test_reply reply =
		    get(href + strlen(world->node->origin), NULL);

		cr_expect(
		    strstr(test_text(world->arena, &links,
			       arena_printf(world->arena, "links.%zu.rel", i)),
			text("/ns/schema/%s", versions[i])));
		cr_assert_eq(reply.status, 200);
		cr_expect_str_eq(
		    test_text(world->arena, &reply, "version"), versions[i]);
		cr_expect_str_eq(
		    test_text(world->arena, &reply, "software.name"),
		    "postrider");
		cr_expect_str_eq(test_text(world->arena, &reply, "protocols.0"),
		    "activitypub");
		cr_expect_eq(
		    test_number(world->arena, &reply, "usage.users.total"), 1);
	}
}

Test(discovery, host_meta_names_the_template)
{
	struct test_reply reply = get("/.well-known/host-meta", NULL);

	cr_assert_eq(reply.status, 200);
	expect_header(
	    &reply, "content-type", "application/xrd+xml; charset=utf-8");
	cr_expect(strstr(reply.body,
	    text("template=\"%s/.well-known/webfinger?resource={uri}\"",
		world->node->origin)));
}

Test(discovery, a_deleted_actor_is_gone_and_its_key_is_not)
{
	const char *id = make("{\"username\":\"alice\"}");
	struct test_reply before = get("/users/alice", NULL);
	struct test_reply after;

	delete (id);
	after = get("/users/alice", NULL);
	cr_assert_eq(after.status, 410);
	cr_expect_str_eq(test_text(world->arena, &after, "type"), "Tombstone");
	cr_expect_str_eq(test_text(world->arena, &after, "id"),
	    test_text(world->arena, &before, "id"));
	cr_expect_str_eq(
	    test_text(world->arena, &after, "publicKey.publicKeyPem"),
	    test_text(world->arena, &before, "publicKey.publicKeyPem"));
	cr_expect_eq(finger("acct:alice@nova.localhost").status, 410);
	cr_expect_eq(get("/users/alice/outbox", NULL).status, 410);
	cr_expect_eq(get("/users/nobody", NULL).status, 404);
}

Test(discovery, a_rotated_key_is_shown_under_its_old_id)
{
	const char *id = make("{\"username\":\"alice\"}");
	struct test_reply before = get("/users/alice", NULL);
	struct test_reply after;

	cr_assert_eq(test_post(world->arena, world->node->port,
			 text("/api/fediverse/actors/%s/rotate-key", id),
			 world->token, "{}")
			 .status,
	    200);
	after = get("/users/alice", NULL);
	cr_expect_str_eq(test_text(world->arena, &after, "publicKey.id"),
	    test_text(world->arena, &before, "publicKey.id"));
	cr_expect_str_neq(
	    test_text(world->arena, &after, "publicKey.publicKeyPem"),
	    test_text(world->arena, &before, "publicKey.publicKeyPem"));
	cr_expect_eq(test_db_number(world->node->database,
			 "SELECT count(*) AS n FROM audit"
			 " WHERE action = 'actor.key_rotated'"
			 " AND target = 'alice'"),
	    1);
}

Test(discovery, collections_tell_how_many_and_not_who)
{
	static const char *const names[] = { "outbox", "followers" };
	const char *id = make("{\"username\":\"alice\"}");

	world_sql(world,
	    "INSERT INTO fediverse_followers (actor_id, follower, inbox,"
	    " follow_id, accepted_at) VALUES"
	    " ('%s', 'https://luna.example/bob', 'https://luna.example/b',"
	    " 'https://luna.example/f/1', now()),"
	    " ('%s', 'https://luna.example/eve', 'https://luna.example/e',"
	    " 'https://luna.example/f/2', NULL)",
	    id, id);
	for (int i = 0; i < (int)COUNT(names); i++) {
		struct test_reply reply =
		    get(text("/users/alice/%s", names[i]), ACCEPT_ACTIVITY);

		cr_assert_eq(reply.status, 200);
		cr_expect_str_eq(test_text(world->arena, &reply, "type"),
		    "OrderedCollection");
		cr_expect_eq(
		    test_number(world->arena, &reply, "totalItems"), i);
		cr_expect_not(strstr(reply.body, "luna"));
	}
}

Test(discovery, all_of_it_is_404_while_the_setting_is_off)
{
	static const char *const paths[] = { "/users/alice",
		"/users/alice/outbox", "/users/alice/followers", "/actor",
		"/.well-known/webfinger?resource=acct:alice@nova.localhost",
		"/.well-known/host-meta", "/.well-known/nodeinfo",
		"/nodeinfo/2.0", "/nodeinfo/2.1" };

	make("{\"username\":\"alice\"}");
	for (size_t i = 0; i < COUNT(paths); i++)
		cr_expect_eq(get(paths[i], NULL).status, 200, "%s", paths[i]);
	world_sql(world, "UPDATE instance_settings SET fediverse = false");
	for (size_t i = 0; i < COUNT(paths); i++)
		cr_expect_eq(get(paths[i], NULL).status, 404, "%s", paths[i]);
	cr_expect_eq(
	    test_post(world->arena, world->node->port, "/api/fediverse/actors",
		world->token, "{\"username\":\"bob\"}")
		.status,
	    404);
}

Test(discovery, only_an_administrator_makes_actors)
{
	struct test_person bob =
	    test_person(world->node, world->node->port, "bob");
	static const struct {
		const char *json;
		int status;
	} rows[] = {
		{ "{\"username\":\"bot\",\"type\":\"Service\"}", 201 },
		{ "{\"username\":\"BOT\"}", 409 },
		{ "{\"username\":\"a b\"}", 400 },
		{ "{\"username\":7}", 400 },
		{ "{\"username\":\"x\",\"type\":\"Tree\"}", 400 },
		{ "{\"username\":\"x\",\"userId\":\"1\"}", 404 },
		{ "{}", 400 },
	};

	cr_expect_eq(test_post(world->arena, world->node->port,
			 "/api/fediverse/actors", bob.token, rows[0].json)
			 .status,
	    403);
	for (size_t i = 0; i < COUNT(rows); i++)
		cr_expect_eq(
		    test_post(world->arena, world->node->port,
			"/api/fediverse/actors", world->token, rows[i].json)
			.status,
		    rows[i].status, "%s", rows[i].json);
	cr_expect_eq(test_delete(world->arena, world->node->port,
			 "/api/fediverse/actors/7", world->token)
			 .status,
	    404);
}
