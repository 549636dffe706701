/*
 * Claims of domains that are owed activities, against the real database.
 */
#include <criterion/criterion.h>

#include <pthread.h>

#include "common/queue/lease.h"
#include "tests/integration/fediverse_site.h"

enum { WAIT_MS = 10000 };

static struct fediverse_site site;
static struct arena *arena;

static void begin(void)
{
	test_db_needed();
	site = fediverse_site_begin();
	arena = site.arena;
}

static void end(void)
{
	if (site.node)
		fediverse_site_end(&site);
}

TestSuite(fediverse_claim, .init = begin, .fini = end, .timeout = 60);

Test(fediverse_claim, domains_take_turns_whatever_they_have)
{
	AUTO(tx_end) struct tx *tx = tx_new(site.conn, arena);
	struct rows rows;
	struct err err = { 0 };

	test_db_script(site.db,
	    "SELECT fediverse_enqueue('d' || n, '{}', 'https://dead.example/' "
	    "|| n)"
	    " FROM generate_series(1, 500) n;"
	    "SELECT fediverse_enqueue('l' || n, '{}', 'https://l' || n || "
	    "'.example/')"
	    " FROM generate_series(1, 5) n");
	cr_assert(outbound_claim(tx, 4, 7, &rows, &err), "%s", err.text);
	cr_expect_eq(rows.count, 4);
	cr_assert(outbound_claim(tx, 4, 7, &rows, &err), "%s", err.text);
	cr_expect_eq(rows.count, 2, "all six are held now");
}

/* A server that is owed one activity needs no reading. */
Test(fediverse_claim, a_claim_brings_what_is_one)
{
	AUTO(tx_end) struct tx *tx = tx_new(site.conn, arena);
	const struct outbound_claimed *claimed;
	struct rows rows;
	struct err err = { 0 };

	test_db_script(site.db,
	    "SELECT fediverse_enqueue(a, '{\"x\":1}', i) FROM (VALUES"
	    " ('one', 'https://a.example/1'), ('two', 'https://b.example/1'),"
	    " ('two', 'https://b.example/2')) AS v (a, i)");
	cr_assert(outbound_claim(tx, 10, 7, &rows, &err), "%s", err.text);
	cr_assert_eq(rows.count, 2);
	claimed = rows.items;
	cr_expect_str_eq(claimed[0].lease.domain, "a.example");
	cr_assert(claimed[0].only);
	cr_expect_str_eq(claimed[0].only->activity_id, "one");
	cr_expect_str_eq(claimed[0].only->payload_json, "{\"x\":1}");
	cr_expect(claimed[0].domain.on);
	cr_expect_str_eq(claimed[1].lease.domain, "b.example");
	cr_expect_not(claimed[1].only);
}

/* Of a claim whose answer was lost. */
Test(fediverse_claim, what_a_worker_does_not_know_of_it_gives_back)
{
	AUTO(tx_end) struct tx *tx = tx_new(site.conn, arena);
	const char *known;
	struct rows rows;
	struct err err = { 0 };

	test_db_script(site.db,
	    "SELECT fediverse_enqueue('a', '{}', 'https://' || h || '.example')"
	    " FROM unnest(ARRAY['a', 'b']) AS h");
	cr_assert(outbound_claim(tx, 10, 7, &rows, &err), "%s", err.text);
	cr_assert_eq(rows.count, 2);
	known = ((const struct outbound_claimed *)rows.items)->lease.token;
	cr_assert(
	    lease_drop(tx, LEASE_DOMAINS, 7, &known, 1, &err), "%s", err.text);
	cr_assert(outbound_claim(tx, 10, 8, &rows, &err), "%s", err.text);
	cr_assert_eq(rows.count, 1);
	cr_expect_str_eq(
	    ((const struct outbound_claimed *)rows.items)->lease.domain,
	    "b.example");
}

/* ---- a claim that has to wait ---- */

struct claimer {
	pthread_t thread;
	struct tx *tx;
	struct rows rows;
	bool good;
};

static void *claim_two(void *arg)
{
	struct claimer *claimer = arg;
	struct err err = { 0 };

	claimer->good =
	    outbound_claim(claimer->tx, 10, 7, &claimer->rows, &err);
	return NULL;
}

/* Its snapshot is taken, and it waits for who adds the same server. */
static void claim_is_stuck(struct claimer *claimer, struct conn *adder)
{
	struct err err = { 0 };

	cr_assert(conn_script(adder,
		      "BEGIN; INSERT INTO fediverse_domains (domain)"
		      " VALUES ('a.example')",
		      &err),
	    "%s", err.text);
	cr_assert_eq(
	    pthread_create(&claimer->thread, NULL, claim_two, claimer), 0);
	cr_assert(fediverse_until(
	    &site, "EXISTS (SELECT FROM pg_locks WHERE NOT granted)", WAIT_MS));
}

/* Somebody else has had the lease since the snapshot, and sent what was due. */
Test(fediverse_claim, what_others_have_sent_meanwhile_does_not_come_along)
{
	AUTO(arena_free) struct arena *own = arena_new();
	AUTO(conn_free) struct conn *adder = test_db_conn(site.db);
	AUTO(conn_free) struct conn *conn = test_db_conn(site.db);
	struct claimer claimer = { .tx = tx_new(conn, own) };
	const struct outbound_claimed *claimed;
	struct err err = { 0 };

	test_db_script(site.db,
	    "INSERT INTO fediverse_domains (domain) VALUES ('b.example');"
	    "SELECT fediverse_enqueue('a', '{}', 'https://' || h || '.example')"
	    " FROM unnest(ARRAY['a', 'b']) AS h");
	claim_is_stuck(&claimer, adder);
	test_db_script(site.db,
	    "UPDATE fediverse_outbound_queue SET status = 'delivered'"
	    " WHERE target_domain = 'b.example';"
	    "UPDATE fediverse_domains SET served_at = now()"
	    " WHERE domain = 'b.example'");
	cr_assert(conn_script(adder, "ROLLBACK", &err), "%s", err.text);
	pthread_join(claimer.thread, NULL);
	cr_assert(claimer.good);
	cr_assert_eq(claimer.rows.count, 2);
	claimed = claimer.rows.items;
	cr_expect(claimed[0].only);
	cr_expect_str_eq(claimed[1].lease.domain, "b.example");
	cr_expect_not(claimed[1].only);
	tx_end(&claimer.tx);
}
