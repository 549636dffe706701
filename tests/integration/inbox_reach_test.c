/* Whom an inbox asks for a key, and whose deliveries it will not see. */
#include <criterion/criterion.h>

#include "tests/integration/inbox_site.h"
#include "tests/lib/test_db.h"

#define TAKEN "SELECT count(*) AS n FROM fediverse_inbound"

static struct inbox_site site;

static void begin(void)
{
	test_db_needed();
	inbox_site_begin(&site, NULL);
}

static void end(void)
{
	inbox_site_end(&site);
}

TestSuite(inbox_reach, .init = begin, .fini = end, .timeout = 120);

#define deliver(...) inbox_deliver(&site, &(const struct parcel){ __VA_ARGS__ })

static size_t fetches(void)
{
	return test_peer_count(site.luna, "/users/bob");
}

/* A Create whose actor, id and key are all at the origin. */
static int deliver_from(const char *origin)
{
	return deliver(.key_id = arena_printf(
			   site.arena, "%s/users/bob#main-key", origin),
	    .body = arena_printf(site.arena,
		"{\"id\":\"%s/1\",\"type\":\"Create\","
		"\"actor\":\"%s/users/bob\",\"object\":{}}",
		origin, origin))
	    .status;
}

Test(inbox_reach, ports_of_other_services_are_never_asked)
{
	for (int i = 0; i < 2; i++)
		cr_expect_eq(deliver_from("https://far.example:25"), 401);
	cr_expect_str_eq(
	    test_db_text(site.arena, site.world->node->database,
		"SELECT string_agg(outcome || ': ' || error, ',') AS t"
		" FROM s2s_requests"),
	    "refused: the port is no web server's");
}

/* ---- where the server leads ---- */

static void leads(const char *path, const char *to, int status)
{
	inbox_shows(&site, path,
	    &(const struct test_peer_answer){ .status = status,
		.headers = arena_printf(site.arena, "Location: %s\r\n", to),
		.body = "" });
}

/* Each hop is signed for itself. */
Test(inbox_reach, a_key_is_found_where_its_own_server_leads)
{
	struct test_peer_request first;
	struct test_peer_request last;

	leads("/users/bob", arena_printf(site.arena, "%s/ap/1", site.origin),
	    301);
	leads("/ap/1", "2?x=y", 307);
	leads("/ap/2?x=y", "/ap/3", 308);
	inbox_shows(&site, "/ap/3",
	    &(const struct test_peer_answer){ .status = 200,
		.content_type = "application/activity+json",
		.body = inbox_actor(&site, "bob", NULL) });
	cr_assert_eq(deliver(.path = NULL).status, 202);
	first = test_peer_nth(site.luna, "/users/bob", 0);
	last = test_peer_nth(site.luna, "/ap/3", 0);
	cr_expect_str_eq(last.method, "GET");
	cr_expect_str_neq(test_peer_header(site.arena, &first, "signature"),
	    test_peer_header(site.arena, &last, "signature"));
	cr_expect_eq(deliver(.path = NULL).status, 202);
	cr_expect_eq(test_peer_count(site.luna, "/ap/3"), 1, "remembered");
}

/* What another server shows says nothing of this one's actors. */
Test(inbox_reach, a_key_is_looked_for_nowhere_else_and_not_for_ever)
{
	struct test_peer *evil = test_peer_new("evil.localhost", NULL, NULL);
	const struct {
		const char *to;
		size_t requests;
	} rows[] = {
		{ arena_printf(
		      site.arena, "%s/users/bob", test_peer_origin(evil)),
		    1 },
		{ "http://169.254.169.254/users/bob", 1 },
		{ "//evil.localhost/users/bob", 1 },
		{ "file:///etc/passwd", 1 },
		{ "/users/bob", 4 },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		size_t before = fetches();

		leads("/users/bob", rows[i].to, 302);
		cr_expect_eq(
		    deliver(.path = NULL).status, 401, "%s", rows[i].to);
		cr_expect_eq(fetches() - before, rows[i].requests, "%s: %zu",
		    rows[i].to, fetches() - before);
		world_sql(site.world, "DELETE FROM fediverse_keys");
	}
	cr_expect_eq(test_peer_count(evil, NULL), 0);
	test_peer_free(&evil);
}

/* ---- who asks, and how ---- */

static void bob_for_one_style(void *arg UNUSED, struct arena *arena,
    const struct test_peer_request *request, struct test_peer_answer *answer)
{
	bool newer = test_peer_header(arena, request, "signature-input");

	*answer = (struct test_peer_answer){ .status = newer ? 200 : 401,
		.content_type = "application/activity+json",
		.body = newer ? inbox_actor(&site, "bob", NULL) : "{}" };
}

/* Who cannot read the draft's signature is asked again, once. */
Test(inbox_reach, a_key_is_asked_for_in_the_other_style_too)
{
	struct test_peer *luna = site.luna;
	struct test_peer_request got;

	site.luna = test_peer_new("luna.localhost", bob_for_one_style, NULL);
	test_peer_free(&luna);
	site.origin = test_peer_origin(site.luna);
	site.bob = arena_printf(site.arena, "%s/users/bob", site.origin);
	cr_expect_eq(deliver(.path = NULL).status, 202);
	cr_expect_eq(fetches(), 2);
	got = test_peer_nth(site.luna, "/users/bob", 1);
	cr_expect(strstr(test_peer_header(site.arena, &got, "user-agent"),
	    arena_printf(site.arena, "(+%s/)", site.world->node->origin)));
}

/* Given as people write it; answered, found and stored under one name. */
Test(inbox_reach, an_international_name_is_asked_as_the_dns_has_it)
{
	static const char *const hosts[] = { "l\xc3\xbcna.localhost",
		"xn--lna-hoa.localhost" };

	for (size_t i = 0; i < COUNT(hosts); i++) {
		struct test_peer_request got;

		site.origin = arena_printf(site.arena, "http://%s:%d", hosts[i],
		    test_peer_port(site.luna));
		site.bob =
		    arena_printf(site.arena, "%s/users/bob", site.origin);
		inbox_shows_actor(&site, "bob", NULL);
		cr_expect_eq(deliver(.path = NULL).status, 202, "%s", hosts[i]);
		got = test_peer_nth(site.luna, "/users/bob", i);
		cr_expect_str_eq(test_peer_header(site.arena, &got, "host"),
		    arena_printf(site.arena, "xn--lna-hoa.localhost:%d",
			test_peer_port(site.luna)));
	}
}

/* What its documents say that it knows is tried first. */
Test(inbox_reach, a_server_that_says_so_gets_the_newer_style)
{
	const char *body = inbox_actor(&site, "bob", NULL);

	world_sql(site.world,
	    "INSERT INTO fediverse_domains (domain) VALUES"
	    " ('%s')",
	    strstr(site.origin, "://") + 3);
	inbox_shows(&site, "/users/bob",
	    &(const struct test_peer_answer){ .status = 200,
		.content_type = "application/activity+json",
		.body = arena_printf(site.arena,
		    "{\"generator\":{\"type\":\"Application\","
		    "\"implements\":[{\"href\":\"https://datatracker.ietf.org"
		    "/doc/html/rfc9421\"}]},%s",
		    body + 1) });
	cr_assert_eq(deliver(.style = SIG_CAVAGE).status, 202);
	cr_expect_str_eq(test_db_text(site.arena, site.world->node->database,
			     "SELECT coalesce(style, 'unknown') AS t"
			     " FROM fediverse_domains"),
	    "rfc9421");
}

/* ---- blocked ---- */

/* Refused before anything is looked at: nothing is fetched, nothing kept. */
Test(inbox_reach, a_blocked_server_is_answered_403_and_never_asked)
{
	static const enum sig_style styles[] = { SIG_CAVAGE, SIG_RFC9421 };
	const char *departure = arena_printf(site.arena,
	    "{\"id\":\"%s/d\",\"type\":\"Delete\",\"actor\":\"%s\","
	    "\"object\":\"%s\"}",
	    site.origin, site.bob, site.bob);

	world_sql(
	    site.world, "SELECT ops.domain_block('%s', 'spam')", site.origin);
	for (size_t i = 0; i < COUNT(styles); i++)
		cr_expect_eq(deliver(.style = styles[i]).status, 403);
	cr_expect_eq(deliver(.path = "/users/alice/inbox").status, 403);
	cr_expect_eq(deliver(.body = departure).status, 403);
	cr_expect_eq(
	    deliver_from(arena_printf(site.arena, "http://x.luna.localhost:%d",
		test_peer_port(site.luna))),
	    403, "below it");
	cr_expect_eq(deliver_from("https://luna.localhost"), 403, "any port");
	cr_expect_eq(test_peer_count(site.luna, NULL), 0);
	cr_expect_eq(inbox_number(&site, TAKEN), 0);
	cr_expect_eq(
	    inbox_number(&site, "SELECT count(*) AS n FROM s2s_requests"), 0);
	world_sql(site.world, "SELECT ops.domain_unblock('%s')", site.origin);
	cr_expect_eq(deliver(.path = NULL).status, 202);
}

/* Known before, blocked since: the key that is remembered serves no more. */
Test(inbox_reach, a_known_key_does_not_open_a_block)
{
	cr_assert_eq(deliver(.path = NULL).status, 202);
	world_sql(site.world,
	    "UPDATE fediverse_domains SET state = 'dead';"
	    "SELECT ops.domain_block('localhost', 'all of them')");
	cr_expect_eq(deliver(.path = NULL).status, 403);
	cr_expect_eq(inbox_number(&site, TAKEN), 1);
}
