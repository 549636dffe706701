#include <criterion/criterion.h>

#include <inttypes.h>

#include "common/base/clock.h"
#include "common/queue/lease.h"
#include "common/queue/worker.h"
#include "outboxd/drain.h"
#include "tests/integration/delivery_site.h"

enum { SOON_MS = 5000, WORKER_A = 1001, WORKER_B = 1002 };

/* A site, two connections, and no daemon: the steps are taken by hand. */
static struct site site;
static struct node node;
static struct conn *a;
static struct conn *b;
static struct arena *arena;

static void begin(void)
{
	struct err err = { 0 };

	if (!test_db_available())
		return;
	site = site_begin();
	arena = site.arena;
	cr_assert(
	    node_load(arena, site.node->origin,
		arena_printf(arena, "%s/key", site.node->dir), &node, &err),
	    "%s", err.text);
	a = test_db_conn(site.db);
	b = test_db_conn(site.db);
}

static void end(void)
{
	if (!a)
		return;
	conn_free(&a);
	conn_free(&b);
	node_key_free(&node.key);
	site_end(&site);
}

TestSuite(outbox_claim, .init = begin, .fini = end, .timeout = 30);

static size_t claim(
    struct conn *conn, int64_t worker, int64_t room, struct peer_lease *first)
{
	struct rows leases;
	struct err err = { 0 };

	cr_assert(
	    claim_peers(conn, arena,
		&(const struct claim_def){ .worker = worker, .room = room },
		&leases, &err),
	    "%s", err.text);
	if (leases.count > 0 && first)
		*first = *(const struct peer_lease *)leases.items;
	return leases.count;
}

static struct drain *drain_of(struct conn *conn, int64_t worker)
{
	struct peer_lease lease;

	cr_assert_eq(claim(conn, worker, 1, &lease), 1);
	return drain_new(&lease, &node);
}

/* The batch that is out after a step; NULL: there is none. */
static struct parcel *out_of(struct drain *drain)
{
	struct load *load = drain->load;

	return load && load->sent > 0 && load->sent <= load->count
	    ? &load->parcels[load->sent - 1]
	    : NULL;
}

static size_t live(struct drain *drain)
{
	return out_of(drain) ? out_of(drain)->batch.live : 0;
}

/* As the loop does: what was read leaves batch by batch while all is taken,
 * then comes a step. */
static bool step_may_fail(
    struct conn *conn, struct drain *drain, struct err *err)
{
	struct load *load = drain->load;
	struct parcel *out = out_of(drain);
	struct load *before = NULL;
	bool good;

	if (out && drain->answer.outcome == CLIENT_ANSWERED)
		answer_read(&drain->answer, &out->batch, arena);
	if (out && answer_takes_all(&drain->answer, &out->batch)) {
		owed_add(&drain->owed, &out->batch);
		drain->status = drain->answer.status;
		out = NULL;
		if (load->sent < load->count && !drain->leaving) {
			load->sent++;
			return true;
		}
	}
	drain->out = out;
	if (load && load->sent < load->count)
		drain->cursor = 0;
	if (out) {
		before = load;
		drain->load = NULL;
	}
	good = drain_step(conn, drain, err);
	load_free(&before);
	if (good && drain->load->count > 0)
		drain->load->sent = 1;
	drain->answer = (struct answer){ .outcome = CLIENT_ABORTED };
	return good;
}

static void step(struct conn *conn, struct drain *drain)
{
	struct err err = { 0 };

	cr_assert(step_may_fail(conn, drain, &err), "%s", err.text);
}

/* The peer takes everything that is out. */
static void take_all(struct drain *drain)
{
	struct buf body;
	const struct batch *batch = &out_of(drain)->batch;

	buf_init(&body, arena, 1 << 20);
	buf_text(&body, "{\"rejected\":[],\"accepted\":[");
	for (size_t i = 0; i < batch->count; i++)
		buf_printf(&body, "%s\"%s\"", i ? "," : "",
		    batch->items[i].first->entity_id);
	buf_text(&body, "]}");
	drain->answer = (struct answer){
		.outcome = CLIENT_ANSWERED,
		.status = 200,
		.body = buf_bytes(&body),
	};
}

static void peers(int count)
{
	for (int i = 0; i < count; i++) {
		int64_t id = site_peer(
		    &site, arena_printf(arena, "http://p%d.localhost:1", i));

		site_enqueue(&site, id, ENTRIES("create a", "create b"));
	}
}

static int64_t waiting(void)
{
	return site_number(
	    &site, "SELECT count(*) AS n FROM federation_outbox");
}

Test(outbox_claim, two_workers_never_share_a_peer)
{
	test_db_needed();
	peers(3);
	cr_expect_eq(claim(a, WORKER_A, 1, NULL), 1);
	cr_expect_eq(claim(b, WORKER_B, 10, NULL), 2);
	cr_expect_eq(claim(a, WORKER_A, 10, NULL), 0);
}

Test(outbox_claim, passes_over_peers_that_nothing_is_owed_to_or_may_go_to)
{
	static const char *const changes[] = {
		"DELETE FROM federation_outbox",
		"UPDATE federation_peers SET status = 'revoked'",
		"UPDATE federation_peers SET status = 'awaiting_approval'",
		"UPDATE federation_peers SET status = 'pending'",
		"UPDATE federation_peers SET next_attempt_at = now() + "
		"interval '1 second'",
		"UPDATE federation_peers SET paused_until = now() + "
		"interval '1 minute'",
	};

	test_db_needed();
	peers(1);
	for (size_t i = 0; i < COUNT(changes); i++) {
		test_db_script(site.db, changes[i]);
		cr_expect_eq(claim(a, WORKER_A, 10, NULL), 0, "%s", changes[i]);
		test_db_script(site.db,
		    "DELETE FROM federation_outbox;"
		    "UPDATE federation_peers SET status = 'active', "
		    "next_attempt_at = now(), paused_until = NULL");
		site_enqueue(&site,
		    site_number(&site, "SELECT id AS n FROM federation_peers"),
		    ENTRIES("create a"));
	}
	cr_expect_eq(claim(a, WORKER_A, 10, NULL), 1);
}

Test(outbox_claim, an_enqueue_waits_for_nobody)
{
	AUTO(tx_end) struct tx *tx = NULL;
	const struct stmt lock = { "lock_peer",
		"SELECT id FROM federation_peers FOR NO KEY UPDATE", SQL_MANY,
		0 };
	struct rows rows;
	struct err err = { 0 };

	test_db_needed();
	peers(1);
	tx = tx_new(a, arena);
	cr_assert(sql_many(tx, &lock, NULL, &rows, &err), "%s", err.text);
	test_db_script(site.db,
	    "SET lock_timeout = '100ms'; INSERT INTO federation_outbox "
	    "(peer_id, context_type, context_id, event_type, entity_id, "
	    "payload, expires_at) SELECT id, 'dm', 'c', 'create', 'z', '', "
	    "now() + interval '1 day' FROM federation_peers");
	cr_expect_eq(waiting(), 3);
}

Test(outbox_claim, what_is_out_is_marked_on_the_disk_and_still_there)
{
	struct drain *drain;

	test_db_needed();
	peers(1);
	drain = drain_of(a, WORKER_A);
	step(a, drain);
	cr_expect(live(drain) > 0);
	cr_expect_eq(waiting(), 2);
	cr_expect_eq(site_number(&site,
			 "SELECT presented_through - (SELECT max(id) FROM "
			 "federation_outbox) AS n FROM federation_peers"),
	    DRAIN_RESERVE);
	take_all(drain);
	step(a, drain);
	cr_expect_eq(live(drain), 0);
	cr_expect_eq(waiting(), 0);
	cr_expect(site_drained(&site, 100));
	drain_free(&drain);
}

Test(outbox_claim, only_the_current_token_acknowledges)
{
	struct drain *late;
	struct drain *current;
	struct err err = { 0 };

	test_db_needed();
	peers(1);
	late = drain_of(a, WORKER_A);
	step(a, late);
	test_db_script(site.db,
	    "UPDATE federation_peers SET lease_until = now() - interval '1 s'");
	current = drain_of(b, WORKER_B);
	step(b, current);
	take_all(late);
	cr_expect_not(step_may_fail(a, late, &err));
	cr_expect_eq(err.code, ERR_CONFLICT);
	cr_expect_eq(waiting(), 2);
	/* Nor does giving back what is no longer its own change anything. */
	cr_expect(drain_release(a, late, &err));
	cr_expect_eq(claim(a, WORKER_A, 1, NULL), 0);
	take_all(current);
	step(b, current);
	cr_expect_eq(waiting(), 0);
	drain_free(&late);
	drain_free(&current);
}

Test(outbox_claim, a_lease_that_ended_acknowledges_nothing)
{
	struct drain *drain;
	struct err err = { 0 };

	test_db_needed();
	peers(1);
	drain = drain_of(a, WORKER_A);
	step(a, drain);
	test_db_script(site.db,
	    "UPDATE federation_peers SET lease_until = now() - interval '1 s'");
	take_all(drain);
	cr_expect_not(step_may_fail(a, drain, &err));
	cr_expect_eq(waiting(), 2);
	drain_free(&drain);
}

Test(outbox_claim, an_entry_that_commits_late_is_found)
{
	struct drain *drain;
	int64_t peer;

	test_db_needed();
	/* The late one has drawn its id already. */
	cr_assert_eq(
	    site_number(&site, "SELECT nextval('federation_outbox_ids') AS n"),
	    1);
	peers(1);
	peer = site_number(&site, "SELECT id AS n FROM federation_peers");
	drain = drain_of(a, WORKER_A);
	step(a, drain);
	test_db_script(site.db,
	    arena_printf(arena,
		"INSERT INTO federation_outbox VALUES (%" PRId64 ", 1, 'dm', "
		"'late', 'create', 'z', '', 0, now(), now() + "
		"interval '1 day')",
		peer));
	take_all(drain);
	step(a, drain);
	cr_assert(live(drain) > 0);
	cr_expect_eq(live(drain), 1);
	cr_expect_str_eq(out_of(drain)->batch.items[0].first->entity_id, "z");
	drain_free(&drain);
}

static void put(struct conn *conn, int64_t peer, const char *script)
{
	struct err err = { 0 };

	cr_assert(
	    conn_script(conn,
		arena_printf(arena,
		    "SELECT set_config('test.peer', '%" PRId64 "', false); %s",
		    peer, script),
		&err),
	    "%s", err.text);
}

#define INTO_OUTBOX(id, conversation) \
	"INSERT INTO federation_outbox (peer_id, context_type, context_id, " \
	"event_type, entity_id, payload, expires_at) SELECT " \
	"current_setting('test.peer')::bigint, 'dm', '" conversation \
	"', 'create', '" id "', '', now() + interval '1 day'; "

/* Another conversation's entry has drawn the cursor on meanwhile. */
Test(outbox_claim, what_commits_late_comes_before_what_follows_it)
{
	struct conn_def def = { .conninfo = site.db, .application = "late" };
	struct conn *late;
	struct drain *drain;
	int64_t peer;

	test_db_needed();
	late = conn_new(&def);
	peer = site_peer(&site, "http://p.localhost:1");
	put(late, peer, "BEGIN; " INTO_OUTBOX("a1", "A"));
	put(b, peer, INTO_OUTBOX("b1", "B"));
	drain = drain_of(a, WORKER_A);
	step(a, drain);
	cr_assert_eq(live(drain), 1);
	cr_expect_str_eq(out_of(drain)->batch.items[0].first->entity_id, "b1");
	put(late, peer, INTO_OUTBOX("a2", "A") "COMMIT");
	take_all(drain);
	step(a, drain);
	cr_assert_eq(live(drain), 2);
	cr_expect_str_eq(out_of(drain)->batch.items[0].first->entity_id, "a1");
	cr_expect_str_eq(out_of(drain)->batch.items[1].first->entity_id, "a2");
	drain_free(&drain);
	conn_free(&late);
}

Test(outbox_claim, a_backlog_is_marked_ahead_in_chunks)
{
	struct drain *drain;
	int64_t peer;

	test_db_needed();
	peer = site_peer(&site, "http://p.localhost:1");
	site_enqueue_many(&site, peer, "m", 22000);
	drain = drain_of(a, WORKER_A);
	step(a, drain);
	cr_expect_eq(
	    site_number(&site,
		"SELECT count(*) AS n FROM federation_outbox o, "
		"federation_peers p WHERE o.id <= p.presented_through"),
	    DRAIN_WINDOW + DRAIN_AHEAD);
	drain_free(&drain);
}

/* Takes batches until there are none; how many events there were. */
static size_t drain_all(struct drain *drain)
{
	size_t events = 0;

	for (step(a, drain); live(drain) > 0 || drain->again; step(a, drain)) {
		if (live(drain) == 0)
			continue;
		events += live(drain);
		take_all(drain);
	}
	return events;
}

Test(outbox_claim, what_was_read_ahead_is_sent_once)
{
	/* The second entry has to stay for the next batch. */
	static const char *const first[] = { "update a @x",
		"file_rejected a @x", NULL };
	struct drain *drain;
	int64_t peer;

	test_db_needed();
	peer = site_peer(&site, "http://p.localhost:1");
	site_enqueue(&site, peer, first);
	site_enqueue_many(&site, peer, "m", 500);
	drain = drain_of(a, WORKER_A);
	cr_expect_eq(drain_all(drain), 502);
	cr_expect_eq(waiting(), 0);
	drain_free(&drain);
}

Test(outbox_claim, giving_back_acknowledges_what_was_taken)
{
	/* clang-format off */
	static const struct { bool taken; int64_t left; } cases[] = {
		{ true, 350 }, { false, 400 },
	};
	/* clang-format on */

	test_db_needed();
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct drain *drain;
		int64_t peer = site_peer(
		    &site, arena_printf(arena, "http://p%zu.localhost:1", i));

		site_enqueue_many(&site, peer, "m", 500);
		drain = drain_of(a, WORKER_A);
		for (int batch = 0; batch < 3; batch++) {
			step(a, drain);
			cr_assert_eq(live(drain), 50);
			take_all(drain);
		}
		if (!cases[i].taken)
			drain->answer.status = 500;
		drain->again = drain->leaving = true;
		step(a, drain);
		cr_expect_not(drain->again, "there is nothing to go on with");
		cr_expect_eq(waiting(), cases[i].left, "case %zu", i);
		drain_free(&drain);
		test_db_script(site.db, "DELETE FROM federation_outbox");
	}
}

Test(outbox_claim, a_long_blocked_conversation_is_passed_over_once)
{
	struct drain *drain;
	int64_t peer;
	int steps = 0;

	test_db_needed();
	peer = site_peer(&site, "http://p.localhost:1");
	site_enqueue_many(&site, peer, "m", 5000);
	site_enqueue(&site, peer, ENTRIES("create z @other"));
	test_db_script(site.db,
	    "UPDATE federation_outbox SET retry_at = now() + interval "
	    "'1 hour', reason = 'channel_not_found', refusals = 1 WHERE "
	    "entity_id = 'm1'");
	drain = drain_of(a, WORKER_A);
	do
		step(a, drain);
	while (live(drain) == 0 && drain->again && ++steps < 20);
	cr_assert(live(drain) > 0);
	cr_expect_eq(live(drain), 1);
	take_all(drain);
	do
		step(a, drain);
	while (drain->again && ++steps < 20);
	cr_expect_lt(steps, 20);
	cr_expect_eq(live(drain), 0);
	cr_expect_eq(waiting(), 5000);
	drain_free(&drain);
}

Test(outbox_claim, what_waits_long_is_not_read_each_second)
{
	struct drain *drain;
	int64_t peer;
	int64_t scanned;

	test_db_needed();
	peer = site_peer(&site, "http://p.localhost:1");
	site_enqueue_many(&site, peer, "m", 5000);
	test_db_script(site.db,
	    "UPDATE federation_outbox SET retry_at = now() + interval "
	    "'1 hour', reason = 'channel_not_found', refusals = 1 WHERE "
	    "entity_id = 'm1'");
	drain = drain_of(a, WORKER_A);
	drain->may_linger = true;
	do
		step(a, drain);
	while (drain->again);
	cr_assert(drain->linger);
	scanned = drain->scanned_at;
	clock_shift_ms(2000);
	/* Another conversation's entry is found without all that. */
	site_enqueue(&site, peer, ENTRIES("create z @other"));
	step(a, drain);
	cr_expect_eq(live(drain), 1);
	take_all(drain);
	step(a, drain);
	cr_expect(drain->linger);
	cr_expect_eq(drain->scanned_at, scanned);
	/* What is due again brings all of it forward. */
	clock_shift_ms(3600 * 1000);
	test_db_script(site.db,
	    "UPDATE federation_peers SET lease_until = now() + interval '9 h'");
	step(a, drain);
	cr_expect_gt(drain->scanned_at, scanned);
	drain_free(&drain);
}

Test(outbox_claim, the_dead_hold_nothing)
{
	const struct stmt lock = { "hold",
		"SELECT pg_advisory_lock(1002)::text AS t", SQL_MANY, 0 };
	AUTO(tx_end) struct tx *alive = NULL;
	AUTO(tx_end) struct tx *tx = NULL;
	struct rows rows;
	struct err err = { 0 };
	int64_t freed = 0;

	test_db_needed();
	peers(2);
	cr_assert_eq(claim(a, WORKER_A, 1, NULL), 1);
	cr_assert_eq(claim(b, WORKER_B, 1, NULL), 1);
	alive = tx_new(b, arena);
	cr_assert(sql_many(alive, &lock, NULL, &rows, &err), "%s", err.text);
	tx = tx_new(a, arena);
	cr_assert(lease_reap(tx, &freed, &err), "%s", err.text);
	cr_assert(tx_commit(tx, &err));
	cr_expect_eq(freed, 1);
	cr_expect_eq(site_number(&site,
			 "SELECT lease_worker AS n FROM federation_peers WHERE "
			 "lease_worker IS NOT NULL"),
	    WORKER_B);
}

/* How many of one are still ours. */
static size_t renew(
    struct tx *tx, const struct peer_lease *lease, struct rows *kept)
{
	const char *id = arena_printf(arena, "%" PRId64, lease->peer);
	struct err err = { 0 };

	cr_assert(
	    lease_renew(tx, LEASE_PEERS, &id, &lease->token, 1, kept, &err) &&
		tx_commit(tx, &err),
	    "%s", err.text);
	return kept->count;
}

Test(outbox_claim, a_renewal_tells_what_was_lost_and_what_must_stop)
{
	struct peer_lease lease;
	struct lease_kept *kept;
	struct rows rows;
	AUTO(tx_end) struct tx *tx = NULL;

	test_db_needed();
	peers(1);
	cr_assert_eq(claim(a, WORKER_A, 1, &lease), 1);
	tx = tx_new(a, arena);
	cr_assert_eq(renew(tx, &lease, &rows), 1);
	kept = rows.items;
	cr_expect_str_eq(kept[0].token, lease.token);
	cr_expect(kept[0].may_go_on);
	test_db_script(
	    site.db, "UPDATE federation_peers SET paused_until = 'infinity'");
	cr_assert_eq(renew(tx, &lease, &rows), 1);
	kept = rows.items;
	cr_expect_not(kept[0].may_go_on);
	test_db_script(site.db,
	    "UPDATE federation_peers SET lease_token = gen_random_uuid()");
	cr_expect_eq(renew(tx, &lease, &rows), 0);
}

Test(outbox_claim, a_worker_writes_itself_down_and_is_swept_when_dead)
{
	struct worker_self self = { .daemon = "outboxd", .instance = "x" };
	AUTO(tx_end) struct tx *tx = NULL;
	struct err err = { 0 };

	test_db_needed();
	tx = tx_new(a, arena);
	cr_assert(worker_register(tx, &self, &err), "%s", err.text);
	cr_assert(worker_sweep(tx, &err), "%s", err.text);
	cr_assert(tx_commit(tx, &err));
	cr_expect_gt(self.id, 0);
	cr_expect_eq(
	    site_number(&site, "SELECT count(*) AS n FROM workers"), 1);
	test_db_script(site.db,
	    "UPDATE workers SET last_seen_at = now() - interval '2 minutes'");
	cr_assert(worker_sweep(tx, &err), "%s", err.text);
	cr_assert(tx_commit(tx, &err));
	cr_expect_eq(
	    site_number(&site, "SELECT count(*) AS n FROM workers"), 0);
}
