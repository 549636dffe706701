#include <criterion/criterion.h>

#include "tests/lib/test_db.h"

/* The functions of ops as calls: who may, what they take, what they leave. */

static char *database;
static struct arena *arena;

static const char world[] =
    "INSERT INTO federation_peers (id, origin, host, status, hmac_secret,"
    " next_attempt_at, lease_worker, lease_token, lease_until) VALUES"
    " (1, 'https://a.example', 'a.example', 'active', 'x',"
    "  now() + interval '1 hour', NULL, NULL, '-infinity'),"
    " (2, 'http://b.localhost:8080', 'b.localhost', 'active', 'x', now(),"
    "  77, gen_random_uuid(), now() + interval '1 hour'),"
    " (3, 'https://c.example', 'c.example', 'revoked', NULL, now(),"
    "  NULL, NULL, '-infinity');"
    "INSERT INTO federation_outbox (peer_id, context_type, context_id,"
    " event_type, entity_id, payload, created_at, expires_at, retry_at,"
    " reason) SELECT 1 + n % 2, 'dm', '1',"
    " CASE WHEN n % 5 = 0 THEN 'update' ELSE 'create' END, n::text, '',"
    " now() - make_interval(hours => n), now() + interval '1 day',"
    " CASE WHEN n % 4 = 0 THEN now() + interval '1 hour' END,"
    " CASE WHEN n % 4 = 0 THEN 'unknown_message' END"
    " FROM generate_series(1, 20) n;"
    "INSERT INTO federation_outbox (peer_id, context_type, context_id,"
    " event_type, entity_id, payload, expires_at) VALUES"
    " (99, 'dm', '1', 'create', 'orphan', '', now());"
    "INSERT INTO dead_letters (queue, peer_id, peer, entry_id, context_type,"
    " context_id, event_type, entity_id, payload, encryption_version,"
    " created_at, died_at, why, peer_answer) SELECT 'outbox', 1 + n % 3,"
    " CASE n % 3 WHEN 0 THEN 'https://a.example' WHEN 1 THEN"
    " 'http://b.localhost:8080' ELSE 'https://c.example' END, 1000 - n, 'dm',"
    " '1', 'create', n::text, '\"n\":' || n, 7, '2026-01-02 03:04',"
    " now() - make_interval(days => n), 'refused too often',"
    " CASE WHEN n % 2 = 0 THEN 'processing_error' END"
    " FROM generate_series(1, 9) n;";

static void set_up(void)
{
	test_db_needed();
	database = test_db_create();
	arena = arena_new();
	test_db_script(database, world);
}

static void tear_down(void)
{
	arena_free(&arena);
	test_db_drop(&database);
}

TestSuite(operate_call, .init = set_up, .fini = tear_down);

static const char *one_text(const char *query)
{
	return test_db_text(arena, database, query);
}

/* The SQLSTATE of a statement run as a member of a group role, "" when it
 * works; nothing of it stays. */
static const char *state_as(const char *role, const char *statement)
{
	AUTO(conn_free) struct conn *conn = test_db_conn(database);
	struct err err = { 0 };
	const char *script = arena_printf(
	    arena, "BEGIN; SET ROLE %s; %s; ROLLBACK", role, statement);

	if (conn_script(conn, script, &err))
		return "";
	return arena_text(arena, conn_sqlstate(conn));
}

/* ---- who may, and what is refused ---- */

#define DENIED "42501"

/* clang-format off */
static const char *const acts[] = {
	"SELECT ops.peer_pause('a.example', 'x')",
	"SELECT ops.peer_resume('a.example')",
	"SELECT ops.retry_now()",
	"SELECT ops.discard('a.example', why => 'x')",
	"SELECT ops.replay('a.example', why => 'x')",
	"SELECT ops.discard_dead('a.example', why => 'x')",
};

static const char *const looks[] = {
	"SELECT * FROM ops.dead_letters",
	"SELECT * FROM ops.workers",
	"SELECT * FROM ops.stuck",
	"SELECT * FROM ops.peers",
	"SELECT * FROM ops.queue",
	"SELECT * FROM ops.audit",
};
/* clang-format on */

Test(operate_call, operators_act_monitors_look_and_others_do_neither)
{
	static const char *const others[] = { "postrider_app",
		"postrider_frontd", "postrider_outboxd", "postrider_filed" };

	for (size_t i = 0; i < COUNT(acts); i++) {
		cr_expect_str_eq(
		    state_as("postrider_operator", acts[i]), "", "%s", acts[i]);
		cr_expect_str_eq(state_as("postrider_monitor", acts[i]), DENIED,
		    "%s", acts[i]);
	}
	for (size_t i = 0; i < COUNT(looks); i++) {
		cr_expect_str_eq(state_as("postrider_operator", looks[i]), "",
		    "%s", looks[i]);
		cr_expect_str_eq(state_as("postrider_monitor", looks[i]), "",
		    "%s", looks[i]);
	}
	for (size_t i = 0; i < COUNT(others); i++) {
		cr_expect_str_eq(state_as(others[i], acts[0]), DENIED);
		cr_expect_str_eq(state_as(others[i], looks[0]), DENIED);
	}
}

Test(operate_call, what_only_helps_is_called_by_nobody)
{
	cr_expect_str_eq(
	    state_as("postrider_operator", "SELECT ops.peers_due(NULL, NULL)"),
	    DENIED);
	cr_expect_str_eq(state_as("postrider_operator",
			     "SELECT ops.peer_named('a.example')"),
	    DENIED);
	cr_expect_str_eq(state_as("postrider_operator",
			     "SELECT * FROM ops.letters_to_replay"),
	    DENIED);
}

Test(operate_call, unclear_orders_are_refused)
{
	/* clang-format off */
	static const struct { const char *call; const char *state; } cases[] = {
		{ "peer_pause('no.example', 'x')",                    "PT404" },
		{ "peer_pause(NULL, 'x')",                            "PT404" },
		{ "peer_pause('a.example', ' ')",                     "PT400" },
		{ "peer_pause('a.example', 'x', interval '-1 hour')", "PT400" },
		{ "peer_resume('no.example')",                        "PT404" },
		{ "retry_now('no.example')",                          "PT404" },
		{ "discard('a.example')",                             "PT400" },
		{ "discard('a.example', why => '')",                  "PT400" },
		{ "discard(why => 'everything')",                     "PT400" },
		{ "discard('a.example', why => 'x', at_most => 0)",   "PT400" },
		{ "replay(why => 'everything')",                      "PT400" },
		{ "replay('a.example')",                              "PT400" },
		{ "discard_dead('no.example', why => 'x')",           "PT404" },
	};
	/* clang-format on */

	for (size_t i = 0; i < COUNT(cases); i++)
		cr_expect_str_eq(
		    state_as("postrider_operator",
			arena_printf(arena, "SELECT ops.%s", cases[i].call)),
		    cases[i].state, "%s", cases[i].call);
}

Test(operate_call, a_peer_is_found_however_it_is_spelled)
{
	/* clang-format off */
	static const struct { const char *typed; int64_t id; } cases[] = {
		{ "https://a.example",         1 },
		{ " HTTPS://A.Example/ ",      1 },
		{ "a.example",                 1 },
		{ "A.example.",                1 },
		{ "a.example/",                1 },
		{ "https://a.example:443",     1 },
		{ "b.localhost",               2 },
		{ "b.localhost:8080",          2 },
		{ "http://B.localhost:8080/",  2 },
		{ "c.example",                 3 },
		{ "99",                       99 },
	};
	/* clang-format on */

	for (size_t i = 0; i < COUNT(cases); i++)
		cr_expect_eq(
		    test_db_number(database,
			arena_printf(arena, "SELECT ops.peer_named('%s') AS n",
			    cases[i].typed)),
		    cases[i].id, "%s", cases[i].typed);
}

/* ---- what is chosen ---- */

Test(operate_call, peer_type_reason_and_age_choose)
{
	/* clang-format off */
	static const struct { const char *call; int64_t entries; } cases[] = {
		{ "discard('a.example', ",                            10 },
		{ "discard(type => 'update', ",                        4 },
		{ "discard('a.example', 'update', ",                   2 },
		{ "discard(reason_word => 'unknown_message', ",        5 },
		{ "discard(older_than => '15.5 hours', ",              5 },
		{ "discard(older_than => '0', ",                      21 },
		{ "discard('99', ",                                    1 },
		{ "replay('a.example', ",                              3 },
		{ "replay(reason_word => 'processing_error', ",        2 },
		{ "replay(older_than => '7.5 days', ",                 1 },
		{ "replay('c.example', ",                              0 },
		{ "discard_dead('c.example', ",                        3 },
		{ "discard_dead(reason_word => 'refused too often', ", 9 },
	};
	/* clang-format on */

	for (size_t i = 0; i < COUNT(cases); i++)
		cr_expect_eq(test_db_number(database,
				 arena_printf(arena,
				     "SELECT entries AS n FROM ops.%s"
				     "why => 'x', dry_run => true)",
				     cases[i].call)),
		    cases[i].entries, "%s", cases[i].call);
}

static const char everything[] =
    "SELECT md5(concat("
    "(SELECT string_agg(p::text, '' ORDER BY id) FROM federation_peers p),"
    "(SELECT string_agg(o::text, '' ORDER BY id) FROM federation_outbox o),"
    "(SELECT string_agg(d::text, '' ORDER BY id) FROM dead_letters d),"
    "(SELECT string_agg(a::text, '' ORDER BY id) FROM audit a))) AS t";

Test(operate_call, a_dry_run_counts_as_much_and_changes_nothing)
{
	/* clang-format off */
	static const struct { const char *column; const char *call; } cases[] = {
		{ "waiting", "peer_pause('a.example', 'x'"           },
		{ "waiting", "peer_resume('a.example', 'x'"          },
		{ "entries", "retry_now('a.example'"                 },
		{ "entries", "retry_now(type => 'create'"            },
		{ "peers",   "retry_now('a.example'"                 },
		{ "entries", "discard(type => 'update', why => 'x'"  },
		{ "peers",   "discard(older_than => '0', why => 'x'" },
		{ "entries", "replay('b.localhost', why => 'x'"      },
		{ "peers",   "replay(older_than => '0', why => 'x'"  },
		{ "entries", "discard_dead('a.example', why => 'x'"  },
	};
	/* clang-format on */

	for (size_t i = 0; i < COUNT(cases); i++) {
		const char *before = one_text(everything);
		int64_t counted = test_db_number(database,
		    arena_printf(arena,
			"SELECT %s AS n FROM ops.%s, dry_run => true)",
			cases[i].column, cases[i].call));
		const char *after = one_text(everything);

		cr_expect_str_eq(after, before, "%s", cases[i].call);
		cr_expect_eq(
		    test_db_number(database,
			arena_printf(arena, "SELECT %s AS n FROM ops.%s)",
			    cases[i].column, cases[i].call)),
		    counted, "%s", cases[i].call);
		cr_expect_str_neq(
		    one_text(everything), before, "%s", cases[i].call);
		test_db_script(database,
		    arena_printf(arena,
			"TRUNCATE federation_peers, outbox_presented,"
			" federation_outbox,"
			" dead_letters, audit; %s",
			world));
	}
}

Test(operate_call, batches_go_on_where_the_last_one_ended)
{
	static const char call[] =
	    "SELECT concat_ws('|', entries, remaining) AS t FROM"
	    " ops.discard('a.example', why => 'x', at_most => 4)";

	cr_expect_str_eq(one_text(call), "4|6");
	cr_expect_eq(test_db_number(database,
			 "SELECT count(*) AS n FROM federation_outbox"
			 " WHERE peer_id = 1 AND id <= 8"),
	    0, "the oldest first");
	cr_expect_str_eq(one_text(call), "4|2");
	cr_expect_str_eq(one_text(call), "2|0");
	cr_expect_str_eq(one_text(call), "0|0");
}

/* Forty thousand rows on more pages than a look reads. */
Test(operate_call, what_waits_is_told_exactly_or_nearly)
{
	test_db_script(database,
	    "INSERT INTO federation_outbox (peer_id, context_type, context_id,"
	    " event_type, entity_id, payload, expires_at) SELECT"
	    " CASE WHEN n <= 3 THEN 2 ELSE 1 END, 'dm', '1', 'create',"
	    " n::text, repeat('x', 500), now()"
	    " FROM generate_series(1, 40000) n;"
	    "DELETE FROM federation_outbox WHERE id <= 20");
	cr_expect_eq(test_db_number(database,
			 "SELECT waiting AS n FROM ops.peers"
			 " WHERE peer = 'http://b.localhost:8080'"),
	    3);
	cr_expect_eq(test_db_number(database,
			 "SELECT (waiting BETWEEN 34000 AND 46000)::int AS n"
			 " FROM ops.peers WHERE peer = 'https://a.example'"),
	    1);
}

/* ---- what is left behind ---- */

Test(operate_call, a_replayed_entry_is_the_one_that_died)
{
	test_db_number(database,
	    "SELECT entries AS n FROM ops.replay('a.example', why => 'x')");
	cr_expect_str_eq(
	    one_text("SELECT string_agg(concat_ws('|', peer_id, id, entity_id,"
		     " payload, encryption_version, created_at::date,"
		     " expires_at > now() + interval '29 days', refusals,"
		     " retry_at), ' ' ORDER BY id) AS t"
		     " FROM federation_outbox WHERE id > 900"),
	    "1|991|9|\"n\":9|7|2026-01-02|t|0 "
	    "1|994|6|\"n\":6|7|2026-01-02|t|0 "
	    "1|997|3|\"n\":3|7|2026-01-02|t|0");
	cr_expect_eq(
	    test_db_number(database, "SELECT count(*) AS n FROM dead_letters"),
	    6);
	cr_expect_eq(test_db_number(database,
			 "SELECT count(*) AS n FROM federation_peers"
			 " WHERE id = 1 AND next_attempt_at <= now()"),
	    1, "due at once");
}

Test(operate_call, what_a_transaction_books_right_now_is_left_alone)
{
	AUTO(conn_free) struct conn *holder = test_db_conn(database);
	struct err err = { 0 };

	cr_assert(conn_script(holder,
	    "BEGIN; DELETE FROM federation_outbox WHERE peer_id = 1 AND id = 2",
	    &err));
	cr_expect_str_eq(
	    one_text("SELECT concat_ws('|', entries, remaining, meaning) AS t"
		     " FROM ops.discard('a.example', why => 'x')"),
	    "9|1|discarded; call it again for the rest");
	cr_assert(conn_script(holder, "COMMIT", &err));
}

Test(operate_call, each_act_is_audited_with_who_and_why)
{
	for (size_t i = 0; i < COUNT(acts); i++)
		test_db_script(database,
		    arena_printf(arena,
			"SET SESSION AUTHORIZATION postrider_operator; %s",
			acts[i]));
	cr_expect_str_eq(
	    one_text("SELECT string_agg(concat_ws('|', who, action, target,"
		     " reason, rows), ' ' ORDER BY id) AS t FROM audit"),
	    "postrider_operator|peer_pause|https://a.example|x|1 "
	    "postrider_operator|peer_resume|https://a.example|1 "
	    "postrider_operator|retry_now|5 "
	    "postrider_operator|discard|https://a.example|x|10 "
	    "postrider_operator|replay|https://a.example|x|3 "
	    "postrider_operator|discard_dead|https://a.example|x|0");
}

Test(operate_call, every_queue_is_swept_by_settings_of_its_own)
{
	cr_expect_null(one_text(
	    "SELECT string_agg(t, ' ') AS t FROM unnest(ARRAY["
	    "'federation_peers', 'federation_outbox', 's2s_requests',"
	    " 'fediverse_outbound_queue', 'federation_file_queue', 'nonces',"
	    " 'dead_letters', 'workers']) t WHERE NOT EXISTS (SELECT FROM"
	    " pg_class c, unnest(c.reloptions) o WHERE c.oid = t::regclass"
	    " AND o LIKE 'autovacuum_vacuum_threshold=%')"));
}
