/*
 * What becomes of deliveries to servers that an operator blocked, that moved,
 * or that only seem to be down.
 */
#include <criterion/criterion.h>

#include "tests/integration/fediverse_site.h"

static struct fediverse_site site;
static struct arena *arena;
static struct test_peer *receiver;
static struct test_daemon *outboxd;

/* bob's server, which is told what his document says. */
struct old_home {
	struct test_peer *peer;
	const char *document;
};

static struct old_home old;

static void begin(void)
{
	test_db_needed();
	site = fediverse_site_begin();
	arena = site.arena;
	receiver = fediverse_receiver("far.localhost");
	outboxd = fediverse_outboxd(&site);
}

static void end(void)
{
	if (!site.node)
		return;
	cr_expect_eq(test_daemon_stop(outboxd), 0);
	test_peer_free(&receiver);
	test_peer_free(&old.peer);
	fediverse_site_end(&site);
}

TestSuite(fediverse_servers, .init = begin, .fini = end, .timeout = 120);

static const char *owe(const char *activity, const char *path)
{
	return fediverse_owe(
	    &site, activity, fediverse_inbox(&site, receiver, path));
}

static void expect(const char *id, const char *condition)
{
	cr_expect(fediverse_becomes(&site, id, condition), "not %s but %s, %s",
	    condition, fediverse_row(&site, id, "status"),
	    fediverse_row(&site, id, "last_error"));
}

static const char *one_text(const char *query)
{
	return test_db_text(arena, site.db, query);
}

/* ---- blocked ---- */

#define BLOCKED \
	"status = 'dead' AND attempts = 0 AND " \
	"last_error = 'the server is blocked'"

Test(fediverse_servers, nothing_goes_to_a_blocked_server_nor_below_it)
{
	const char *below = arena_printf(arena,
	    "http://x.y.far.localhost:%d/inbox", test_peer_port(receiver));
	struct test_peer *other = fediverse_receiver("notfar.localhost");

	test_db_script(
	    site.db, "SELECT ops.domain_block('Far.localhost', 'x')");
	expect(owe("a1", INBOX), BLOCKED);
	expect(fediverse_owe(&site, "a2", below), BLOCKED);
	expect(fediverse_owe(&site, "a3", fediverse_inbox(&site, other, INBOX)),
	    "status = 'delivered'");
	cr_expect_eq(test_peer_count(receiver, NULL), 0);
	test_db_script(site.db, "SELECT ops.domain_unblock('far.localhost')");
	expect(owe("a4", INBOX), "status = 'delivered'");
	test_peer_free(&other);
}

/* What waited dies at once, also what is held back for other reasons. */
Test(fediverse_servers, what_waits_for_a_server_dies_with_its_block)
{
	const char *waiting = owe("a1", "/busy/503");
	struct test_peer *other = fediverse_receiver("other.localhost");
	const char *elsewhere = fediverse_owe(
	    &site, "a2", fediverse_inbox(&site, other, "/busy/503"));

	expect(waiting, "status = 'pending' AND attempts = 1");
	expect(elsewhere, "status = 'pending' AND attempts = 1");
	cr_expect_str_eq(
	    one_text(
		"SELECT entries || ' ' || meaning AS t FROM"
		" ops.domain_block('far.localhost', 'x', dry_run => true)"),
	    "1 would be blocked; nothing was changed");
	cr_expect_str_eq(fediverse_row(&site, waiting, "status"), "pending");
	cr_expect_str_eq(one_text("SELECT entries::text AS t FROM"
				  " ops.domain_block('far.localhost', 'x')"),
	    "1");
	expect(waiting, "status = 'dead' AND last_error LIKE '%blocked'");
	cr_expect_str_eq(fediverse_row(&site, elsewhere, "status"), "pending");
	test_peer_free(&other);
}

/* Enqueued in a transaction that saw no block yet. */
Test(fediverse_servers, a_row_that_slips_past_a_block_is_buried)
{
	const char *id;

	test_db_script(site.db,
	    "SELECT ops.domain_block('far.localhost', 'x');"
	    "ALTER TABLE fediverse_outbound_queue DISABLE TRIGGER USER");
	id = test_db_text(arena, site.db,
	    arena_printf(arena,
		"INSERT INTO fediverse_outbound_queue (activity_id, "
		"payload_json, target_inbox, target_domain, actor_user_id) "
		"VALUES ('late', '{}', '%s', 'far.localhost:%d', '%s') "
		"RETURNING id::text AS t",
		fediverse_inbox(&site, receiver, INBOX),
		test_peer_port(receiver), site.actor.id));
	expect(id, BLOCKED);
	cr_expect_eq(test_peer_count(receiver, NULL), 0);
}

Test(fediverse_servers, a_redirect_does_not_lead_around_a_block)
{
	struct test_peer *other = fediverse_receiver("other.localhost");

	test_db_script(
	    site.db, "SELECT ops.domain_block('other.localhost', 'x')");
	expect(owe("a1",
		   arena_printf(arena, "/to/307%s",
		       fediverse_inbox(&site, other, "/moved"))),
	    "status = 'failed' AND last_error ="
	    " 'redirected to a server that is blocked'");
	cr_expect_eq(test_peer_count(other, NULL), 0);
	test_peer_free(&other);
}

Test(fediverse_servers, blocks_are_told_and_bound_what_is_replayed)
{
	const char *id = owe("a1", "/code/403");

	expect(id, "status = 'failed'");
	test_db_script(
	    site.db, "SELECT ops.domain_block('far.localhost', 'harassment')");
	cr_expect_str_eq(
	    one_text("SELECT string_agg(concat_ws('|', split_part(domain,"
		     " ':', 1), state, reason, meaning), E'\\n' ORDER BY"
		     " domain) AS t FROM ops.domains"),
	    "far.localhost|blocked|harassment|we have nothing to do with it "
	    "nor with hosts below it, says postgres; to end that: "
	    "ops.domain_unblock('far.localhost')\n"
	    "far.localhost|blocked|its host, or one above it, is blocked");
	test_db_script(site.db,
	    "SELECT ops.fediverse_replay(older_than => '0', why => 'x')");
	cr_expect_str_eq(fediverse_row(&site, id, "status"), "failed");
	cr_expect_str_eq(one_text("SELECT state || '|' || meaning AS t FROM"
				  " ops.domain_unblock('x.far.localhost')"),
	    "blocked|it is a host above it that is blocked");
	test_db_script(site.db, "SELECT ops.domain_unblock('far.localhost')");
	test_db_script(site.db,
	    "SELECT ops.fediverse_replay(older_than => '0', why => 'x')");
	expect(id, "status = 'failed' AND last_error LIKE '403%'");
	cr_expect_eq(test_peer_count(receiver, NULL), 2);
}

/* ---- our own network ---- */

static const char *at_host(const char *host, const char *path)
{
	return arena_printf(arena, "http://%s.localhost:%d%s", host,
	    test_peer_port(receiver), path);
}

static int64_t rows(const char *condition)
{
	return test_db_number(site.db,
	    arena_printf(arena,
		"SELECT count(*) AS n FROM fediverse_outbound_queue WHERE %s",
		condition));
}

/* Five that were well are silent at once: two failures count, then it is us.
 * Somebody who was never well says nothing either way. */
Test(fediverse_servers, when_nobody_answers_it_is_our_own_network)
{
	static const char *const hosts[] = { "h1", "h2", "h3", "h4", "h5" };
	const char *late;

	for (size_t i = 0; i < COUNT(hosts); i++)
		fediverse_owe(&site, arena_printf(arena, "a%zu", i),
		    at_host(hosts[i], INBOX));
	cr_expect(fediverse_until(&site,
	    "(SELECT count(*) = 5 FROM fediverse_domains WHERE last_success_at"
	    " IS NOT NULL AND lease_token IS NULL)",
	    FEDIVERSE_SOON_MS));
	for (size_t i = 0; i < COUNT(hosts); i++)
		fediverse_owe(&site, arena_printf(arena, "b%zu", i),
		    at_host(hosts[i], "/cut"));
	cr_expect(fediverse_until(&site,
	    "(SELECT count(*) = 5 FROM fediverse_outbound_queue"
	    " WHERE last_error IS NOT NULL)",
	    FEDIVERSE_SOON_MS));
	cr_expect_eq(rows("attempts = 1 AND status = 'pending'"), 2);
	cr_expect_eq(rows("attempts = 0 AND status = 'pending' AND last_error"
			  " LIKE 'our own network%' AND next_retry_at <"
			  " now() + interval '2 min'"),
	    3);
	cr_expect_eq(test_db_number(site.db,
			 "SELECT count(*) AS n FROM fediverse_domains"
			 " WHERE failures = 0 AND failure_days = 0 AND state ="
			 " 'closed' AND not_before > now() + interval '30 s'"),
	    3);
	late = fediverse_owe(&site, "c", at_host("new", "/cut"));
	expect(late, "status = 'pending' AND attempts = 0");
	/* Somebody answers: it was not us, or is no more. */
	expect(fediverse_owe(&site, "d", at_host("h6", INBOX)),
	    "status = 'delivered'");
	test_db_script(site.db,
	    "UPDATE fediverse_domains SET not_before = '-infinity' WHERE domain"
	    " LIKE 'new.%';"
	    "UPDATE fediverse_outbound_queue SET next_retry_at = now() WHERE"
	    " activity_id = 'c';"
	    "NOTIFY postrider_activity");
	expect(late, "status = 'pending' AND attempts = 1");
}

/* Three of which nothing was ever heard are just dead. */
Test(fediverse_servers, servers_that_never_answered_count_by_themselves)
{
	static const char *const hosts[] = { "d1", "d2", "d3", "d4", "d5" };

	for (size_t i = 0; i < COUNT(hosts); i++)
		fediverse_owe(&site, arena_printf(arena, "a%zu", i),
		    at_host(hosts[i], "/cut"));
	cr_expect(fediverse_until(&site,
	    "(SELECT count(*) = 5 FROM fediverse_outbound_queue"
	    " WHERE status = 'pending' AND attempts = 1)",
	    FEDIVERSE_SOON_MS));
}

/* ---- moved ---- */

static void old_home_answer(void *arg, struct arena *scratch UNUSED,
    const struct test_peer_request *request, struct test_peer_answer *answer)
{
	const struct old_home *home = arg;

	if (strcmp(request->method, "GET") == 0)
		*answer = (struct test_peer_answer){ .status = 200,
			.content_type = "application/activity+json",
			.body = home->document };
	else
		*answer = (struct test_peer_answer){ .status = 308,
			.headers = arena_printf(scratch,
			    "Location: http://far.localhost:%d%s\r\n",
			    test_peer_port(receiver), request->path),
			.body = "" };
}

static const char *at_old(const char *path)
{
	return fediverse_inbox(&site, old.peer, path);
}

/* bob and carol follow alice, and share an inbox. */
static void old_home_begin(void)
{
	AUTO(tx_end) struct tx *tx = NULL;
	struct err err = { 0 };

	old.peer = test_peer_new("old.localhost", old_home_answer, &old);
	test_db_script(site.db,
	    arena_printf(arena,
		"INSERT INTO fediverse_followers (actor_id, follower, inbox, "
		"shared_inbox, follow_id) "
		"SELECT '%s', '%s/users/' || n, '%s/users/' || n || '/inbox', "
		"'%s/inbox', n FROM unnest(ARRAY['bob', 'carol']) n",
		site.actor.id, test_peer_origin(old.peer),
		test_peer_origin(old.peer), test_peer_origin(old.peer)));
	tx = tx_new(site.conn, arena);
	cr_assert(actor_instance_make(tx, site.key, &site.home.origin,
		      &(struct actor){ 0 }, &err) &&
	    tx_commit(tx, &err));
}

static void bob_says(const char *inbox, const char *shared)
{
	old.document = arena_printf(arena,
	    "{\"id\":\"%s\",\"type\":\"Person\",\"inbox\":\"%s\","
	    "\"endpoints\":{\"sharedInbox\":\"%s\"}}",
	    at_old("/users/bob"), inbox, shared);
}

static const char *followers(void)
{
	return one_text("SELECT string_agg(concat_ws(' ', substring(follower "
			"FROM '[a-z]+$'),"
			" regexp_replace(inbox, ':[0-9]+', ''),"
			" regexp_replace(shared_inbox, ':[0-9]+', '')), ', ' "
			"ORDER BY follower)"
			" AS t FROM fediverse_followers");
}

static bool answered(void)
{
	return fediverse_until(&site,
	    "EXISTS (SELECT FROM s2s_requests WHERE kind = 'inbox' AND "
	    "answered_at IS NOT NULL)",
	    FEDIVERSE_SOON_MS);
}

/* The result is the old domain's, and so is the question. */
Test(fediverse_servers, whose_inbox_leads_elsewhere_is_asked_where_it_is)
{
	struct test_peer_request asked;

	old_home_begin();
	bob_says(fediverse_inbox(&site, receiver, "/users/bob/inbox"),
	    fediverse_inbox(&site, receiver, "/inbox"));
	expect(fediverse_owe(&site, "a1", at_old("/users/bob/inbox")),
	    "status = 'delivered' AND target_domain LIKE 'old.%'");
	cr_assert(answered());
	asked = test_peer_nth(old.peer, "/users/bob", 0);
	cr_expect(test_peer_header(arena, &asked, "signature"));
	cr_expect_str_eq(followers(),
	    "bob http://far.localhost/users/bob/inbox "
	    "http://far.localhost/inbox, "
	    "carol http://old.localhost/users/carol/inbox "
	    "http://old.localhost/inbox");
	cr_expect_str_eq(one_text("SELECT meaning AS t FROM ops.moved_inboxes"),
	    "followers have what its actor names; what is enqueued for the "
	    "old one follows the redirect");
	cr_expect_str_eq(
	    one_text("SELECT (names = leads_to AND actor LIKE '%/bob')::text"
		     " AS t FROM fediverse_moved_inboxes()"),
	    "true");
	/* Not for each delivery. */
	expect(fediverse_owe(&site, "a2", at_old("/users/bob/inbox")),
	    "status = 'delivered'");
	cr_expect_eq(test_peer_count(old.peer, "/users/bob"), 1);
}

/* One answer is for all of the server. */
Test(fediverse_servers, a_shared_inbox_that_moved_is_learned_for_all_followers)
{
	old_home_begin();
	bob_says(at_old("/users/bob/inbox"),
	    fediverse_inbox(&site, receiver, "/inbox"));
	expect(fediverse_owe_as(&site, "a1", at_old("/inbox"), NULL, true),
	    "status = 'delivered'");
	cr_assert(answered());
	cr_expect_str_eq(followers(),
	    "bob http://old.localhost/users/bob/inbox "
	    "http://far.localhost/inbox, "
	    "carol http://old.localhost/users/carol/inbox "
	    "http://far.localhost/inbox");
}

/* Only the server to which its own inbox leads is believed beside its own. */
Test(fediverse_servers, an_actor_cannot_name_the_inbox_of_a_third_server)
{
	const char *before;

	old_home_begin();
	before = followers();
	bob_says("https://victim.example/inbox", "https://victim.example/x");
	expect(fediverse_owe(&site, "a1", at_old("/users/bob/inbox")),
	    "status = 'delivered'");
	cr_assert(answered());
	cr_expect_str_eq(followers(), before);
	cr_expect_str_eq(one_text("SELECT coalesce(names, 'nothing') AS t"
				  " FROM fediverse_moved_inboxes()"),
	    "nothing");
}

/* Nobody of ours: told, not asked. A redirect at home is none of it. */
Test(fediverse_servers, an_inbox_of_nobody_we_know_is_only_told)
{
	old.peer = test_peer_new("old.localhost", old_home_answer, &old);
	expect(owe("a0", "/to/307/elsewhere"), "status = 'delivered'");
	cr_expect_eq(test_db_number(site.db,
			 "SELECT count(*) AS n FROM fediverse_moved_inboxes"),
	    0);
	expect(fediverse_owe(&site, "a1", at_old("/users/eve/inbox")),
	    "status = 'delivered'");
	cr_expect(fediverse_until(&site,
	    "EXISTS (SELECT FROM ops.moved_inboxes WHERE actor IS NULL)",
	    FEDIVERSE_SOON_MS));
	cr_expect_eq(
	    test_db_number(site.db, "SELECT count(*) AS n FROM s2s_requests"),
	    0);
}
