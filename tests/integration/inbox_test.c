/* Deliveries of other servers: what is taken, refused, and remembered. */
#include <criterion/criterion.h>

#include "common/base/clock.h"
#include "tests/integration/inbox_site.h"
#include "tests/lib/test_db.h"

#define TAKEN "SELECT count(*) AS n FROM fediverse_inbound"

enum { WAIT_MS = 10000 };

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

TestSuite(inbox, .init = begin, .fini = end, .timeout = 180);

#define deliver(...) inbox_deliver(&site, &(const struct parcel){ __VA_ARGS__ })

static size_t fetches(void)
{
	return test_peer_count(site.luna, "/users/bob");
}

static const char *printed(const char *format, const char *text)
{
	const char *at = strstr(format, "%s");

	return arena_printf(
	    site.arena, "%.*s%s%s", (int)(at - format), format, text, at + 2);
}

Test(inbox, both_styles_are_taken_and_stored_as_they_came)
{
	static const enum sig_style styles[] = { SIG_CAVAGE, SIG_RFC9421 };
	const char *const paths[] = { "/inbox", "/users/alice/inbox",
		"/actor/inbox" };

	for (size_t i = 0; i < COUNT(styles); i++)
		for (size_t j = 0; j < COUNT(paths); j++) {
			struct test_reply reply =
			    deliver(.style = styles[i], .path = paths[j]);

			cr_assert_eq(reply.status, 202, "%zu %s: %s", i,
			    paths[j], reply.body);
		}
	cr_expect_eq(inbox_number(&site, TAKEN), 6);
	cr_expect_eq(fetches(), 1, "the key is remembered");
	cr_expect_eq(inbox_number(&site,
			 "SELECT count(*) AS n FROM fediverse_inbound i"
			 " JOIN fediverse_actors a ON i.actor_ids = ARRAY[a.id]"
			 " WHERE a.username = 'alice'"),
	    2);
	{
		const char *body = inbox_activity(&site, "exact", "Like",
		    " {\"id\" : \"https://x.example/1\", \"a\":[1,2 ] }");

		cr_assert_eq(deliver(.body = body).status, 202);
		cr_expect_str_eq(
		    test_db_text(site.arena, site.world->node->database,
			"SELECT body AS t FROM fediverse_inbound"
			" WHERE type = 'Like'"),
		    body);
		cr_expect_str_eq(
		    test_db_text(site.arena, site.world->node->database,
			"SELECT object AS t FROM fediverse_inbound"
			" WHERE type = 'Like'"),
		    "https://x.example/1");
	}
}

Test(inbox, what_is_not_proved_is_refused_and_leaves_nothing)
{
	static const enum sig_style styles[] = { SIG_CAVAGE, SIG_RFC9421 };
	const struct key_pair other = key_pair_fresh(site.arena);
	const char *create = inbox_activity(&site, "1", "Create", "{}");
	const char *forged = inbox_activity(&site, "1", "Create", "[ ]");

	cr_assert_eq(deliver(.path = NULL).status, 202);
	for (size_t i = 0; i < COUNT(styles); i++) {
		const enum sig_style style = styles[i];
		const struct {
			const char *what;
			struct parcel parcel;
		} rows[] = {
			{ "another body", { .body = create, .sent = forged } },
			{ "another key", { .key = &other } },
			{ "two hours old", { .age_s = 7200 } },
			{ "two hours ahead", { .age_s = -7200 } },
			{ "for another host", { .host = "evil.localhost" } },
			{ "none", { .is_unsigned = true } },
			{ "a key that is not there",
			    { .key_id = printed("%s#other", site.bob) } },
			{ "a key of elsewhere",
			    { .key_id = "https://other.example/u#main-key" } },
			{ "our own key",
			    { .key_id = printed("%s#main-key", site.alice) } },
		};

		for (size_t j = 0; j < COUNT(rows); j++) {
			struct parcel parcel = rows[j].parcel;

			parcel.style = style;
			cr_expect_eq(inbox_deliver(&site, &parcel).status, 401,
			    "%s", rows[j].what);
		}
	}
	cr_expect_eq(inbox_number(&site, TAKEN), 1);
}

Test(inbox, refuses_what_is_no_activity_before_any_key_is_looked_at)
{
	char *huge = arena_alloc(site.arena, (1 << 20) + 2);
	const char *const malformed[] = {
		"[]", "7", "\"x\"", "{", "{}",
		"{\"id\":\"https://a.example/1\",\"type\":\"Like\"}",
		"{\"id\":\"https://a.example/1\",\"actor\":\"https://a.example/"
		"a\"}",
		"{\"type\":\"Like\",\"actor\":\"https://a.example/a\"}",
		"{\"id\":7,\"type\":\"Like\",\"actor\":\"https://a.example/"
		"a\"}",
		"{\"id\":\"https://a.example/"
		"1\",\"type\":\"Like\",\"actor\":\"ftp://a.example/a\"}",
		"{\"id\":\"https://a.example/"
		"1\",\"type\":\"Like\",\"actor\":\"https://u:p@a.example/a\"}"
	};

	memset(huge, 'x', (1 << 20) + 1);
	cr_expect_eq(deliver(.body = huge, .is_unsigned = true).status, 413);
	cr_expect_eq(
	    deliver(.body = huge, .is_unsigned = true, .type = "text/plain")
		.status,
	    413, "the size is looked at first");
	cr_expect_eq(deliver(.type = "application/json").status, 415);
	cr_expect_eq(deliver(.type = "text/html").status, 415);
	for (size_t i = 0; i < COUNT(malformed); i++)
		cr_expect_eq(
		    deliver(.body = malformed[i], .is_unsigned = true).status,
		    400, "%s", malformed[i]);
	cr_expect_eq(deliver(.path = "/users/nobody/inbox").status, 404);
	cr_expect_eq(test_peer_count(site.luna, NULL), 0);
	cr_expect_eq(deliver(.type = "application/ld+json; profile=\"https://"
				     "www.w3.org/ns/activitystreams\"")
			 .status,
	    202);
	cr_expect_eq(inbox_number(&site, TAKEN), 1);
}

Test(inbox, an_activity_of_another_server_than_its_actor_is_refused)
{
	const char *body = arena_printf(site.arena,
	    "{\"id\":\"https://other.example/1\",\"type\":\"Create\","
	    "\"actor\":\"%s\",\"object\":{}}",
	    site.bob);

	cr_expect_eq(deliver(.body = body).status, 401);
	cr_expect_eq(fetches(), 0);
}

Test(inbox, somebody_of_the_same_server_cannot_speak_for_another)
{
	const struct key_pair eve = key_pair_fresh(site.arena);
	const char *key_id =
	    arena_printf(site.arena, "%s/users/eve#main-key", site.origin);

	inbox_shows_actor(&site, "eve", &eve);
	cr_expect_eq(deliver(.key = &eve, .key_id = key_id).status, 401);
	cr_expect_eq(inbox_number(&site, TAKEN), 0);
}

Test(inbox, a_repeat_is_202_and_stored_once)
{
	const char *body = inbox_activity(&site, "1", "Create", "{}");
	const char *taken = "SELECT count(*) AS n FROM fediverse_receive()";

	for (int i = 0; i < 3; i++)
		cr_expect_eq(
		    deliver(.body = body, .path = "/users/alice/inbox").status,
		    202);
	cr_expect_eq(inbox_number(&site, TAKEN), 1);
	cr_expect_eq(inbox_number(&site, taken), 1);
	/* For somebody else it is news. */
	cr_assert_eq(test_post(site.arena, site.world->node->port,
			 "/api/fediverse/actors", site.world->token,
			 "{\"username\":\"carol\"}")
			 .status,
	    201);
	cr_expect_eq(
	    deliver(.body = body, .path = "/users/carol/inbox").status, 202);
	cr_expect_eq(
	    deliver(.body = body, .path = "/users/alice/inbox").status, 202);
	cr_expect_eq(inbox_number(&site, taken), 1);
	cr_expect_eq(inbox_number(&site, taken), 0);
	cr_expect_eq(inbox_number(&site,
			 "SELECT cardinality(actor_ids)::bigint AS n"
			 " FROM fediverse_inbound"),
	    2);
}

Test(inbox, a_rotated_key_is_fetched_once_and_believed)
{
	const struct key_pair fresh = key_pair_fresh(site.arena);
	const struct key_pair other = key_pair_fresh(site.arena);

	cr_assert_eq(deliver(.path = NULL).status, 202);
	inbox_shows_actor(&site, "bob", &fresh);
	cr_expect_eq(deliver(.key = &fresh).status, 202);
	cr_expect_eq(fetches(), 2);
	cr_expect_eq(deliver(.path = NULL).status, 401, "the old key");
	cr_expect_eq(deliver(.key = &other).status, 401);
	cr_expect_eq(deliver(.key = &other).status, 401);
	cr_expect_eq(fetches(), 2, "not again so soon");
	cr_expect_eq(deliver(.key = &fresh).status, 202);
	world_sql(site.world,
	    "UPDATE fediverse_keys SET refetched_at = now() - interval '6 "
	    "min'");
	cr_expect_eq(deliver(.key = &other).status, 401);
	cr_expect_eq(fetches(), 3);
}

Test(inbox, an_old_key_is_looked_after_and_serves_when_that_fails)
{
	static const struct test_peer_answer down = { .status = 503,
		.body = "{}" };

	cr_assert_eq(deliver(.path = NULL).status, 202);
	world_sql(site.world,
	    "UPDATE fediverse_keys SET fetched_at = now() - interval '25 h'");
	cr_expect_eq(deliver(.path = NULL).status, 202);
	cr_expect_eq(fetches(), 2);
	world_sql(site.world,
	    "UPDATE fediverse_keys SET fetched_at = now() - interval '25 h'");
	inbox_shows(&site, "/users/bob", &down);
	cr_expect_eq(deliver(.path = NULL).status, 202);
	cr_expect_eq(deliver(.path = NULL).status, 202);
	cr_expect_eq(fetches(), 3);
}

Test(inbox, a_key_that_cannot_be_had_now_is_503_and_left_alone)
{
	static const struct {
		struct test_peer_answer answer;
		int status;
	} rows[] = {
		{ { .status = 500, .body = "{}" }, 503 },
		{ { .status = 429, .body = "{}" }, 503 },
		{ { .status = 0 }, 503 },
		{ { .status = 404, .body = "{}" }, 401 },
		{ { .status = 410, .body = "{}" }, 401 },
		{ { .status = 301, .body = "{}" }, 401 },
		{ { .status = 200, .body = "{}" }, 401 },
		{ { .status = 200,
		      .body = "<html>",
		      .content_type = "application/activity+json" },
		    401 },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		size_t before = fetches();
		struct test_reply reply;

		inbox_shows(&site, "/users/bob", &rows[i].answer);
		reply = deliver(.path = NULL);
		cr_expect_eq(
		    reply.status, rows[i].status, "%zu: %d", i, reply.status);
		if (rows[i].status == 503)
			cr_expect(
			    test_header(site.arena, &reply, "retry-after"));
		cr_expect_eq(deliver(.path = NULL).status, rows[i].status);
		cr_expect_eq(fetches(), before + 1, "%zu", i);
		world_sql(site.world, "DELETE FROM fediverse_keys");
	}
	inbox_shows_actor(&site, "bob", NULL);
	cr_expect_eq(deliver(.path = NULL).status, 202);
}

Test(inbox, a_document_counts_only_for_itself_and_by_its_media_type)
{
	const char *good = inbox_actor(&site, "bob", NULL);
	const char *eve = inbox_actor(&site, "eve", NULL);
	const struct {
		const char *what;
		const char *type;
		const char *body;
		int status;
	} rows[] = {
		{ "an upload", "application/json", good, 401 },
		{ "a page", "text/html", good, 401 },
		{ "somebody else's", "application/activity+json", eve, 401 },
		{ "another's key", "application/activity+json",
		    arena_printf(site.arena,
			"{\"id\":\"%s\",\"publicKey\":{\"id\":\"%s#main-key\","
			"\"owner\":\"https://other.example/b\","
			"\"publicKeyPem\":\"x\"}}",
			site.bob, site.bob),
		    401 },
		{ "no key at all", "application/activity+json",
		    arena_printf(site.arena,
			"{\"id\":\"%s\",\"publicKey\":{\"id\":\"%s#main-key\","
			"\"owner\":\"%s\",\"publicKeyPem\":\"x\"}}",
			site.bob, site.bob, site.bob),
		    401 },
		{ "ld+json", "application/ld+json", good, 202 },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		inbox_shows(&site, "/users/bob",
		    &(const struct test_peer_answer){ .status = 200,
			.content_type = rows[i].type,
			.body = rows[i].body });
		cr_expect_eq(deliver(.path = NULL).status, rows[i].status, "%s",
		    rows[i].what);
		world_sql(site.world, "DELETE FROM fediverse_keys");
	}
}

Test(inbox, the_question_for_a_key_is_signed_by_the_instance)
{
	struct test_peer_request got;
	struct test_reply reply;
	struct sig_claims claims;
	struct http_header headers[4];
	struct sig_message message = { .method = "GET",
		.scheme = "http",
		.target = "/users/bob",
		.headers = headers };
	static const char *const names[] = { "host", "date", "signature" };
	struct pkey *key;
	struct err err = { 0 };

	cr_assert_eq(deliver(.path = NULL).status, 202);
	got = test_peer_nth(site.luna, "/users/bob", 0);
	for (size_t i = 0; i < COUNT(names); i++)
		headers[message.header_count++] =
		    (struct http_header){ names[i],
			    test_peer_header(site.arena, &got, names[i]) };
	cr_expect(strstr(test_peer_header(site.arena, &got, "accept"),
	    "application/activity+json"));
	reply = test_get(site.arena, site.world->node->port, "/actor", NULL);
	cr_assert(
	    pkey_public(test_text(site.arena, &reply, "publicKey.publicKeyPem"),
		&key, &err));
	cr_assert(sig_read(site.arena, &message, clock_wall_ms() / 1000,
		      &claims, &err),
	    "%s", err.text);
	cr_expect_str_eq(claims.items[0].key_id,
	    test_text(site.arena, &reply, "publicKey.id"));
	cr_expect(sig_check(&claims.items[0], key, &err), "%s", err.text);
	pkey_free(&key);
}

Test(inbox, all_who_wait_for_a_key_are_served_by_one_question)
{
	const struct test_peer_answer slow = { .status = 200,
		.hold_ms = 1500,
		.content_type = "application/activity+json",
		.body = inbox_actor(&site, "bob", NULL) };

	test_get(site.arena, site.world->node->port, "/actor", NULL);
	inbox_shows(&site, "/users/bob", &slow);
	world_sql(site.world,
	    "INSERT INTO s2s_requests (kind, origin, body, deadline)"
	    " VALUES ('actor', '%s', convert_to('%s', 'UTF8'),"
	    " now() + interval '8 s')",
	    site.origin, site.bob);
	cr_assert(test_peer_got(site.luna, "/users/bob", 1, WAIT_MS));
	cr_assert_eq(deliver(.path = NULL).status, 202);
	cr_expect_eq(fetches(), 1);
	cr_expect_eq(inbox_number(&site,
			 "SELECT count(*) AS n FROM s2s_requests"
			 " WHERE kind = 'actor'"),
	    1);
}

Test(inbox, keys_of_one_server_are_not_fetched_without_end)
{
	struct test_reply reply;

	world_sql(site.world,
	    "INSERT INTO fediverse_fetches VALUES ('%s', now(), 60)",
	    site.origin);
	reply = deliver(.path = NULL);
	cr_expect_eq(reply.status, 429);
	cr_expect(test_header(site.arena, &reply, "retry-after"));
	cr_expect_eq(fetches(), 0);
	world_sql(site.world,
	    "UPDATE fediverse_fetches SET since = now() - interval '61 s'");
	cr_expect_eq(deliver(.path = NULL).status, 202);
}

Test(inbox, it_is_404_while_the_setting_is_off_and_410_for_the_deleted)
{
	cr_assert_eq(test_delete(site.arena, site.world->node->port,
			 printed("/api/fediverse/actors/%s", site.alice_id),
			 site.world->token)
			 .status,
	    200);
	cr_expect_eq(deliver(.path = "/users/alice/inbox").status, 410);
	world_sql(site.world, "UPDATE instance_settings SET fediverse = false");
	cr_expect_eq(deliver(.path = NULL).status, 404);
	cr_expect_eq(deliver(.path = "/users/alice/inbox").status, 404);
	cr_expect_eq(inbox_number(&site, TAKEN), 0);
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

Test(inbox, addresses_inside_are_never_asked)
{
	static const char *const guarded[] = { "allow_private_addresses=off",
		NULL };
	static const struct {
		const char *host;
		int status;
	} rows[] = {
		{ "http://127.0.0.1", 401 },
		{ "http://[::1]", 401 },
		{ "http://luna.localhost", 401 },
		{ "https://127.0.0.1", 401 },
		{ "https://10.0.0.1", 401 },
		{ "https://[::ffff:127.0.0.1]", 400 },
		{ "http://10.0.0.1", 400 },
		{ "http://example.com", 400 },
		{ "https://u:p@luna.localhost", 400 },
		{ "ftp://luna.localhost", 400 },
		{ "file://", 400 },
	};

	cr_assert_eq(test_daemon_stop(site.world->outboxd), 0);
	site.world->outboxd = test_outboxd(site.world->node, guarded);
	for (size_t i = 0; i < COUNT(rows); i++) {
		int status = deliver_from(arena_printf(site.arena, "%s:%d",
		    rows[i].host, test_peer_port(site.luna)));

		cr_expect_eq(
		    status, rows[i].status, "%s: %d", rows[i].host, status);
	}
	cr_expect_eq(test_peer_count(site.luna, NULL), 0);
	cr_expect_eq(inbox_number(&site, TAKEN), 0);
}

/* A server that we had given up, and one that we never sent to. */
Test(inbox, a_verified_request_revives_its_domain_and_a_forged_one_does_not)
{
	const char *domain = strstr(site.origin, "://") + 3;
	const char *db = site.world->node->database;
	const char *state =
	    "SELECT state || ' ' || coalesce(style, 'unknown') AS t"
	    " FROM fediverse_domains";

	cr_assert_eq(deliver(.style = SIG_RFC9421).status, 202);
	cr_expect_eq(
	    inbox_number(&site, "SELECT count(*) AS n FROM fediverse_domains"),
	    0);
	world_sql(site.world,
	    "INSERT INTO fediverse_domains (domain, state, gone, failure_days)"
	    " VALUES ('%s', 'dead', true, 7)",
	    domain);
	cr_expect_eq(deliver(.style = SIG_RFC9421, .age_s = 7200).status, 401);
	cr_expect_str_eq(test_db_text(site.arena, db, state), "dead unknown");
	cr_assert_eq(deliver(.style = SIG_CAVAGE).status, 202);
	cr_expect_str_eq(test_db_text(site.arena, db, state), "closed unknown");
	cr_assert_eq(deliver(.style = SIG_RFC9421).status, 202);
	cr_expect_str_eq(test_db_text(site.arena, db, state), "closed rfc9421");
}

Test(inbox, strangers_do_not_fill_the_room_of_those_who_wait)
{
	struct test_reply reply;

	cr_assert_eq(test_daemon_stop(site.world->outboxd), 0);
	world_sql(site.world,
	    "INSERT INTO s2s_requests (kind, origin, body, deadline)"
	    " SELECT 'actor', 'https://h' || n || '.example', '',"
	    " now() + interval '1 min' FROM generate_series(1, 200) n");
	reply = deliver(.path = NULL);
	cr_expect_eq(reply.status, 503);
	cr_expect(test_header(site.arena, &reply, "retry-after"));
	cr_expect_eq(inbox_number(&site,
			 "SELECT count(*) AS n FROM"
			 " s2s_requests"),
	    200);
}

Test(inbox, deliveries_of_an_address_have_a_rate_of_their_own)
{
	static const char *const limits[] = { "rate_limits=on", NULL };
	struct test_reply reply;
	int refused = 0;

	inbox_site_end(&site);
	inbox_site_begin(&site, limits);
	for (int i = 0; i < 600; i++)
		refused +=
		    deliver(.is_unsigned = true, .body = "{}").status == 400;
	cr_expect_eq(refused, 600);
	reply = deliver(.is_unsigned = true, .body = "{}");
	cr_expect_eq(reply.status, 429);
	cr_expect(test_header(site.arena, &reply, "retry-after"));
	cr_expect_eq(
	    test_get(site.arena, site.world->node->port, "/actor", NULL).status,
	    200);
}
