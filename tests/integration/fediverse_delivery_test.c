/*
 * What an inbox gets, and what its answers do to a row: a real outboxd and
 * receivers on loopback.
 */
#include <criterion/criterion.h>
#include <sys/stat.h>

#include "common/base/clock.h"
#include "common/crypto/sign.h"
#include "tests/integration/fediverse_site.h"

static struct fediverse_site site;
static struct arena *arena;
static struct test_peer *receiver;
static struct test_daemon *outboxd;

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
	if (outboxd)
		cr_expect_eq(test_daemon_stop(outboxd), 0);
	test_peer_free(&receiver);
	fediverse_site_end(&site);
}

TestSuite(fediverse_delivery, .init = begin, .fini = end, .timeout = 120);

#define PENDING "status = 'pending' AND attempts = 1"

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

static const char *domain_column(const char *column)
{
	return test_db_text(arena, site.db,
	    arena_printf(arena,
		"SELECT coalesce((%s)::text, '') AS t FROM fediverse_domains",
		column));
}

Test(fediverse_delivery, an_activity_arrives_signed_and_as_it_was_written)
{
	const char *id = owe("a1", INBOX);
	struct test_peer_request got;
	enum sig_style style = SIG_RFC9421;

	expect(id, "status = 'delivered'");
	cr_assert_eq(test_peer_count(receiver, NULL), 1);
	got = test_peer_nth(receiver, INBOX, 0);
	cr_expect_str_eq(got.method, "POST");
	cr_expect_str_eq(got.body.data, "{\"id\":\"a1\",\"type\":\"Create\"}");
	cr_expect_str_eq(test_peer_header(arena, &got, "content-type"),
	    "application/activity+json");
	cr_expect_str_eq(test_peer_header(arena, &got, "host"),
	    arena_printf(arena, "far.localhost:%d", test_peer_port(receiver)));
	cr_expect(strstr(test_peer_header(arena, &got, "user-agent"),
	    arena_printf(arena, "(+%s/)", site.node->origin)));
	cr_expect_null(fediverse_unsigned(&site, &got, &style));
	cr_expect_eq(style, SIG_CAVAGE);
	cr_expect(strstr(test_peer_header(arena, &got, "signature"),
	    arena_printf(arena, "%s/users/alice#main-key", site.node->origin)));
	cr_expect_str_eq(fediverse_row(&site, id, "attempts"), "1");
	cr_expect_str_neq(fediverse_row(&site, id, "delivered_at"), "");
}

/* Two requests are one attempt, and the second time it is known. */
Test(fediverse_delivery, who_takes_only_the_rfc_is_known_afterwards)
{
	struct test_peer_request third;
	enum sig_style style = SIG_CAVAGE;

	expect(owe("a1", "/only/rfc9421"),
	    "status = 'delivered' AND attempts = 1");
	cr_expect_eq(test_peer_count(receiver, NULL), 2);
	cr_expect_str_eq(domain_column("style"), "rfc9421");
	expect(owe("a2", "/only/rfc9421"), "status = 'delivered'");
	cr_assert_eq(test_peer_count(receiver, NULL), 3);
	third = test_peer_nth(receiver, NULL, 2);
	cr_expect_null(fediverse_unsigned(&site, &third, &style));
	cr_expect_eq(style, SIG_RFC9421);
}

Test(fediverse_delivery, who_takes_only_the_draft_gets_it_whatever_is_first)
{
	struct test_peer_request first;
	struct test_peer_request second;
	enum sig_style style = SIG_CAVAGE;

	test_db_script(site.db,
	    "UPDATE instance_settings SET fediverse_first_style = 'rfc9421'");
	expect(owe("a1", "/only/cavage"), "status = 'delivered'");
	cr_assert_eq(test_peer_count(receiver, NULL), 2);
	first = test_peer_nth(receiver, NULL, 0);
	second = test_peer_nth(receiver, NULL, 1);
	cr_expect_null(fediverse_unsigned(&site, &first, &style));
	cr_expect_eq(style, SIG_RFC9421);
	cr_expect_null(fediverse_unsigned(&site, &second, &style));
	cr_expect_eq(style, SIG_CAVAGE);
	cr_expect_str_eq(domain_column("style"), "cavage");
}

/* What was remembered and fails in both styles is forgotten. */
Test(fediverse_delivery, a_memory_that_misleads_is_forgotten)
{
	expect(owe("a1", "/only/rfc9421"), "status = 'delivered'");
	expect(owe("a2", "/code/401"), PENDING);
	cr_expect_str_eq(domain_column("style"), "");
}

struct answer_row {
	const char *path;
	const char *becomes;
	size_t requests; /* 0: it depends */
};

/* clang-format off */
static const struct answer_row answers[] = {
	{ "/code/200", "status = 'delivered'", 1 },
	{ "/code/202", "status = 'delivered'", 1 },
	{ "/code/400", "status = 'failed' AND last_error = '400: it is  not so'", 2 },
	{ "/code/401", PENDING " AND unauthorized = 1", 2 },
	{ "/code/403", "status = 'failed'", 1 },
	{ "/code/404", "status = 'failed'", 1 },
	{ "/code/408", PENDING, 1 },
	{ "/code/410", "status = 'failed'", 1 },
	{ "/code/413", "status = 'failed'", 1 },
	{ "/code/422", "status = 'failed'", 1 },
	{ "/code/429", PENDING, 1 },
	{ "/code/500", PENDING, 1 },
	{ "/code/501", "status = 'failed'", 1 },
	{ "/code/503", PENDING, 1 },
	{ "/cut",      PENDING, 0 }, /* once more on a fresh connection */
	{ "/endless/200", "status = 'delivered'", 1 },
	{ "/endless/500", PENDING, 1 },
	{ "/endless/410", "status = 'failed'", 1 },
	{ "/to/307/elsewhere", "status = 'delivered'", 1 },
	{ "/to/301/elsewhere", "status = 'delivered'", 1 },
	{ "/to/302/elsewhere", "status = 'delivered'", 1 },
	{ "/to/308/elsewhere", "status = 'delivered'", 1 },
	{ "/to/307http://far.localhost:25/x", "status = 'failed' AND attempts = 1 AND last_error = 'the port is none of an inbox'", 1 },
	{ "/to/307ftp://far.localhost/x", "status = 'failed' AND last_error = '307: redirected to no http(s) URL'", 1 },
	{ "/to/303/elsewhere", "status = 'failed' AND last_error = '303: redirected not followed'", 1 },
	{ "/to/307", "status = 'failed' AND last_error = '307: redirected it says not where to'", 1 },
	{ "/to/302/to/307", "status = 'failed'", 1 },
	{ "/hop/3",    "status = 'delivered'", 1 },
	{ "/hop/4",    "status = 'failed' AND last_error = '307: redirected too often'", 1 },
};
/* clang-format on */

/* Nobody's failures shall hold up the next row: each has a fresh domain. */
Test(fediverse_delivery, each_answer_has_its_consequence)
{
	for (size_t i = 0; i < COUNT(answers); i++) {
		const char *id =
		    owe(arena_printf(arena, "a%zu", i), answers[i].path);

		cr_expect(fediverse_becomes(&site, id, answers[i].becomes),
		    "%s: %s %s", answers[i].path,
		    fediverse_row(&site, id, "status"),
		    fediverse_row(&site, id, "last_error"));
		cr_expect(!answers[i].requests ||
			test_peer_count(receiver, answers[i].path) ==
			    answers[i].requests,
		    "%s", answers[i].path);
		cr_expect(fediverse_until(&site,
		    "NOT EXISTS (SELECT FROM fediverse_domains WHERE "
		    "lease_worker IS NOT NULL)",
		    FEDIVERSE_SOON_MS));
		test_db_script(site.db, "DELETE FROM fediverse_domains");
	}
}

Test(fediverse_delivery, a_circle_of_redirects_ends)
{
	expect(owe("a1", "/circle"),
	    "status = 'failed' AND last_error = '308: redirected in a circle'");
	cr_expect_eq(test_peer_count(receiver, NULL), 1);
}

/* Each hop is signed for itself; the other host's answer is this row's. */
Test(fediverse_delivery, a_redirect_to_another_host_is_signed_anew)
{
	struct test_peer *other = fediverse_receiver("other.localhost");
	struct test_peer_request got;
	enum sig_style style;
	const char *id;

	/* As a script would: the Location is a whole URL. */
	id = owe("a1",
	    arena_printf(
		arena, "/to/308%s", fediverse_inbox(&site, other, "/moved")));
	expect(id, "status = 'delivered'");
	cr_assert_eq(test_peer_count(other, "/moved"), 1);
	got = test_peer_nth(other, "/moved", 0);
	cr_expect_str_eq(got.method, "POST");
	cr_expect_null(fediverse_unsigned(&site, &got, &style));
	cr_expect_str_eq(domain_column("style"), "", "not the other's");
	test_peer_free(&other);
}

Test(fediverse_delivery, the_fourth_401_is_the_last)
{
	const char *id = owe("a1", "/code/401");

	for (int i = 1; i <= 3; i++) {
		expect(id,
		    arena_printf(
			arena, "status = 'pending' AND unauthorized = %d", i));
		fediverse_now(&site);
	}
	expect(id, "status = 'failed' AND attempts = 4");
}

/* The whole domain waits, and the row at least as long as it was told. */
Test(fediverse_delivery, a_retry_after_holds_the_domain)
{
	const char *id = owe("a1", "/busy/429");
	const char *second;

	expect(id, PENDING " AND next_retry_at > now() + interval '110 min'");
	second = owe("a2", INBOX);
	cr_expect_str_eq(
	    domain_column("not_before > now() + interval '110 min' AND state "
			  "= 'closed' AND failures = 0"),
	    "true");
	fediverse_now(&site);
	expect(second, "status = 'delivered'");
	cr_expect_eq(test_peer_count(receiver, "/busy/429"), 2);
}

Test(fediverse_delivery, a_webhook_is_signed_with_the_shared_secret)
{
	const char *file = arena_printf(arena, "%s/hook", site.node->dir);
	const char *settings[] = {
		arena_printf(arena, "webhook_secret_file=%s", file), NULL
	};
	FILE *out = fopen(file, "w");
	struct test_peer_request got;
	const char *id;

	cr_assert(out && fputs("s3cret\n", out) > 0 && !fclose(out));
	cr_assert(!chmod(file, 0600));
	expect(fediverse_owe_as(&site, "a0",
		   fediverse_inbox(&site, receiver, "/hook"), "webhook", false),
	    "status = 'failed' AND attempts = 0");
	cr_expect_eq(test_daemon_stop(outboxd), 0);
	outboxd = test_outboxd(site.node, settings);
	id = fediverse_owe_as(&site, "a1",
	    fediverse_inbox(&site, receiver, "/hook"), "webhook", false);
	expect(id, "status = 'delivered'");
	got = test_peer_nth(receiver, "/hook", 0);
	cr_expect_str_eq(
	    test_peer_header(arena, &got, "x-postrider-delivery"), id);
	cr_expect(sign_verify("s3cret",
	    test_peer_header(arena, &got, "x-postrider-timestamp"), NULL,
	    got.body, test_peer_header(arena, &got, "x-postrider-signature")));
}

Test(fediverse_delivery, a_way_is_chosen_by_row_or_by_setting)
{
	expect(fediverse_owe_as(&site, "a1",
		   fediverse_inbox(&site, receiver, "/x"), "pigeon", false),
	    "status = 'failed' AND last_error = 'no such transport'");
	test_db_script(site.db,
	    "UPDATE instance_settings SET fediverse_transport = 'noop'");
	expect(owe("a2", "/x"), "status = 'delivered'");
	cr_expect_eq(test_peer_count(receiver, NULL), 0);
	expect(
	    fediverse_owe_as(&site, "a3",
		fediverse_inbox(&site, receiver, "/x"), "http_signed", false),
	    "status = 'delivered'");
	cr_expect_eq(test_peer_count(receiver, NULL), 1);
}

/* No connection is made, and the server is not blamed. */
Test(fediverse_delivery, private_addresses_are_refused)
{
	static const char *const settings[] = { "allow_private_addresses=off",
		NULL };
	static const char *const inboxes[] = { "http://127.0.0.1:%d/",
		"https://127.0.0.1:%d/", "https://far.localhost:%d/",
		"https://[::1]:%d/", "https://169.254.169.254/latest",
		"https://10.0.0.1:%d/", "https://far.example:25/",
		"http://far.example/" };

	cr_expect_eq(test_daemon_stop(outboxd), 0);
	outboxd = test_outboxd(site.node, settings);
	for (size_t i = 0; i < COUNT(inboxes); i++) {
		const char *inbox = arena_printf(arena, "%.*s%d%s",
		    (int)(strstr(inboxes[i], "%d")
			    ? strstr(inboxes[i], "%d") - inboxes[i]
			    : 0),
		    inboxes[i], test_peer_port(receiver), "/");

		if (!strstr(inboxes[i], "%d"))
			inbox = inboxes[i];
		expect(
		    fediverse_owe(&site, arena_printf(arena, "a%zu", i), inbox),
		    "status = 'failed' AND attempts = 0");
	}
	cr_expect_eq(test_peer_count(receiver, NULL), 0);
	cr_expect_eq(test_db_number(site.db,
			 "SELECT count(*) AS n FROM fediverse_domains "
			 "WHERE failures > 0"),
	    0);
}

/* A row of a deleted actor is dropped, its own Delete still goes out. */
Test(fediverse_delivery, a_deleted_actor_sends_only_its_last_words)
{
	const char *last;

	cr_expect_eq(test_daemon_stop(outboxd), 0);
	test_db_script(site.db,
	    arena_printf(arena,
		"SELECT fediverse_enqueue('a' || n, '{\"type\":\"Create\"}', "
		"'%s/' || n, '%s') FROM generate_series(1, 100) n;"
		"UPDATE fediverse_actors SET deleted_at = now()",
		fediverse_inbox(&site, receiver, "/users"), site.actor.id));
	last = test_db_text(arena, site.db,
	    arena_printf(arena,
		"SELECT id::text AS t FROM fediverse_enqueue('d', "
		"'{\"type\":\"Delete\"}', '%s', '%s')",
		fediverse_inbox(&site, receiver, INBOX), site.actor.id));
	outboxd = fediverse_outboxd(&site);
	expect(last, "status = 'delivered'");
	cr_expect(fediverse_until(&site,
	    "(SELECT count(*) = 100 FROM fediverse_outbound_queue WHERE "
	    "status = 'failed' AND last_error = 'its actor is deleted')",
	    FEDIVERSE_SOON_MS));
	cr_expect_eq(test_peer_count(receiver, NULL), 1);
}

/* Who does not take them has forgotten its key, and gets no other one. */
Test(fediverse_delivery, last_words_that_are_not_believed_are_not_repeated)
{
	const char *last = test_db_text(arena, site.db,
	    arena_printf(arena,
		"SELECT id::text AS t FROM fediverse_enqueue('d', "
		"'{\"type\":\"Delete\"}', '%s', '%s')",
		fediverse_inbox(&site, receiver, "/code/401"), site.actor.id));

	expect(last, PENDING);
	test_db_script(
	    site.db, "UPDATE fediverse_actors SET deleted_at = now()");
	fediverse_now(&site);
	expect(last, "status = 'failed' AND attempts = 2");
}

/* Written past the function, by whoever may. */
Test(fediverse_delivery, rows_that_make_no_sense_stop_nobody)
{
	test_db_script(site.db,
	    arena_printf(arena,
		"INSERT INTO fediverse_actors (id, username, public_key_pem, "
		"private_key, deleted_at) VALUES "
		"('11111111-1111-1111-1111-111111111111', 'gone', '', '', "
		"now()),"
		"('22222222-2222-2222-2222-222222222222', 'odd', '', 'x', "
		"NULL);"
		"INSERT INTO fediverse_outbound_queue (activity_id, "
		"payload_json, target_inbox, target_domain, actor_user_id) "
		"SELECT 'n' || n, 'no json', 'no inbox', 'far.localhost:%d',"
		" actor::uuid FROM unnest(ARRAY["
		"'11111111-1111-1111-1111-111111111111', NULL, "
		"'22222222-2222-2222-2222-222222222222', '%s']) "
		"WITH ORDINALITY AS a (actor, n)",
		test_peer_port(receiver), site.actor.id));
	expect(owe("a1", INBOX), "status = 'delivered'");
	cr_expect(fediverse_until(&site,
	    "(SELECT count(*) = 4 FROM fediverse_outbound_queue "
	    "WHERE status = 'failed' AND attempts = 0)",
	    FEDIVERSE_SOON_MS));
	cr_expect_not(fediverse_until(&site,
	    "EXISTS (SELECT FROM fediverse_domains WHERE failures > 0)", 0));
}

Test(fediverse_delivery, a_row_without_an_actor_cannot_be_signed)
{
	const char *id = test_db_text(arena, site.db,
	    arena_printf(arena,
		"SELECT id::text AS t FROM fediverse_enqueue('a', '{}', '%s')",
		fediverse_inbox(&site, receiver, INBOX)));

	expect(id, "status = 'failed' AND attempts = 0");
}

/* The database does not know who we are; whoever would send it does. */
Test(fediverse_delivery, our_own_inbox_is_not_written_to)
{
	expect(
	    fediverse_owe(&site, "a1",
		arena_printf(arena, "%s/users/alice/inbox", site.node->origin)),
	    "status = 'failed' AND attempts = 0 AND "
	    "last_error = 'the inbox is our own'");
}

/* The next delivery carries the new key's signature. */
Test(fediverse_delivery, a_rotated_key_is_used_at_once)
{
	struct tx *tx = NULL;
	struct test_peer_request got;
	enum sig_style style;
	struct err err = { 0 };

	expect(owe("a1", INBOX), "status = 'delivered'");
	tx = tx_new(site.conn, arena);
	cr_assert(actor_rotate(tx, site.key, &site.actor, &err) &&
	    tx_commit(tx, &err));
	tx_end(&tx);
	expect(owe("a2", INBOX), "status = 'delivered'");
	got = test_peer_nth(receiver, INBOX, 1);
	cr_expect_str_eq(
	    fediverse_unsigned(&site, &got, &style), "signature mismatch");
	pkey_free(&site.alice);
	cr_assert(pkey_public(site.actor.public_key_pem, &site.alice, &err));
	cr_expect_null(fediverse_unsigned(&site, &got, &style));
}

Test(fediverse_delivery, a_gone_inbox_gets_nothing_more)
{
	const char *later;

	test_db_script(site.db,
	    arena_printf(arena,
		"INSERT INTO fediverse_followers (actor_id, follower, inbox, "
		"follow_id) VALUES ('%s', 'x', '%s', '1'), ('%s', 'y', '%s', "
		"'2')",
		site.actor.id, fediverse_inbox(&site, receiver, "/code/410"),
		site.actor.id, fediverse_inbox(&site, receiver, INBOX)));
	expect(owe("a1", "/code/410"), "status = 'failed'");
	cr_expect(fediverse_until(&site,
	    "(SELECT string_agg(follower, '') FROM fediverse_followers) = 'y'",
	    FEDIVERSE_SOON_MS));
	later = owe("a2", "/code/410");
	cr_expect_str_eq(fediverse_row(&site, later, "status"), "failed");
	expect(owe("a3", INBOX), "status = 'delivered'");
	cr_expect_eq(test_peer_count(receiver, "/code/410"), 1);
}

/* The tightest clocks in the field allow five minutes. */
Test(fediverse_delivery, each_attempt_is_signed_at_its_own_time)
{
	const char *id = owe("a1", "/code/503");
	struct test_peer_request first;
	struct test_peer_request second;
	enum sig_style style;

	expect(id, PENDING);
	cr_expect(fediverse_until(&site,
	    arena_printf(arena,
		"(SELECT now() - created_at > '1.1 s' FROM "
		"fediverse_outbound_queue WHERE id = '%s')",
		id),
	    FEDIVERSE_SOON_MS));
	fediverse_now(&site);
	expect(id, "attempts = 2");
	first = test_peer_nth(receiver, NULL, 0);
	second = test_peer_nth(receiver, NULL, 1);
	cr_expect_str_neq(test_peer_header(arena, &first, "date"),
	    test_peer_header(arena, &second, "date"));
	cr_expect_null(fediverse_unsigned(&site, &second, &style));
}

/* The wire has the name's other form, whichever was given. */
Test(fediverse_delivery, an_international_name_is_met_as_the_dns_has_it)
{
	AUTO(tx_end) struct tx *tx = tx_new(site.conn, arena);
	const struct enqueue_request request = {
		.activity_id = "a1",
		.payload_json = "{}",
		.target_inbox = arena_printf(arena, "http://FÄR.localhost:%d/i",
		    test_peer_port(receiver)),
		.actor_user_id = site.actor.id,
	};
	struct outbound_item item;
	struct test_peer_request got;
	enum sig_style style;
	struct err err = { 0 };

	cr_assert(outbound_enqueue(tx, &site.home, &request, &item, &err) &&
		tx_commit(tx, &err),
	    "%s", err.text);
	expect(item.id, "status = 'delivered'");
	got = test_peer_nth(receiver, "/i", 0);
	cr_expect_str_eq(test_peer_header(arena, &got, "host"),
	    arena_printf(
		arena, "xn--fr-via.localhost:%d", test_peer_port(receiver)));
	cr_expect_null(fediverse_unsigned(&site, &got, &style));
}

/* Whoever does not speak TLS where it should is not reached, for now. */
Test(fediverse_delivery, a_failed_tls_handshake_is_tried_again)
{
	expect(fediverse_owe(&site, "a1",
		   arena_printf(arena, "https://far.localhost:%d/inbox",
		       test_peer_port(receiver))),
	    PENDING);
	cr_expect_str_eq(domain_column("failures"), "1");
}

/* What waits for its time blocks nothing behind it. */
Test(fediverse_delivery, activities_of_an_inbox_begin_in_order)
{
	static const char *const one[] = { "activities_max=1", NULL };
	enum { ROWS = 12 };

	cr_expect_eq(test_daemon_stop(outboxd), 0);
	for (int i = 0; i < ROWS; i++)
		owe(arena_printf(arena, "a%02d", i), INBOX);
	test_db_script(site.db,
	    "UPDATE fediverse_outbound_queue SET attempts = 1, next_retry_at ="
	    " now() + interval '1 hour' WHERE activity_id = 'a00'");
	outboxd = test_outboxd(site.node, one);
	cr_assert(test_peer_got(receiver, INBOX, ROWS - 1, FEDIVERSE_SOON_MS));
	for (size_t i = 1; i < ROWS; i++)
		cr_expect(
		    strstr(test_peer_nth(receiver, INBOX, i - 1).body.data,
			arena_printf(arena, "\"a%02zu\"", i)),
		    "%zu", i);
}

/* An operator's word goes before what was learned, and before the setting. */
Test(fediverse_delivery, a_domain_may_have_a_first_style_of_its_own)
{
	enum sig_style style = SIG_CAVAGE;
	struct test_peer_request got;

	expect(owe("a1", "/only/cavage"), "status = 'delivered'");
	cr_expect_str_eq(domain_column("style"), "cavage");
	test_db_script(site.db,
	    "SELECT ops.domain_style(domain, 'rfc9421', 'they said so')"
	    " FROM fediverse_domains");
	expect(owe("a2", INBOX), "status = 'delivered'");
	got = test_peer_nth(receiver, INBOX, 0);
	cr_expect_null(fediverse_unsigned(&site, &got, &style));
	cr_expect_eq(style, SIG_RFC9421);
	test_db_script(site.db,
	    "SELECT ops.domain_style(domain, NULL) FROM fediverse_domains;"
	    "UPDATE fediverse_domains SET style_at = now() - interval '31 d'");
	expect(owe("a3", INBOX), "status = 'delivered'");
	got = test_peer_nth(receiver, INBOX, 1);
	cr_expect_null(fediverse_unsigned(&site, &got, &style));
	cr_expect_eq(style, SIG_CAVAGE, "what was learned is too old");
}

Test(fediverse_delivery, off_means_that_nothing_leaves)
{
	const char *id;

	test_db_script(
	    site.db, "UPDATE instance_settings SET fediverse = false");
	id = owe("a1", INBOX);
	/* It has looked since, and found nothing that it may send. */
	cr_expect(fediverse_until(&site,
	    "EXISTS (SELECT FROM pg_stat_activity WHERE query LIKE "
	    "'%RECURSIVE hop%' AND application_name LIKE 'outboxd/%' AND "
	    "query_start > (SELECT max(created_at) FROM "
	    "fediverse_outbound_queue))",
	    FEDIVERSE_SOON_MS));
	cr_expect_str_eq(fediverse_row(&site, id, "status"), "pending");
	cr_expect_eq(test_peer_count(receiver, NULL), 0);
	test_db_script(
	    site.db, "UPDATE instance_settings SET fediverse = true");
	expect(id, "status = 'delivered'");
}
