/* Every route, every member, every type that does not belong there. */
#include <criterion/criterion.h>

#include "tests/integration/hostile_site.h"
#include "tests/lib/test_db.h"

static struct hostile site;
static const char *channel;
static const char *message;
static int64_t peer;

static void begin(void)
{
	struct test_reply reply;

	test_db_needed();
	site = hostile_begin(NULL);
	reply = test_post(site.arena, site.port, "/api/dm", site.world->token,
	    "{\"homeUserId\":\"700\",\"homeInstance\":\"luna.localhost\"}");
	channel = test_text(site.arena, &reply, "id");
	cr_assert_not_null(channel, "%s", reply.body);
	reply = test_post(site.arena, site.port,
	    arena_printf(site.arena, "/api/dm/%s/messages", channel),
	    site.world->token, "{\"content\":\"hello\"}");
	message = test_text(site.arena, &reply, "id");
	cr_assert_not_null(message, "%s", reply.body);
	peer = hostile_number(&site, "SELECT id FROM federation_peers");
}

static void end(void)
{
	if (site.world)
		hostile_end(&site);
}

TestSuite(hostile_values, .init = begin, .fini = end, .timeout = 300);

/* Of each route the members it reads, in a body that is good but for one. */
struct member {
	const char *method;
	const char *path; /* %s: channel, message or peer */
	const char *name;
	const char *others;
	bool is_list;
	bool is_number;
	bool is_optional;
};

/* clang-format off */
static const struct member members[] = {
	{ "POST",  "/api/auth/register", "username", "\"password\":\"correct-horse\"", 0, 0, 0 },
	{ "POST",  "/api/auth/register", "password", "\"username\":\"carol\"", 0, 0, 0 },
	{ "POST",  "/api/auth/register", "displayName", "\"username\":\"carol\",\"password\":\"short\"", 0, 0, 1 },
	{ "POST",  "/api/auth/register", "avatarColor", "\"username\":\"carol\",\"password\":\"short\"", 0, 0, 1 },
	{ "POST",  "/api/auth/register", "homeInstance", "\"username\":\"carol@x.test\",\"password\":\"short\"", 0, 0, 1 },
	{ "POST",  "/api/auth/register", "homeUserId", "\"username\":\"carol\",\"password\":\"short\"", 0, 0, 1 },
	{ "POST",  "/api/auth/login", "username", "\"password\":\"correct-horse\"", 0, 0, 0 },
	{ "POST",  "/api/auth/login", "password", "\"username\":\"admin\"", 0, 0, 0 },
	{ "POST",  "/api/dm", "userId", "\"a\":1", 0, 0, 0 },
	{ "POST",  "/api/dm", "homeUserId", "\"homeInstance\":\"luna.localhost\"", 0, 0, 0 },
	{ "POST",  "/api/dm", "homeInstance", "\"homeUserId\":\"900\"", 0, 0, 0 },
	{ "POST",  "/api/dm/%s/messages", "content", "\"a\":1", 0, 0, 0 },
	{ "POST",  "/api/dm/%s/messages", "replyToId", "\"a\":1", 0, 0, 1 },
	{ "POST",  "/api/dm/%s/messages", "attachments", "\"a\":1", 1, 0, 1 },
	{ "PATCH", "/api/dm/messages/%s", "content", "\"a\":1", 0, 0, 0 },
	{ "PATCH", "/api/users/@me", "status", "\"a\":1", 0, 0, 0 },
	{ "PATCH", "/api/users/@me", "replicatedInstances", "\"a\":1", 1, 0, 0 },
	{ "PATCH", "/api/users/@me", "showActivity", "\"bio\":7", 0, 0, 0 },
	{ "POST",  "/api/users/@me/federation-identity/delete", "origins", "\"mode\":\"leave\"", 1, 0, 0 },
	{ "POST",  "/api/users/@me/federation-identity/delete", "mode", "\"origins\":[\"https://x.test\"]", 0, 0, 0 },
	{ "POST",  "/api/social/requests", "userId", "\"a\":1", 0, 0, 0 },
	{ "POST",  "/api/social/requests", "homeUserId", "\"homeInstance\":\"\"", 0, 0, 0 },
	{ "PATCH", "/api/social/requests/7", "status", "\"a\":1", 0, 0, 0 },
	{ "POST",  "/api/federation/peer/initiate", "remoteOrigin", "\"a\":1", 0, 0, 0 },
	{ "POST",  "/api/federation/peer/accept", "sourceOrigin", "\"hmacSecret\":\"s\"", 0, 0, 0 },
	{ "POST",  "/api/federation/peer/accept", "hmacSecret", "\"sourceOrigin\":\"https://x.test\"", 0, 0, 0 },
	{ "PATCH", "/api/federation/peers/%s", "autoRotateIntervalDays", "\"a\":1", 0, 1, 0 },
};
/* clang-format on */

static const char *const wrong[] = { "true", "{}", "{\"a\":[]}", "[[]]", "[{}]",
	"[null]", "1e400", "1.5", "-1", "9223372036854775808", "\"a\\u0000b\"",
	"\"\\ud800\"", "\"\\udc00\\ud800\"", "12", "null", "\"\"" };

/* What a member of that kind may well hold. */
static bool is_fitting(const struct member *member, const char *value)
{
	if (member->is_number)
		return strcmp(value, "12") == 0;
	return member->is_optional && strcmp(value, "null") == 0;
}

static struct test_reply send_member(
    const struct member *member, const char *value)
{
	const char *what = strstr(member->path, "messages/%s") ? message
	    : strstr(member->path, "peers/")
	    ? arena_printf(site.arena, "%" PRId64, peer)
	    : channel;
	const char *gap = strstr(member->path, "%s");
	const char *path = gap
	    ? arena_printf(site.arena, "%.*s%s%s", (int)(gap - member->path),
		  member->path, what, gap + 2)
	    : member->path;

	return test_http(site.arena, site.port,
	    &(struct test_request){ .method = member->method,
		.path = path,
		.token = site.world->token,
		.body = arena_printf(site.arena, "{%s,\"%s\":%s}",
		    member->others, member->name, value) });
}

Test(hostile_values, whatever_a_member_holds_the_answer_is_400)
{
	const char *before = hostile_state(&site);

	for (size_t i = 0; i < COUNT(members); i++)
		for (size_t j = 0; j < COUNT(wrong); j++) {
			const struct member *member = &members[i];
			struct test_reply reply;

			if (is_fitting(member, wrong[j]))
				continue;
			reply = send_member(member, wrong[j]);
			cr_expect(reply.status == 400 ||
				(reply.status == 401 &&
				    strstr(member->path, "login")),
			    "%s %s=%s: %d %s", member->path, member->name,
			    wrong[j], reply.status, reply.body);
			cr_expect_not_null(
			    strstr(reply.body, "\"statusCode\":"));
		}
	cr_expect_str_eq(hostile_state(&site), before);
	cr_expect_eq(hostile_lines(&site, "level=error"), 0);
}

/* ---- bodies that are none ---- */

static const char *const no_bodies[] = { "", "{", "[", "[]", "null", "7",
	"\"x\"", "{\"a\":1,\"a\":1}", "{\"a\":\"\\x\"}", "{\"a\":01}",
	"{\"a\":1}{}", "{\"\xff\":1}", "{\"__proto__\":{}}", "{\"a\":nul}" };

Test(hostile_values, what_is_no_object_is_400_on_every_route)
{
	const char *before = hostile_state(&site);

	for (size_t i = 0; i < COUNT(members); i++)
		for (size_t j = 0; j < COUNT(no_bodies); j++) {
			const char *path = members[i].path;
			struct test_reply reply;

			if (strstr(path, "%s"))
				path = arena_printf(site.arena,
				    strstr(path, "peers")
					? "/api/federation/peers/%s"
					: strstr(path, "messages/%s")
					? "/api/dm/messages/%s"
					: "/api/dm/%s/messages",
				    strstr(path, "messages/%s") ? message
								: channel);
			reply = test_http(site.arena, site.port,
			    &(struct test_request){ .method = members[i].method,
				.path = path,
				.token = site.world->token,
				.content_type = "application/json",
				.body = no_bodies[j] });
			cr_expect(reply.status == 400 ||
				(reply.status == 404 && strstr(path, "peers")),
			    "%s %s: %d %s", path, no_bodies[j], reply.status,
			    reply.body);
		}
	cr_expect_str_eq(hostile_state(&site), before);
}

/* ---- 1 MB ---- */

Test(hostile_values, a_megabyte_is_read_and_a_byte_more_is_not)
{
	enum { MEGABYTE = 1024 * 1024 };
	static const char body[] = "{\"content\":\"padded\"}";
	char *large = arena_alloc(site.arena, MEGABYTE + 2);
	const char *path =
	    arena_printf(site.arena, "/api/dm/%s/messages", channel);
	struct test_reply reply;

	memset(large, ' ', MEGABYTE + 1);
	memcpy(large, body, strlen(body));
	large[MEGABYTE] = '\0';
	reply =
	    test_post(site.arena, site.port, path, site.world->token, large);
	cr_expect_eq(reply.status, 201, "%d %s", reply.status, reply.body);
	large[MEGABYTE] = ' ';
	large[MEGABYTE + 1] = '\0';
	reply =
	    test_post(site.arena, site.port, path, site.world->token, large);
	cr_expect_eq(reply.status, 413);
	cr_expect_not_null(strstr(reply.body, "FST_ERR_CTP_BODY_TOO_LARGE"));
}

/* ---- ids in paths and queries ---- */

static const char *const no_ids[] = { "0", "-1", "1.0", "0x1", "1e3", "%00",
	"1%00", "%2e%2e", "9223372036854775808", "99999999999999999999999",
	"a'%20OR%20'1'='1", "%f0%9f%98%80", "1%0a", "NaN", "null" };

Test(hostile_values, what_is_no_id_finds_nothing)
{
	static const struct {
		const char *method;
		const char *form;
	} rows[] = {
		{ "GET", "/api/dm/%s/messages" },
		{ "DELETE", "/api/dm/%s" },
		{ "DELETE", "/api/dm/messages/%s" },
		{ "GET", "/api/conversations/%s/events" },
		{ "DELETE", "/api/federation/peers/%s" },
		{ "DELETE", "/api/federation/peers/%s/permanent" },
	};
	const char *before = hostile_state(&site);

	for (size_t i = 0; i < COUNT(rows); i++)
		for (size_t j = 0; j < COUNT(no_ids); j++) {
			const char *gap = strstr(rows[i].form, "%s");
			struct test_reply reply = test_http(site.arena,
			    site.port,
			    &(struct test_request){ .method = rows[i].method,
				.token = site.world->token,
				.path = arena_printf(site.arena, "%.*s%s%s",
				    (int)(gap - rows[i].form), rows[i].form,
				    no_ids[j], gap + 2) });

			cr_expect(reply.status == 400 || reply.status == 403 ||
				reply.status == 404,
			    "%s %s: %d", rows[i].form, no_ids[j], reply.status);
		}
	cr_expect_str_eq(hostile_state(&site), before);
	cr_expect_eq(hostile_lines(&site, "level=error"), 0);
}

/* ---- who somebody else says he is ---- */

Test(hostile_values, an_account_of_elsewhere_has_one_spelling_of_home)
{
	static const struct {
		const char *home;
		int status;
		const char *stored; /* NULL: refused */
	} rows[] = {
		{ "nova.localhost", 400, NULL },
		{ "NOVA.localhost.", 400, NULL },
		{ "https://x.test", 400, NULL },
		{ "x.test:8443", 400, NULL },
		{ "x..test", 400, NULL },
		{ "-x.test", 400, NULL },
		{ "127.1", 400, NULL },
		{ "X.Test.", 201, "x.test" },
		{ "b\xc3\xbc"
		  "cher.example",
		    201, "xn--bcher-kva.example" },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct test_reply reply =
		    test_post(site.arena, site.port, "/api/auth/register", NULL,
			arena_printf(site.arena,
			    "{\"username\":\"dora%zu@x.test\",\"password\":"
			    "\"" TEST_PASSWORD "\",\"homeInstance\":\"%s\"}",
			    i, rows[i].home));

		cr_expect_eq(reply.status, rows[i].status, "%s: %d %s",
		    rows[i].home, reply.status, reply.body);
		if (rows[i].stored)
			cr_expect_str_eq(
			    test_text(site.arena, &reply, "user.homeInstance"),
			    rows[i].stored);
	}
}

Test(hostile_values, another_port_of_our_host_is_nobodys_home)
{
	struct test_reply reply =
	    test_post(site.arena, site.port, "/api/dm", site.world->token,
		arena_printf(site.arena,
		    "{\"homeUserId\":\"%s\",\"homeInstance\":"
		    "\"http://nova.localhost:1\"}",
		    site.alice));

	cr_expect_eq(reply.status, 400, "%s", reply.body);
	cr_expect_str_eq(
	    test_text(site.arena, &reply, "error"), "Invalid home instance");
}
