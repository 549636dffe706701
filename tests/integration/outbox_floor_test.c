#include <criterion/criterion.h>

#include "outboxd/drain.h"
#include "tests/integration/delivery_site.h"

enum { WORKER = 1001, MANY = 4000 };

/* Where a peer's outbox begins: a site, and steps that are taken by hand. */
static struct site site;
static struct node node;
static struct conn *conn;
static int64_t peer;

static void script(struct conn *on, const char *text)
{
	struct err err = { 0 };

	cr_assert(conn_script(on, text, &err), "%s", err.text);
}

static void begin(void)
{
	struct err err = { 0 };

	if (!test_db_available())
		return;
	site = site_begin();
	cr_assert(node_load(site.arena, site.node->origin,
		      arena_printf(site.arena, "%s/key", site.node->dir), &node,
		      &err),
	    "%s", err.text);
	conn = test_db_conn(site.db);
	/* As outboxd. */
	script(conn,
	    "SET enable_seqscan = off; SET plan_cache_mode = "
	    "force_generic_plan");
	peer = site_peer(&site, "http://p.localhost:1");
}

static void end(void)
{
	if (!conn)
		return;
	conn_free(&conn);
	node_key_free(&node.key);
	site_end(&site);
}

TestSuite(outbox_floor, .init = begin, .fini = end, .timeout = 60);

static struct drain *claimed(void)
{
	const struct claim_def claim = { .worker = WORKER, .room = 1 };
	struct rows leases;
	struct err err = { 0 };

	cr_assert(claim_peers(conn, site.arena, &claim, &leases, &err), "%s",
	    err.text);
	cr_assert_eq(leases.count, 1);
	return drain_new(leases.items, &node);
}

/* A step; the peer takes all of the load. How many events there were. */
static size_t step(struct drain *drain)
{
	struct err err = { 0 };
	size_t events = 0;

	cr_assert(drain_step(conn, drain, &err), "%s", err.text);
	for (size_t i = 0; i < drain->load->count; i++) {
		const struct batch *batch = &drain->load->parcels[i].batch;

		owed_add(&drain->owed, batch);
		events += batch->live;
	}
	drain->status = 200;
	return events;
}

/* Until nothing is left and the lease is given back. */
static size_t drain_all(struct drain *drain)
{
	size_t events = 0;
	size_t more;

	while ((more = step(drain)) > 0 || drain->again)
		events += more;
	drain_free(&drain);
	return events;
}

static const char *first_of(const struct drain *drain)
{
	return drain->load->count == 0
	    ? "nothing"
	    : drain->load->parcels[0].batch.items[0].first->entity_id;
}

/* Sends until the outbox is said to begin behind everything: somebody else on
 * the server may be writing for a while. */
static bool floor_reached(void)
{
	for (int tries = 0; tries < 200; tries++) {
		site_enqueue_many(&site, peer,
		    arena_printf(site.arena, "f%d-", tries), DRAIN_LOW_LAG + 1);
		drain_all(claimed());
		if (site_number(&site,
			"SELECT empty_through - last_value AS n FROM "
			"federation_peers, federation_outbox_ids") == 0)
			return true;
	}
	return false;
}

/* An entry with the peer's first id, as it comes from a dead letter. */
static void put_back(void)
{
	test_db_script(site.db,
	    "INSERT INTO dead_letters (queue, peer_id, peer, entry_id, "
	    "context_type, context_id, event_type, entity_id, payload, "
	    "created_at, why) SELECT 'outbox', id, origin, 1, 'dm', 'c', "
	    "'create', 'z', '', now(), 'x' FROM federation_peers; "
	    "SELECT ops.replay(older_than => '0', why => 'test')");
}

static int64_t index_entries_read(void)
{
	script(conn, "SELECT pg_stat_force_next_flush()");
	script(conn, "SELECT 1");
	return site_number(&site,
	    "SELECT idx_tup_read AS n FROM pg_stat_user_indexes WHERE "
	    "indexrelname = 'federation_outbox_pkey'");
}

Test(outbox_floor, what_is_dead_is_not_read_again_under_a_held_snapshot)
{
	AUTO(conn_free) struct conn *held = NULL;
	int64_t before;

	test_db_needed();
	held = test_db_conn(site.db);
	script(held,
	    "BEGIN ISOLATION LEVEL REPEATABLE READ; "
	    "SELECT count(*) FROM federation_outbox");
	site_enqueue_many(&site, peer, "m", MANY);
	cr_expect_eq(drain_all(claimed()), MANY);
	cr_assert(floor_reached());
	before = index_entries_read();
	site_enqueue(&site, peer, ENTRIES("create a"));
	cr_expect_eq(drain_all(claimed()), 1);
	cr_expect_lt(index_entries_read() - before, MANY / 4);
}

Test(outbox_floor, what_an_operator_puts_back_is_found_below_it)
{
	struct drain *drain;

	test_db_needed();
	cr_assert(floor_reached());
	put_back();
	drain = claimed();
	cr_expect_eq(step(drain), 1);
	cr_expect_str_eq(first_of(drain), "z");
	drain_all(drain);
	/* And while the lease is held. */
	cr_assert(floor_reached());
	site_enqueue(&site, peer, ENTRIES("create a"));
	drain = claimed();
	cr_expect_eq(step(drain), 1);
	cr_expect_str_eq(first_of(drain), "a");
	put_back();
	cr_expect_eq(step(drain), 1);
	cr_expect_str_eq(first_of(drain), "z");
	cr_expect_eq(drain_all(drain), 0);
}
