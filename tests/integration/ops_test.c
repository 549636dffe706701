#include <criterion/criterion.h>

#include "common/pg/sql.h"
#include "tests/lib/test_db.h"

static char *database;
static struct arena *arena;

static void set_up(void)
{
	test_db_needed();
	database = test_db_create();
	arena = arena_new();
}

static void tear_down(void)
{
	arena_free(&arena);
	test_db_drop(&database);
}

TestSuite(grants, .init = set_up, .fini = tear_down);
TestSuite(ops, .init = set_up, .fini = tear_down);

/* The SQLSTATE of a statement run as a role, "" when it works. */
static const char *state_as(const char *role, const char *statement)
{
	const char *conninfo = test_db_as(arena, database, role);
	AUTO(conn_free) struct conn *conn = test_db_conn(conninfo);
	struct err err = { 0 };
	const char *script =
	    arena_printf(arena, "BEGIN; %s; ROLLBACK", statement);

	if (conn_script(conn, script, &err))
		return "";
	return arena_text(arena, conn_sqlstate(conn));
}

static const char *one_text(const char *query)
{
	return test_db_text(arena, database, query);
}

/* ---- rights ---- */

#define DENIED "42501"

struct right {
	const char *role;
	const char *statement;
	const char *state;
};

/* clang-format off */
static const struct right rights[] = {
	{ "postrider_frontd",   "SELECT * FROM users", "" },
	{ "postrider_frontd",   "UPDATE instance_settings SET instance_name = 'N'", "" },
	{ "postrider_frontd",   "SELECT snowflake()", "" },
	{ "postrider_frontd",   "INSERT INTO nonces (origin, nonce) VALUES ('o', 'n')", "" },
	{ "postrider_frontd",   "UPDATE federation_outbox SET payload = ''", DENIED },
	{ "postrider_frontd",   "DELETE FROM nonces", DENIED },
	{ "postrider_frontd",   "DELETE FROM s2s_requests", DENIED },
	{ "postrider_frontd",   "DELETE FROM audit", DENIED },
	{ "postrider_frontd",   "UPDATE audit SET who = 'x'", DENIED },
	{ "postrider_frontd",   "DELETE FROM dead_letters", DENIED },
	{ "postrider_frontd",   "INSERT INTO federation_allowed_origins (origin) VALUES ('x')", DENIED },
	{ "postrider_frontd",   "UPDATE schema_migrations SET checksum = ''", DENIED },
	{ "postrider_frontd",   "CREATE TABLE mine (a int)", DENIED },
	{ "postrider_frontd",   "SELECT * FROM ops.peers", DENIED },
	{ "postrider_frontd",   "SELECT ops.make_admin('x')", DENIED },
	{ "postrider_frontd",   "TRUNCATE users", DENIED },
	{ "postrider_outboxd",  "DELETE FROM federation_outbox", "" },
	{ "postrider_outboxd",  "UPDATE federation_peers SET last_code = 1", "" },
	{ "postrider_outboxd",  "SELECT snowflake()", "" },
	{ "postrider_outboxd",  "SELECT * FROM users", DENIED },
	{ "postrider_outboxd",  "SELECT * FROM dm_messages", DENIED },
	{ "postrider_outboxd",  "SELECT * FROM sessions", DENIED },
	{ "postrider_outboxd",  "INSERT INTO federation_outbox (peer_id, context_type, context_id, event_type, entity_id, payload, expires_at) VALUES (1, '', '', '', '', '', now())", DENIED },
	{ "postrider_outboxd",  "DELETE FROM federation_peers", DENIED },
	{ "postrider_outboxd",  "INSERT INTO federation_peers (origin, host) VALUES ('o', 'h')", DENIED },
	{ "postrider_outboxd",  "UPDATE instance_settings SET instance_name = 'N'", DENIED },
	{ "postrider_outboxd",  "DELETE FROM dead_letters", DENIED },
	{ "postrider_outboxd",  "DELETE FROM fediverse_outbound_queue", DENIED },
	{ "postrider_outboxd",  "SELECT * FROM fediverse_inbound", DENIED },
	{ "postrider_outboxd",  "SELECT * FROM fediverse_receive()", DENIED },
	{ "postrider_frontd",   "DELETE FROM fediverse_inbound", DENIED },
	{ "postrider_frontd",   "SELECT * FROM fediverse_receive()", DENIED },
	{ "postrider_frontd",   "DELETE FROM fediverse_actors", DENIED },
	{ "postrider_outboxd",  "UPDATE fediverse_actors SET private_key = ''", DENIED },
	{ "postrider_filed",    "SELECT * FROM federation_file_queue", "" },
	{ "postrider_filed",    "SELECT * FROM users", DENIED },
	{ "postrider_filed",    "UPDATE dm_messages SET content = ''", DENIED },
	{ "postrider_filed",    "SELECT * FROM sessions", DENIED },
	{ "postrider_filed",    "DELETE FROM federation_outbox", DENIED },
	{ "postrider_filed",    "UPDATE federation_peers SET status = 'active'", DENIED },
	{ "postrider_janitord", "DELETE FROM nonces WHERE seen_at < now()", "" },
	{ "postrider_janitord", "DELETE FROM sessions WHERE expires_at < now()", "" },
	{ "postrider_janitord", "DELETE FROM peer_rates WHERE since < now()", "" },
	{ "postrider_janitord", "DELETE FROM fediverse_inbound WHERE received_at < now()", "" },
	{ "postrider_janitord", "DELETE FROM fediverse_keys WHERE fetched_at < now()", "" },
	{ "postrider_janitord", "UPDATE fediverse_keys SET pem = ''", DENIED },
	{ "postrider_janitord", "SELECT * FROM ops.queue", "" },
	{ "postrider_janitord", "SELECT * FROM ops.watch()", "" },
	{ "postrider_janitord", "SELECT * FROM ops.dead_letters", DENIED },
	{ "postrider_janitord", "UPDATE federation_outbox SET payload = ''", DENIED },
	{ "postrider_janitord", "SELECT * FROM dm_messages", DENIED },
	{ "postrider_janitord", "UPDATE users SET is_admin = true", DENIED },
	{ "postrider_janitord", "DELETE FROM audit", DENIED },
	{ "postrider_janitord", "INSERT INTO sessions (user_id, key_hash, expires_at) VALUES (1, '', now())", DENIED },
	{ "postrider_app",      "SELECT * FROM users", DENIED },
	{ "postrider_app",      "SELECT * FROM instance_settings", DENIED },
	{ "postrider_app",      "SELECT * FROM ops.queue", DENIED },
	{ "postrider_app",      "CREATE TABLE mine (a int)", DENIED },
	{ "postrider_app",      "SELECT fediverse_enqueue('a', '{}', 'https://far.example/inbox')", "" },
	{ "postrider_app",      "SELECT * FROM fediverse_outbound_queue", DENIED },
	{ "postrider_app",      "SELECT * FROM fediverse_receive()", "" },
	{ "postrider_app",      "SELECT fediverse_actor('alice')", "" },
	{ "postrider_app",      "SELECT * FROM fediverse_followers(gen_random_uuid())", "" },
	{ "postrider_app",      "SELECT fediverse_follower_settle(gen_random_uuid(), 'x', true)", "" },
	{ "postrider_app",      "SELECT * FROM fediverse_following(gen_random_uuid())", "" },
	{ "postrider_app",      "SELECT * FROM fediverse_following", DENIED },
	{ "postrider_app",      "SELECT * FROM fediverse_inbound", DENIED },
	{ "postrider_app",      "SELECT * FROM fediverse_keys", DENIED },
	{ "postrider_app",      "SELECT * FROM fediverse_actors", DENIED },
	{ "postrider_app",      "SELECT * FROM fediverse_followers", DENIED },
	{ "postrider_app",      "INSERT INTO fediverse_outbound_queue DEFAULT VALUES", DENIED },
	{ "postrider_app",      "SELECT private_key FROM fediverse_actors", DENIED },
	{ "postrider_app",      "SELECT fediverse_revive('far.example')", DENIED },
};

/* Group roles act through whoever is a member. */
static const struct right group_rights[] = {
	{ "postrider_monitor",  "SELECT * FROM ops.queue", "" },
	{ "postrider_monitor",  "SELECT * FROM ops.peers", "" },
	{ "postrider_monitor",  "SELECT * FROM ops.stuck", "" },
	{ "postrider_monitor",  "SELECT * FROM ops.workers", "" },
	{ "postrider_monitor",  "SELECT ops.peer_allow('https://a.example')", DENIED },
	{ "postrider_monitor",  "SELECT * FROM federation_peers", DENIED },
	{ "postrider_operator", "SELECT * FROM ops.peers", "" },
	{ "postrider_operator", "SELECT ops.peer_allow('https://a.example')", "" },
	{ "postrider_operator", "SELECT ops.make_admin('nobody')", "PT404" },
	{ "postrider_operator", "SELECT ops.audit_write('x', 'x', 'x', 1)", DENIED },
	{ "postrider_operator", "SELECT * FROM federation_peers", DENIED },
	{ "postrider_operator", "UPDATE users SET is_admin = true", DENIED },
};
/* clang-format on */

Test(grants, each_role_may_what_it_needs_and_nothing_else)
{
	for (size_t i = 0; i < COUNT(rights); i++)
		cr_expect_str_eq(state_as(rights[i].role, rights[i].statement),
		    rights[i].state, "%s: %s", rights[i].role,
		    rights[i].statement);
}

Test(grants, operators_act_through_functions_and_monitors_look)
{
	for (size_t i = 0; i < COUNT(group_rights); i++) {
		const struct right *right = &group_rights[i];

		cr_expect_str_eq(state_as("postgres",
				     arena_printf(arena, "SET ROLE %s; %s",
					 right->role, right->statement)),
		    right->state, "%s: %s", right->role, right->statement);
	}
}

Test(grants, no_table_is_forgotten)
{
	cr_expect_null(one_text(
	    "SELECT string_agg(relname, ' ') AS t FROM pg_class c"
	    " WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'"
	    " AND NOT EXISTS (SELECT FROM aclexplode(c.relacl) a"
	    " JOIN pg_roles r ON r.oid = a.grantee"
	    " WHERE r.rolname LIKE 'postrider%')"));
}

Test(grants, nobody_may_truncate_or_own)
{
	cr_expect_null(one_text(
	    "SELECT string_agg(relname || ' ' || privilege_type, ', ') AS t"
	    " FROM pg_class c, aclexplode(c.relacl) a"
	    " JOIN pg_roles r ON r.oid = a.grantee"
	    " WHERE r.rolname LIKE 'postrider%' AND a.privilege_type IN"
	    " ('TRUNCATE', 'REFERENCES', 'TRIGGER')"));
}

/* ---- looking ---- */

static const char peers_of_every_kind[] =
    "INSERT INTO federation_peers (id, origin, host, status, hmac_secret,"
    " transport_failures, auth_failures, last_accepted_at, paused_until,"
    " lease_worker, lease_until) VALUES"
    " (1, 'https://well.example', 'well.example', 'active', 'x', 0, 0,"
    "  now(), NULL, 77, now() + interval '1 minute'),"
    " (2, 'https://slow.example', 'slow.example', 'active', 'x', 2, 0,"
    "  now(), NULL, NULL, '-infinity'),"
    " (3, 'https://gone.example', 'gone.example', 'unreachable', 'x', 9, 0,"
    "  now() - interval '2 hours', NULL, NULL, '-infinity'),"
    " (4, 'https://auth.example', 'auth.example', 'active', 'x', 0, 3,"
    "  '2026-01-02 03:04', NULL, NULL, '-infinity'),"
    " (5, 'https://asks.example', 'asks.example', 'awaiting_approval', NULL,"
    "  0, 0, NULL, NULL, NULL, '-infinity'),"
    " (6, 'https://rest.example', 'rest.example', 'active', 'x', 0, 0,"
    "  now(), now() + interval '1 hour', NULL, '-infinity'),"
    " (7, 'https://new.example', 'new.example', 'pending', NULL,"
    "  0, 0, NULL, NULL, NULL, '-infinity'),"
    " (8, 'https://out.example', 'out.example', 'revoked', NULL,"
    "  0, 0, NULL, NULL, NULL, '-infinity');"
    "INSERT INTO users (id, username, password_hash, home_instance,"
    " home_user_id) VALUES (1, 'ada', 'x', NULL, NULL),"
    " (2, 'bob@far', 'x', 'far.example', '1'),"
    " (3, 'eve@alone', 'x', 'alone.example', '1');"
    "INSERT INTO dm_channels (id, pair_low, pair_high) VALUES (1, 1, 2);"
    "INSERT INTO dm_members (dm_channel_id, user_id) VALUES (1, 1), (1, 2);";

static void entries(int peer, int count)
{
	test_db_script(database,
	    arena_printf(arena,
		"INSERT INTO federation_outbox (peer_id, context_type,"
		" context_id, event_type, entity_id, payload, created_at,"
		" expires_at) SELECT %d, 'dm', '1', 'create', n::text, '',"
		" now() - interval '10 minutes', now() + interval '1 day'"
		" FROM generate_series(1, %d) n",
		peer, count));
}

Test(ops, peers_are_told_in_words_worst_first)
{
	test_db_script(database, peers_of_every_kind);
	cr_expect_str_eq(
	    one_text("SELECT string_agg(split_part("
		     "replace(peer, 'https://', ''), '.', 1) || ' '"
		     " || state, ', ') AS t FROM ops.peers"),
	    "auth refuses our signature, gone unreachable, slow failing, "
	    "far no peer, asks awaiting approval, new pending, rest paused, "
	    "well active, out revoked");
	cr_expect_str_eq(one_text("SELECT meaning AS t FROM ops.peers"
				  " WHERE state = 'refuses our signature'"),
	    "refuses our signature since 2026-01-02 03:04: the secrets or the "
	    "clocks differ");
	cr_expect_str_eq(one_text("SELECT leased_by::text AS t FROM ops.peers"
				  " WHERE state = 'active'"),
	    "77");
}

Test(ops, peers_say_how_they_answer_and_what_they_take)
{
	test_db_script(database, peers_of_every_kind);
	test_db_script(database,
	    "UPDATE federation_peers SET latency_ms = 25300,"
	    " remote_max_upload_size = 25 * 1024 * 1024,"
	    " retry_batch_limit = 6, limit_per_minute = 90,"
	    " limited_at = now() - interval '2 minutes' WHERE id = 1;"
	    "UPDATE federation_peers SET transport_failures = 0,"
	    " last_code = 429, next_attempt_at = now() + interval '1 minute',"
	    " limited_at = now() - interval '2 hours' WHERE id = 2");
	cr_expect_str_eq(
	    one_text("SELECT concat_ws('|', latency_ms, limits, meaning) AS t"
		     " FROM ops.peers WHERE peer = 'https://well.example'"),
	    "25300|90 batches a minute, batches of 6, files up to 25 MB|"
	    "well, but it takes 25 s to answer");
	cr_expect_str_eq(
	    one_text("SELECT concat_ws('|', state, limits) AS t"
		     " FROM ops.peers WHERE peer = 'https://slow.example'"),
	    "asks us to wait");
	entries(2, 1);
	cr_expect_str_eq(
	    one_text("SELECT why_stuck || ', ' || split_part(what_to_do, ' in"
		     " ', 1) AS t FROM ops.stuck"),
	    "peer asks us to wait, wait: it is tried again");
}

/* What is written and deleted all the time is vacuumed by its own rule. */
Test(ops, every_queue_has_its_own_vacuum)
{
	cr_expect_null(one_text(
	    "SELECT string_agg(c.relname, ' ') AS t FROM pg_class c"
	    " WHERE c.relkind = 'r'"
	    " AND c.relname IN ('federation_outbox', 'federation_peers',"
	    " 'outbox_presented', 'dead_letters', 'federation_file_queue',"
	    " 's2s_requests', 'nonces', 'peer_rates', 'workers',"
	    " 'fediverse_outbound_queue', 'fediverse_domains')"
	    " AND NOT coalesce(array_to_string(c.reloptions, ' ')"
	    " ~ 'autovacuum_vacuum_scale_factor=0(\\.0[0-9]*)? '"
	    ", false)"));
}

Test(ops, queue_counts_what_waits)
{
	test_db_script(database, peers_of_every_kind);
	entries(1, 5);
	entries(3, 2);
	entries(99, 1);
	test_db_script(database,
	    "UPDATE federation_outbox SET retry_at = now() WHERE peer_id = 3;"
	    "INSERT INTO dead_letters (queue, why) VALUES ('outbox', 'x')");
	cr_expect_str_eq(
	    one_text("SELECT concat_ws(' ', waiting, leased, set_aside, dead,"
		     " paused, oldest > interval '9 minutes') AS t"
		     " FROM ops.queue WHERE queue = 'outbox'"),
	    "6 1 2 1 1 t");
	cr_expect_str_eq(one_text("SELECT string_agg(queue, ' ') AS t"
				  " FROM ops.queue"),
	    "outbox fediverse files requests");
	cr_expect_eq(test_db_number(database,
			 "SELECT waiting AS n FROM ops.peers"
			 " WHERE peer = 'https://well.example'"),
	    5);
}

/* Of daemons that were seen within a minute. */
Test(ops, queue_says_how_fast_it_drains)
{
	test_db_script(database, peers_of_every_kind);
	entries(1, 90);
	cr_expect_str_eq(
	    one_text("SELECT concat_ws(' ', 'x', per_minute, drains_in) AS t"
		     " FROM ops.queue WHERE queue = 'outbox'"),
	    "x");
	test_db_script(database,
	    "INSERT INTO workers (id, daemon, instance, host, pid, version,"
	    " schema, last_seen_at, rates) VALUES"
	    " (1, 'outboxd', 'a', 'h', 1, '1', 1, now(), '{\"outbox\":20}'),"
	    " (2, 'outboxd', 'b', 'h', 2, '1', 1, now(), '{\"outbox\":40}'),"
	    " (3, 'outboxd', 'c', 'h', 3, '1', 1,"
	    "  now() - interval '2 minutes', '{\"outbox\":999}')");
	cr_expect_str_eq(
	    one_text("SELECT concat_ws(' ', per_minute, drains_in) AS t"
		     " FROM ops.queue WHERE queue = 'outbox'"),
	    "60 00:01:30");
}

Test(ops, stuck_says_why_and_what_to_do)
{
	test_db_script(database, peers_of_every_kind);
	entries(1, 1);
	entries(3, 2);
	entries(99, 1);
	entries(5, 1);
	test_db_script(database,
	    "INSERT INTO federation_outbox (peer_id, context_type, context_id,"
	    " event_type, entity_id, payload, expires_at, retry_at, reason)"
	    " VALUES (1, 'dm', '1', 'edit', '1', '', now(),"
	    " now() + interval '1 minute', 'unknown_message')");
	cr_expect_str_eq(
	    one_text("SELECT string_agg(concat_ws('|', peer, type, why_stuck),"
		     " E'\\n' ORDER BY why_stuck) AS t FROM ops.stuck"),
	    "99|create|its peer is gone\n"
	    "https://asks.example|create|peer is awaiting approval\n"
	    "https://gone.example|create|peer is unreachable\n"
	    "https://well.example|edit|set aside: the peer refused it for now");
	cr_expect_str_eq(one_text("SELECT what_to_do AS t FROM ops.stuck"
				  " WHERE peer LIKE '%asks%'"),
	    "ops.peer_approve('https://asks.example')");
}

/* ---- acting ---- */

static const char *audit(void)
{
	return one_text("SELECT string_agg(concat_ws('|', action, target,"
			" reason, rows), ' ' ORDER BY id) AS t FROM audit");
}

Test(ops, an_origin_is_allowed_once)
{
	cr_expect_str_eq(
	    one_text("SELECT concat_ws('|', peer, state) AS t"
		     " FROM ops.peer_allow(' https://A.example/', 'known')"),
	    "https://a.example|no peer");
	cr_expect_eq(test_db_number(database,
			 "SELECT count(*) AS n FROM federation_allowed_origins"
			 " WHERE origin = 'https://a.example'"),
	    1);
	cr_expect_str_eq(one_text("SELECT meaning AS t"
				  " FROM ops.peer_allow('https://a.example')"),
	    "was allowed already");
	cr_expect_str_eq(audit(),
	    "peer_allow|https://a.example|known|1 "
	    "peer_allow|https://a.example|0");
	cr_expect_str_eq(
	    state_as("postgres", "SELECT ops.peer_allow('a.example')"),
	    "PT400");
}

Test(ops, an_approval_asks_outboxd_to_counter)
{
	test_db_script(database, peers_of_every_kind);
	cr_expect_str_eq(one_text("SELECT state AS t FROM"
				  " ops.peer_approve('https://asks.example')"),
	    "pending");
	cr_expect_str_eq(
	    one_text("SELECT concat_ws('|', r.kind, r.origin, p.status,"
		     " r.deadline > now()) AS t FROM s2s_requests r"
		     " JOIN federation_peers p ON p.id = r.peer_id"),
	    "counter|https://asks.example|pending|t");
	cr_expect_str_eq(state_as("postgres",
			     "SELECT ops.peer_approve('https://asks.example')"),
	    "PT404", "only once");
	cr_expect_str_eq(state_as("postgres",
			     "SELECT ops.peer_approve('https://well.example')"),
	    "PT404");
	cr_expect_str_eq(audit(), "peer_approve|https://asks.example|1");
}

Test(ops, a_denial_is_remembered)
{
	test_db_script(database, peers_of_every_kind);
	cr_expect_str_eq(
	    one_text("SELECT state AS t FROM"
		     " ops.peer_deny('https://asks.example', 'no')"),
	    "revoked");
	cr_expect_str_eq(one_text("SELECT status AS t FROM federation_peers"
				  " WHERE host = 'asks.example'"),
	    "revoked");
	cr_expect_str_eq(state_as("postgres",
			     "SELECT ops.peer_deny('https://well.example')"),
	    "PT404");
	cr_expect_str_eq(audit(), "peer_deny|https://asks.example|no|1");
}

Test(ops, only_natives_become_administrators)
{
	test_db_script(database, peers_of_every_kind);
	cr_expect_str_eq(one_text("SELECT meaning AS t"
				  " FROM ops.make_admin('ada', 'first')"),
	    "is an administrator now");
	cr_expect_eq(test_db_number(database,
			 "SELECT count(*) AS n FROM users WHERE is_admin"),
	    1);
	cr_expect_str_eq(
	    state_as("postgres", "SELECT ops.make_admin('bob@far')"), "PT404");
	cr_expect_str_eq(audit(), "make_admin|ada|first|1");
}
