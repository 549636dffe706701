/*
 * Claims of domains that are owed activities, against the real database.
 */
#include <criterion/criterion.h>

#include "common/queue/lease.h"
#include "tests/integration/fediverse_site.h"

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
