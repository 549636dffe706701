#include <criterion/criterion.h>

#include "janitord/sweep.sql.h"
#include "tests/integration/janitor_site.h"

TestSuite(janitor, .init = janitor_begin, .fini = janitor_end, .timeout = 300);

/* ---- leading ---- */

/* How many sessions hold the leader's lock. */
#define LEADERS \
	"pg_locks WHERE locktype = 'advisory' AND granted AND database = " \
	"(SELECT oid FROM pg_database WHERE datname = current_database()) " \
	"AND classid = 1 AND objid = 2941871708"

Test(janitor, of_two_one_leads_and_the_other_follows_a_kill_in_five_seconds)
{
	struct test_daemon *first = test_janitord(janitor.node, NULL);
	struct test_daemon *second;

	cr_assert(janitor_leads(first, SOON_MS));
	second = test_janitord(janitor.node, NULL);
	cr_expect_eq(janitor_count(LEADERS), 1);
	cr_expect_not(janitor_leads(second, 1500));
	test_daemon_kill(first);
	cr_expect(janitor_leads(second, 5000));
	cr_expect_eq(janitor_count(LEADERS), 1);
}

Test(janitor, a_leader_that_is_stopped_lets_go_at_once)
{
	struct test_daemon *first = test_janitord(janitor.node, NULL);
	struct test_daemon *second;

	cr_assert(janitor_leads(first, SOON_MS));
	second = test_janitord(janitor.node, NULL);
	cr_expect_eq(test_daemon_stop(first), 0);
	cr_expect(janitor_leads(second, 2500));
}

static void database_allow(const char *name, bool allow)
{
	test_db_script(getenv("POSTRIDER_TEST_DB"),
	    arena_printf(janitor.arena,
		"ALTER DATABASE \"%s\" WITH ALLOW_CONNECTIONS %s", name,
		allow ? "true" : "false"));
}

static void sessions_cut(const char *database)
{
	test_db_script(getenv("POSTRIDER_TEST_DB"),
	    arena_printf(janitor.arena,
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
		"WHERE datname = '%s'",
		database));
}

Test(janitor, works_on_after_the_database_was_away)
{
	struct test_daemon *janitord = test_janitord(
	    janitor.node, (const char *const[]){ "sweep_every=1s", NULL });
	const char *name = test_db_text(
	    janitor.arena, janitor.db, "SELECT current_database()::text AS t");

	cr_assert(janitor_leads(janitord, SOON_MS));
	database_allow(name, false);
	sessions_cut(name);
	cr_expect(test_daemon_logged(janitord,
	    "event=leader.changed daemon=janitord leads=false", SOON_MS));
	database_allow(name, true);
	janitor_sql("INSERT INTO nonces VALUES ('https://a.example', 'n', "
		    "now() - interval '1 hour')");
	cr_expect(janitor_soon("NOT EXISTS (SELECT FROM nonces)"));
	cr_expect_eq(test_daemon_ended(janitord, 0), -1000, "it went on");
}

/* ---- expiry ---- */

/* What waits, in order: "create b, update b". */
static const char *waiting(int64_t peer)
{
	return test_db_text(janitor.arena, janitor.db,
	    arena_printf(janitor.arena,
		"SELECT coalesce(string_agg(event_type || ' ' || entity_id, "
		"', ' ORDER BY id), '') AS t FROM federation_outbox WHERE "
		"peer_id = %" PRId64,
		peer));
}

Test(janitor, an_expired_create_takes_what_depends_on_it)
{
	/* clang-format off */
	static const struct {
		const char *presented;
		const char *left;
	} cases[] = {
		{ "0",
		  "create b, update b, delete x" },
		/* The peer may have it: it must hear of the rest. */
		{ "(SELECT max(id) FROM federation_outbox)",
		  "update a, create b, update b, delete a, delete x" },
	};
	/* clang-format on */
	int64_t ids[COUNT(cases)];
	struct test_daemon *janitord;

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct test_peer *peer =
		    test_peer_new("orbit.localhost", NULL, NULL);

		ids[i] = janitor_failing_peer(peer, "unreachable");
		test_peer_free(&peer);
		site_enqueue(&janitor, ids[i],
		    ENTRIES("create a", "update a", "create b", "update b",
			"delete a", "delete x"));
		janitor_sql(arena_printf(janitor.arena,
		    "UPDATE federation_peers SET presented_through = %s WHERE "
		    "id = %" PRId64,
		    cases[i].presented, ids[i]));
	}
	janitor_sql(
	    "UPDATE federation_outbox SET expires_at = now() WHERE event_type "
	    "= 'create' AND entity_id = 'a'");
	janitord = test_janitord(janitor.node, NULL);
	cr_expect(
	    janitor_soon("NOT EXISTS (SELECT FROM federation_outbox WHERE "
			 "expires_at <= now())"));
	for (size_t i = 0; i < COUNT(cases); i++)
		cr_expect_str_eq(waiting(ids[i]), cases[i].left);
	cr_expect(
	    test_daemon_logged(janitord, "event=outbox.expired", SOON_MS));
}

Test(janitor, expiry_leaves_leased_peers_alone_and_takes_those_of_nobody)
{
	struct test_peer *peer = test_peer_new("orbit.localhost", NULL, NULL);
	struct test_peer *other = test_peer_new("luna.localhost", NULL, NULL);
	int64_t leased = janitor_failing_peer(peer, "active");
	int64_t idle = janitor_failing_peer(other, "unreachable");

	site_enqueue_many(&janitor, leased, "l", 5);
	site_enqueue_many(&janitor, idle, "i", 2600);
	site_enqueue_many(&janitor, 77, "n", 3);
	janitor_sql(arena_printf(janitor.arena,
	    "UPDATE federation_outbox SET expires_at = now();"
	    "UPDATE federation_peers SET lease_worker = 1, lease_token = "
	    "gen_random_uuid(), lease_until = now() + interval '1 hour' "
	    "WHERE id = %" PRId64,
	    leased));
	site_enqueue(&janitor, idle, ENTRIES("create young"));
	test_janitord(janitor.node, NULL);
	cr_expect(janitor_soon("(SELECT count(*) FROM federation_outbox) = 6"));
	cr_expect_str_eq(waiting(idle), "create young");
	cr_expect_str_eq(waiting(leased),
	    "create l1, create l2, create l3, create l4, "
	    "create l5");
	test_peer_free(&peer);
}

struct expiry {
	int64_t gone;
};

static const struct shape expiry_shape[] = {
	SHAPE(INT, struct expiry, gone, NULL),
	SHAPE_END(struct expiry),
};

/* As claim_peers takes peers. */
static int64_t locked(struct tx *tx)
{
	static const struct stmt lock = { "lock",
		"SELECT count(*) AS gone FROM (SELECT id FROM federation_peers "
		"FOR NO KEY UPDATE SKIP LOCKED) AS l",
		SQL_ONE, 0 };
	struct expiry peers = { 0 };
	struct err err = { 0 };

	cr_assert(sql_one(tx, &lock, expiry_shape, &peers, &err));
	return peers.gone;
}

static int64_t expired(struct tx *tx, int64_t peer)
{
	struct expiry expiry = { 0 };
	struct err err = { 0 };

	cr_assert(sql_one(tx, &SQL_expire_batch, expiry_shape, &expiry, &err,
		      v_id(peer), v_int(1000)),
	    "%s", err.text);
	return expiry.gone;
}

Test(janitor, expiry_and_whoever_claims_the_peer_pass_each_other_by)
{
	AUTO(conn_free) struct conn *one = test_db_conn(janitor.db);
	AUTO(conn_free) struct conn *two = test_db_conn(janitor.db);
	AUTO(tx_end) struct tx *a = tx_new(one, janitor.arena);
	AUTO(tx_end) struct tx *b = tx_new(two, janitor.arena);
	struct test_peer *peer = test_peer_new("orbit.localhost", NULL, NULL);
	int64_t id = janitor_failing_peer(peer, "unreachable");

	site_enqueue(&janitor, id, ENTRIES("create a", "create b"));
	janitor_sql("UPDATE federation_outbox SET expires_at = now()");
	cr_expect_eq(locked(a), 1);
	cr_expect_eq(expired(b, id), 0);
	tx_rollback(a);
	cr_expect_eq(expired(b, id), 2);
	cr_expect_eq(locked(a), 0);
	test_peer_free(&peer);
}

/* ---- sweeping ---- */

static const char *const old_and_young =
    "INSERT INTO nonces SELECT 'https://a.example', 'n' || n, now() - "
    "interval '31 minutes' FROM generate_series(1, 2500) n;"
    "INSERT INTO nonces SELECT 'https://a.example', 'y' || n, now() - "
    "interval '29 minutes' FROM generate_series(1, 7) n;"
    "INSERT INTO s2s_requests (kind, origin, deadline, created_at) SELECT "
    "'info', 'https://a.example', now(), now() - interval '1 minute' * n "
    "FROM unnest(ARRAY[5, 11]) n;"
    "INSERT INTO users (id, username, password_hash) VALUES (1, 'ann', 'x');"
    "INSERT INTO sessions (user_id, key_hash, expires_at) SELECT 1, "
    "sha256(n::text::bytea), now() + interval '1 minute' * n "
    "FROM unnest(ARRAY[-1, 1]) n;"
    "INSERT INTO message_tombstones SELECT 'https://a.example', n, now() - "
    "interval '1 day' * n FROM unnest(ARRAY[29, 30.5, 31.5]) n;"
    "INSERT INTO dm_channels (id, pair_low, pair_high) VALUES (2, 1, 1);"
    "INSERT INTO dm_messages (id, dm_channel_id, user_id) VALUES (3, 2, 1);"
    "INSERT INTO reaction_tombstones SELECT 2 * n, 3, 1, 'x', now(), now() - "
    "interval '1 day' * n FROM unnest(ARRAY[29, 30.5, 31.5]) n;"
    "INSERT INTO dm_departures SELECT 2, 1, now() - interval '32 days';"
    "INSERT INTO events_heard SELECT 'https://a.example', 'member_add', n, "
    "now() - interval '1 day' * n FROM unnest(ARRAY[29, 30.5, 31.5]) n;"
    "INSERT INTO dm_channels (id, is_group, owner_id, deleted_at) SELECT "
    "10 + n, true, 1, now() - interval '1 hour' * n "
    "FROM unnest(ARRAY[23, 25]) n;"
    "INSERT INTO dm_messages (dm_channel_id, user_id) SELECT id, 1 FROM "
    "dm_channels, generate_series(1, 1500) WHERE is_group;"
    "INSERT INTO conversation_events (conversation_id, seq, kind) SELECT "
    "id, 1, 'x' FROM dm_channels WHERE is_group;"
    "INSERT INTO typing_told SELECT n, 1, now() - interval '1 hour' * n "
    "FROM unnest(ARRAY[0, 2]) n;"
    "INSERT INTO dead_letters (queue, why, died_at) SELECT 'outbox', 'x', "
    "now() - interval '1 day' * n FROM unnest(ARRAY[89, 91]) n;"
    "INSERT INTO fediverse_outbound_queue (activity_id, payload_json, "
    "target_inbox, target_domain, status, created_at, delivered_at) SELECT "
    "state || n, '{}', 'i', 'd', state, now() - interval '1 day' * n, "
    "CASE state WHEN 'delivered' THEN now() - interval '1 day' * n END "
    "FROM unnest(ARRAY[6, 8, 89, 91]) n, "
    "unnest(ARRAY['pending', 'delivered', 'failed', 'dead']) state;"
    "INSERT INTO peer_rates SELECT n, now() - interval '1 hour' * n, 1 "
    "FROM unnest(ARRAY[0, 2]) n;"
    "INSERT INTO fediverse_keys (key_id, owner, pem, fetched_at) SELECT "
    "'k' || n, 'o', 'p', now() - interval '1 day' * n "
    "FROM unnest(ARRAY[29, 31]) n;"
    "INSERT INTO fediverse_keys (key_id, failed_until) SELECT "
    "'m' || n, now() - interval '1 hour' * n FROM unnest(ARRAY[0.5, 2]) n;"
    "INSERT INTO fediverse_fetches SELECT 'o' || n, "
    "now() - interval '1 hour' * n, 1 FROM unnest(ARRAY[0, 2]) n;"
    "INSERT INTO fediverse_moved_inboxes (inbox, domain, leads_to, seen_at) "
    "SELECT n, 'd', 'x', now() - interval '1 day' * n "
    "FROM unnest(ARRAY[29, 31]) n;"
    "INSERT INTO fediverse_inbound (activity_id, actor, type, body, "
    "received_at) SELECT n, 'a', 'Like', '{}', now() - interval '1 day' * n "
    "FROM unnest(ARRAY[29, 31]) n;";

/* Counts what a single statement deletes. */
static const char *const watched =
    "CREATE TABLE deletions (rows bigint);"
    "CREATE FUNCTION deleted() RETURNS trigger LANGUAGE plpgsql "
    "SECURITY DEFINER AS $$ BEGIN INSERT INTO public.deletions "
    "SELECT count(*) FROM gone; RETURN NULL; END $$;"
    "CREATE TRIGGER watched AFTER DELETE ON nonces REFERENCING OLD TABLE AS "
    "gone FOR EACH STATEMENT EXECUTE FUNCTION deleted();";

Test(janitor, sweeps_what_is_over_in_bounded_batches_and_nothing_else)
{
	/* clang-format off */
	static const struct { const char *table; int left; } cases[] = {
		{ "nonces",             7 },
		{ "s2s_requests",       1 },
		{ "sessions",           1 },
		{ "message_tombstones", 2 },
		{ "reaction_tombstones", 2 },
		{ "dm_departures",      0 },
		{ "events_heard",       2 },
		{ "dm_messages",        1501 },
		{ "dm_channels",        2 },
		{ "conversation_events", 1 },
		{ "typing_told",        1 },
		{ "dead_letters",       1 },
		{ "fediverse_outbound_queue", 4 + 1 + 3 + 3 },
		{ "peer_rates",         1 },
		{ "fediverse_keys",     2 },
		{ "fediverse_fetches",  1 },
		{ "fediverse_moved_inboxes", 1 },
		{ "fediverse_inbound",  1 },
	};
	/* clang-format on */
	struct test_daemon *janitord;

	janitor_sql(old_and_young);
	janitor_sql(watched);
	janitord = test_janitord(janitor.node, NULL);
	cr_expect(test_daemon_logged(janitord,
	    "event=rows.purged daemon=janitord table=fediverse_inbound",
	    SOON_MS));
	for (size_t i = 0; i < COUNT(cases); i++)
		cr_expect_eq(janitor_count(cases[i].table), cases[i].left, "%s",
		    cases[i].table);
	cr_expect_eq(
	    site_number(&janitor, "SELECT max(rows) AS n FROM deletions"),
	    1000);
	cr_expect_eq(janitor_count("users"), 1);
}

Test(janitor, the_log_of_sync_becomes_readable_and_stays_ninety_days)
{
	struct test_daemon *janitord;

	janitor_sql(
	    "INSERT INTO federation_mutation_log (context_type, context_id, "
	    "mutation_type, entity_id, payload, hosts, mutated_at) "
	    "SELECT 'dm', '1', 'delete', g.n::text, '', '{a.test}', now() - "
	    "make_interval(days => CASE WHEN g.n <= 2500 THEN 91 ELSE 89 END) "
	    "FROM generate_series(1, 2503) AS g(n) ORDER BY g.n");
	janitord = test_janitord(janitor.node, NULL);
	cr_expect(test_daemon_logged(janitord,
	    "event=rows.purged daemon=janitord table=federation_mutation_log",
	    SOON_MS));
	cr_expect_eq(janitor_count("federation_mutation_log"), 3);
	cr_expect(test_db_until(janitor.node->database,
	    "SELECT count(*) = 3 AS b FROM federation_sync_entries", SOON_MS));
}

Test(janitor, what_is_kept_of_a_conversation_is_told_truthfully)
{
	janitor_sql(
	    "INSERT INTO users (id, username, password_hash) VALUES "
	    "(1, 'ann', 'x'), (2, 'ben', 'x'), (3, 'cleo', 'x');"
	    "INSERT INTO dm_channels (id, pair_low, pair_high, seq) VALUES "
	    "(10, 1, 2, 2510), (11, 1, 3, 4), (12, 2, 3, 3);"
	    "INSERT INTO conversation_events (conversation_id, seq, kind, at) "
	    "SELECT 10, n, 'message', now() - CASE WHEN n <= 2500 THEN "
	    "interval "
	    "'31 days' ELSE interval '1 day' END FROM generate_series(1, 2510) "
	    "n;"
	    "INSERT INTO conversation_events (conversation_id, seq, kind, at) "
	    "SELECT 11, n, 'message', now() FROM generate_series(1, 4) n;"
	    "INSERT INTO conversation_events (conversation_id, seq, kind, at) "
	    "SELECT 12, n, 'message', now() - interval '40 days' "
	    "FROM generate_series(1, 3) n;"
	    "INSERT INTO user_events (user_id, seq, kind, at) SELECT u, n, "
	    "'x', "
	    "now() - interval '1 day' * (35.5 - n) FROM generate_series(1, 10) "
	    "n, "
	    "generate_series(1, 3) u;");
	test_janitord(janitor.node, NULL);
	cr_expect(
	    janitor_soon("(SELECT count(*) FROM conversation_events) = 14"));
	cr_expect(janitor_soon("(SELECT count(*) FROM user_events) = 3 * 5"));
	cr_expect_str_eq(
	    test_db_text(janitor.arena, janitor.db,
		"SELECT string_agg(id || ' from ' || events_kept_from, ', ' "
		"ORDER BY id) AS t FROM dm_channels"),
	    "10 from 2501, 11 from 1, 12 from 4");
	cr_expect_eq(janitor_count("user_events WHERE seq <= 5"), 0);
}

/* ---- figures ---- */

static int metrics_port(const struct test_daemon *daemon)
{
	FILE *file = fopen(daemon->log, "re");
	char *line = NULL;
	size_t room = 0;
	int port = 0;

	while (file && getline(&line, &room, file) >= 0)
		if (strstr(line, "event=metrics.listening"))
			port = (int)strtol(strstr(line, "port=") + 5, NULL, 10);
	free(line);
	if (file)
		fclose(file);
	return port;
}

struct figure {
	int port;
	const char *line;
};

static bool is_shown(void *arg)
{
	const struct figure *figure = arg;
	struct test_reply reply =
	    test_get(janitor.arena, figure->port, "/metrics", NULL);

	return strstr(reply.body, figure->line) != NULL;
}

Test(janitor, the_leader_alone_shows_the_cluster)
{
	static const char *const settings[] = { "metrics_listen=127.0.0.1:0",
		NULL };
	static const char *const lines[] = {
		"\npostrider_leader 1\n",
		"\npostrider_db_up 1\n",
		"\npostrider_listener_up 1\n",
		"\npostrider_errors_total 0\n",
		("\npostrider_queue_entries{queue=\"outbox\",state=\"waiting\"}"
		 " 4\n"),
		"\npostrider_peers{state=\"unreachable\"} 1\n",
		"\npostrider_peers{state=\"active\"} 0\n",
		"\npostrider_rows_purged_total{table=\"sessions\"} 1\n",
		"\npostrider_notification_queue_usage_ratio 0",
		"\npostrider_oldest_snapshot_age_seconds ",
		"\npostrider_dead_rows{table=\"federation_outbox\"} ",
	};
	struct test_peer *peer = test_peer_new("orbit.localhost", NULL, NULL);
	struct test_daemon *leader;
	struct test_daemon *other;
	struct figure figure;

	janitor_sql(old_and_young);
	site_enqueue_many(
	    &janitor, janitor_failing_peer(peer, "unreachable"), "m", 4);
	leader = test_janitord(janitor.node, settings);
	cr_assert(janitor_leads(leader, SOON_MS));
	other = test_janitord(janitor.node, settings);
	for (size_t i = 0; i < COUNT(lines); i++) {
		figure = (struct figure){ metrics_port(leader), lines[i] };
		cr_expect(
		    test_until(is_shown, &figure, SOON_MS), "%s", lines[i]);
	}
	figure = (struct figure){ metrics_port(other),
		"\npostrider_queue_entries{queue=\"outbox\",state=\"waiting\"} "
		"0\n" };
	cr_expect(is_shown(&figure));
	test_daemon_kill(leader);
	figure.line = lines[1];
	cr_expect(test_until(is_shown, &figure, SOON_MS));
	test_peer_free(&peer);
}
