#include <criterion/criterion.h>

#include "common/queue/lease.h"
#include "outboxd/drain.h"
#include "tests/integration/delivery_site.h"

enum { WORKER = 1001, OTHER = 1002 };

TestSuite(outbox_lease, .timeout = 30);

static struct rows claim(struct conn *conn, struct site *site, int64_t worker)
{
	const struct claim_def claim = { .worker = worker, .room = 1 };
	struct rows leases;
	struct err err = { 0 };

	cr_assert(claim_peers(conn, site->arena, &claim, &leases, &err), "%s",
	    err.text);
	return leases;
}

Test(outbox_lease, what_a_lost_claim_leased_is_given_back)
{
	AUTO(conn_free) struct conn *conn = NULL;
	AUTO(tx_end) struct tx *tx = NULL;
	struct site site;
	const struct peer_lease *known;
	struct rows lost;
	struct err err = { 0 };

	test_db_needed();
	site = site_begin();
	conn = test_db_conn(site.db);
	for (int i = 0; i < 3; i++)
		site_enqueue(&site,
		    site_peer(&site,
			arena_printf(site.arena, "http://p%d.localhost:1", i)),
		    ENTRIES("create a"));
	known = claim(conn, &site, WORKER).items;
	cr_assert_eq(claim(conn, &site, OTHER).count, 1);
	lost = claim(conn, &site, WORKER);
	cr_assert_eq(lost.count, 1);
	cr_assert_eq(claim(conn, &site, OTHER).count, 0);
	tx = tx_new(conn, site.arena);
	cr_assert(lease_drop(tx, LEASE_PEERS, WORKER,
		      (const char *const[]){ known->token }, 1, &err) &&
		tx_commit(tx, &err),
	    "%s", err.text);
	tx_end(&tx);
	cr_assert_eq(claim(conn, &site, OTHER).count, 1, "the lost one");
	cr_expect_eq(claim(conn, &site, OTHER).count, 0, "not the known one");
	conn_free(&conn);
	site_end(&site);
}
