/* Activities and their domains as an operator sees them, and acts on them. */
#include <criterion/criterion.h>

#include "tests/integration/fediverse_site.h"

static char *database;
static struct arena *arena;

/* Domains of every kind; two rows for each, of which one waits for its time,
 * and what ended. */
static const char world[] =
    "UPDATE instance_settings SET fediverse = true;"
    "INSERT INTO fediverse_domains (domain, state, gone, failures,"
    " failure_days, died_at, not_before, lease_worker, lease_token,"
    " lease_until) VALUES"
    " ('well.example', 'closed', false, 0, 0, NULL, '-infinity', 77,"
    "  gen_random_uuid(), now() + interval '1 minute'),"
    " ('slow.example', 'closed', false, 2, 1, NULL, '-infinity', NULL, NULL,"
    "  '-infinity'),"
    " ('down.example', 'open', false, 5, 2, NULL, now() + interval '1 hour',"
    "  NULL, NULL, '-infinity'),"
    " ('busy.example', 'closed', false, 0, 0, NULL, now() + interval '1 hour',"
    "  NULL, NULL, '-infinity'),"
    " ('dead.example', 'dead', false, 0, 7, now() - interval '2 days',"
    "  '-infinity', NULL, NULL, '-infinity'),"
    " ('gone.example', 'dead', true, 0, 0, now(), '-infinity', NULL, NULL,"
    "  '-infinity'),"
    " ('rest.example', 'closed', false, 0, 0, NULL, '-infinity', NULL, NULL,"
    "  '-infinity');"
    "UPDATE fediverse_domains SET paused_until = 'infinity',"
    " paused_by = 'olga', paused_reason = 'floods us'"
    " WHERE domain = 'rest.example';"
    "INSERT INTO fediverse_outbound_queue (activity_id, payload_json,"
    " target_inbox, target_domain, attempts, next_retry_at, created_at)"
    " SELECT 'a' || n, '{}', 'https://' || d || '.example/inbox',"
    " d || '.example', n - 1, CASE n WHEN 2 THEN now() + interval '1 hour'"
    " END, now() - make_interval(hours => n)"
    " FROM unnest('{well,down,rest,new}'::text[]) d, generate_series(1, 2) n;"
    "INSERT INTO fediverse_outbound_queue (activity_id, payload_json,"
    " target_inbox, target_domain, status, attempts, unauthorized, last_error,"
    " created_at) SELECT 'e' || n, '{}', 'https://' || d || '.example/inbox',"
    " d || '.example', CASE n WHEN 1 THEN 'failed' ELSE 'dead' END, 8, 2,"
    " 'no', now() - make_interval(days => n)"
    " FROM unnest('{well,dead}'::text[]) d, generate_series(1, 3) n;";

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

TestSuite(fediverse_operate, .init = set_up, .fini = tear_down, .timeout = 60);

static const char *one_text(const char *query)
{
	return test_db_text(arena, database, query);
}

static int64_t number(const char *query)
{
	return test_db_number(database, query);
}

/* The SQLSTATE of a statement run as a member of a role, "" when it works;
 * nothing of it stays. */
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

/* ---- looking ---- */

Test(fediverse_operate, domains_are_told_in_words_worst_first)
{
	cr_expect_str_eq(
	    one_text("SELECT string_agg(concat_ws(' ', split_part(domain, '.',"
		     " 1), state, waiting, ended), ', ') AS t FROM"
		     " ops.domains"),
	    "dead dead 0 3, gone gone 0 0, down unreachable 2 0, "
	    "slow failing 0 0, busy asks us to wait 0 0, rest paused 2 0, "
	    "new new 2 0, well active 2 3");
	cr_expect_str_eq(
	    one_text("SELECT concat_ws('|', leased_by, oldest > '119 min',"
		     " oldest < '121 min', next_attempt) AS t FROM ops.domains"
		     " WHERE domain = 'well.example'"),
	    "77|t|t");
	cr_expect_str_eq(
	    one_text("SELECT concat_ws('|', paused_until, paused_by, reason,"
		     " meaning) AS t FROM ops.domains WHERE state = 'paused'"),
	    "infinity|olga|floods us|we send it nothing for now; "
	    "to end that: ops.domain_resume('rest.example')");
	cr_expect_eq(number("SELECT (since > '47 hours' AND since < '49 hours')"
			    "::int AS n FROM ops.domains WHERE state = 'dead'"),
	    1);
}

Test(fediverse_operate, the_queue_is_told_worst_first_with_what_to_do)
{
	cr_expect_str_eq(
	    one_text("SELECT string_agg(concat_ws(' ', split_part(domain, '.',"
		     " 1), state), ', ') AS t FROM ops.fediverse_queue"),
	    "dead dead, well dead, dead dead, well dead, dead failed, "
	    "well failed, down waiting, new waiting, rest paused, "
	    "well waiting, down waiting, new due, rest paused, well due");
	cr_expect_str_eq(
	    one_text("SELECT string_agg(DISTINCT meaning, E'\\n') AS t"
		     " FROM ops.fediverse_queue WHERE domain LIKE 'dead%'"
		     " AND state = 'dead'"),
	    "the domain is dead; if it lives: "
	    "ops.domain_revive('dead.example'), then ops.fediverse_replay");
	cr_expect_str_eq(
	    one_text("SELECT meaning AS t FROM ops.fediverse_queue"
		     " WHERE domain LIKE 'new%' AND state = 'due'"),
	    "is outboxd running? see ops.workers");
	test_db_script(
	    database, "UPDATE instance_settings SET fediverse = false");
	cr_expect_str_eq(
	    one_text("SELECT meaning AS t FROM ops.fediverse_queue"
		     " WHERE domain LIKE 'new%' AND state = 'due'"),
	    "the setting fediverse is off");
}

Test(fediverse_operate, queue_and_workers_count_activities)
{
	cr_expect_str_eq(
	    one_text("SELECT concat_ws('|', waiting, leased, set_aside, dead,"
		     " paused, oldest > '119 min') AS t FROM ops.queue"
		     " WHERE queue = 'fediverse'"),
	    "4|1|4|6|1|t");
	test_db_script(database,
	    "INSERT INTO workers (id, daemon, instance, host, pid, version,"
	    " schema) VALUES (77, 'outboxd', 'a', 'h', 1, '1', 1)");
	cr_expect_str_eq(one_text("SELECT concat_ws('|', leases, holds) AS t"
				  " FROM ops.workers WHERE worker = 77"),
	    "1|well.example");
}

/* Thirty thousand rows on more pages than a look reads. */
Test(fediverse_operate, what_waits_is_told_exactly_or_nearly)
{
	test_db_script(database,
	    "INSERT INTO fediverse_outbound_queue (activity_id, payload_json,"
	    " target_inbox, target_domain) SELECT 'm' || n, repeat('x', 800),"
	    " 'https://many.example/' || n, 'many.example'"
	    " FROM generate_series(1, 30000) n");
	cr_expect_eq(number("SELECT (waiting BETWEEN 25000 AND 35000)::int AS n"
			    " FROM ops.domains WHERE domain = 'many.example'"),
	    1);
	cr_expect_eq(number("SELECT (waiting BETWEEN 25000 AND 35000)::int AS n"
			    " FROM ops.queue WHERE queue = 'fediverse'"),
	    1);
	cr_expect_eq(number("SELECT waiting AS n FROM ops.domains"
			    " WHERE domain = 'well.example'"),
	    2);
}

/* ---- who may, and what is refused ---- */

#define DENIED "42501"

/* clang-format off */
static const char *const acts[] = {
	"SELECT ops.domain_pause('well.example', 'x')",
	"SELECT ops.domain_resume('rest.example')",
	"SELECT ops.domain_revive('dead.example')",
	"SELECT ops.fediverse_retry_now('down.example')",
	"SELECT ops.fediverse_discard('well.example', why => 'x')",
	"SELECT ops.fediverse_replay('well.example', why => 'x')",
	"SELECT ops.fediverse_discard_dead('dead.example', why => 'x')",
	"SELECT ops.domain_block('down.example', 'x')",
	"SELECT ops.domain_unblock('down.example')",
	"SELECT ops.domain_style('down.example', 'rfc9421', 'x')",
};

static const char *const looks[] = {
	"SELECT * FROM ops.domains",
	"SELECT * FROM ops.fediverse_queue",
	"SELECT * FROM ops.queue",
	"SELECT * FROM ops.workers",
	"SELECT * FROM ops.moved_inboxes",
};
/* clang-format on */

Test(fediverse_operate, operators_act_monitors_look_and_others_do_neither)
{
	static const char *const others[] = { "postrider_app",
		"postrider_frontd", "postrider_outboxd" };

	for (size_t i = 0; i < COUNT(acts); i++) {
		cr_expect_str_eq(
		    state_as("postrider_operator", acts[i]), "", "%s", acts[i]);
		cr_expect_str_eq(state_as("postrider_monitor", acts[i]), DENIED,
		    "%s", acts[i]);
		for (size_t j = 0; j < COUNT(others); j++)
			cr_expect_str_eq(state_as(others[j], acts[i]), DENIED,
			    "%s", acts[i]);
	}
	for (size_t i = 0; i < COUNT(looks); i++) {
		cr_expect_str_eq(state_as("postrider_operator", looks[i]), "",
		    "%s", looks[i]);
		cr_expect_str_eq(state_as("postrider_monitor", looks[i]), "",
		    "%s", looks[i]);
		cr_expect_str_eq(state_as("postrider_app", looks[i]), DENIED,
		    "%s", looks[i]);
	}
	cr_expect_str_eq(
	    state_as("postrider_janitord", "SELECT * FROM ops.queue"), "");
	cr_expect_str_eq(state_as("postrider_operator",
			     "SELECT ops.domain_named('well.example')"),
	    DENIED, "what only helps is called by nobody");
}

Test(fediverse_operate, unclear_orders_are_refused)
{
	/* clang-format off */
	static const struct { const char *call; const char *state; } cases[] = {
		{ "domain_pause('no.example', 'x')",                      "PT404" },
		{ "domain_pause(NULL, 'x')",                              "PT404" },
		{ "domain_pause('well.example', ' ')",                    "PT400" },
		{ "domain_pause('well.example', 'x', interval '-1 h')",   "PT400" },
		{ "domain_resume('no.example')",                          "PT404" },
		{ "domain_resume(NULL)",                                  "PT404" },
		{ "domain_revive('no such')",                             "PT404" },
		{ "domain_revive(NULL)",                                  "PT404" },
		{ "fediverse_retry_now('no.example')",                    "PT404" },
		{ "fediverse_retry_now(NULL)",                            "PT404" },
		{ "fediverse_discard('well.example')",                    "PT400" },
		{ "fediverse_discard(why => 'everything')",               "PT400" },
		{ "fediverse_discard('well.example', why => 'x', at_most => 0)", "PT400" },
		{ "fediverse_replay(why => 'everything')",                "PT400" },
		{ "fediverse_replay('dead.example', why => 'x')",         "PT400" },
		{ "fediverse_replay('no.example', why => 'x')",           "PT404" },
		{ "fediverse_discard_dead('well.example', why => '')",    "PT400" },
		{ "domain_block('well.example', ' ')",                    "PT400" },
		{ "domain_block(NULL, 'x')",                              "PT400" },
		{ "domain_block('no such', 'x')",                         "PT400" },
		{ "domain_block('\xc3\xbcn\xc3\xaf.example', 'x')",       "PT400" },
		{ "domain_unblock(NULL)",                                 "PT400" },
		{ "domain_style('well.example', 'ed25519')",              "PT400" },
		{ "domain_style(NULL, 'cavage')",                         "PT404" },
		{ "domain_style('no.example', 'cavage')",                 "PT404" },
	};
	/* clang-format on */

	for (size_t i = 0; i < COUNT(cases); i++)
		cr_expect_str_eq(
		    state_as("postrider_operator",
			arena_printf(arena, "SELECT ops.%s", cases[i].call)),
		    cases[i].state, "%s", cases[i].call);
}

Test(fediverse_operate, a_domain_is_found_however_it_is_spelled)
{
	static const char *const typed[] = { "well.example", " Well.Example ",
		"well.example.", "https://WELL.example/inbox",
		"well.example:443" };

	for (size_t i = 0; i < COUNT(typed); i++)
		cr_expect_str_eq(
		    one_text(arena_printf(
			arena, "SELECT ops.domain_named('%s') AS t", typed[i])),
		    "well.example", "%s", typed[i]);
}

/* ---- acting ---- */

static const char everything[] =
    "SELECT md5(concat("
    "(SELECT string_agg(d::text, '' ORDER BY domain) FROM fediverse_domains d),"
    "(SELECT string_agg(q::text, '' ORDER BY id)"
    " FROM fediverse_outbound_queue q),"
    "(SELECT string_agg(a::text, '' ORDER BY id) FROM audit a))) AS t";

Test(fediverse_operate, a_dry_run_counts_as_much_and_changes_nothing)
{
	/* clang-format off */
	static const struct { const char *call; int64_t entries; } cases[] = {
		{ "fediverse_retry_now('down.example'",                           1 },
		{ "fediverse_discard('well.example', why => 'x'",                 2 },
		{ "fediverse_discard(older_than => '90 min', why => 'x'",         4 },
		{ "fediverse_replay('well.example', why => 'x'",                  3 },
		{ "fediverse_replay(older_than => '0', why => 'x'",               3 },
		{ "fediverse_discard_dead(older_than => '2.5 days', why => 'x'",  2 },
	};
	/* clang-format on */

	for (size_t i = 0; i < COUNT(cases); i++) {
		const char *before = one_text(everything);

		cr_expect_eq(number(arena_printf(arena,
				 "SELECT entries AS n FROM ops.%s,"
				 " dry_run => true)",
				 cases[i].call)),
		    cases[i].entries, "%s", cases[i].call);
		cr_expect_str_eq(
		    one_text(everything), before, "%s", cases[i].call);
		cr_expect_eq(
		    number(arena_printf(arena,
			"SELECT entries AS n FROM ops.%s)", cases[i].call)),
		    cases[i].entries, "%s", cases[i].call);
		cr_expect_str_neq(
		    one_text(everything), before, "%s", cases[i].call);
		test_db_script(database,
		    arena_printf(arena,
			"TRUNCATE fediverse_domains, fediverse_outbound_queue,"
			" audit; %s",
			world));
	}
}

Test(fediverse_operate, batches_go_on_where_the_last_one_ended)
{
	static const char call[] =
	    "SELECT concat_ws('|', entries, remaining, meaning) AS t FROM"
	    " ops.fediverse_replay('well.example', why => 'x', at_most => 2)";

	cr_expect_str_eq(
	    one_text(call), "2|1|queued again; call it again for the rest");
	cr_expect_eq(number("SELECT count(*) AS n FROM fediverse_outbound_queue"
			    " WHERE status = 'failed' AND activity_id = 'e1'"
			    " AND target_domain = 'well.example'"),
	    1, "the oldest first");
	cr_expect_str_eq(
	    one_text(call), "1|0|queued again; nothing like it is left");
	cr_expect_str_eq(
	    one_text(call), "0|0|there was nothing to be queued again");
}

Test(fediverse_operate, a_replayed_row_is_as_if_never_tried)
{
	cr_expect_eq(number("SELECT entries AS n FROM"
			    " ops.fediverse_replay('well.example',"
			    " why => 'x')"),
	    3);
	cr_expect_str_eq(
	    one_text("SELECT string_agg(DISTINCT concat_ws('|', status,"
		     " attempts, unauthorized, unresolved, next_retry_at),"
		     " ' ') AS t FROM fediverse_outbound_queue"
		     " WHERE target_domain = 'well.example'"
		     " AND activity_id LIKE 'e%'"),
	    "pending|0|0|0");
}

Test(fediverse_operate, the_dead_are_revived_and_then_replayed)
{
	cr_expect_str_eq(
	    one_text("SELECT concat_ws('|', was, state) AS t FROM"
		     " ops.domain_revive('dead.example', dry_run => true)"),
	    "dead|dead");
	cr_expect_str_eq(one_text("SELECT concat_ws('|', was, state) AS t FROM"
				  " ops.domain_revive('dead.example')"),
	    "dead|active");
	cr_expect_str_eq(one_text("SELECT meaning AS t FROM"
				  " ops.domain_revive('dead.example')"),
	    "it was alive");
	cr_expect_eq(number("SELECT entries AS n FROM"
			    " ops.fediverse_replay('dead.example',"
			    " why => 'x')"),
	    3);
}

Test(fediverse_operate, each_act_is_audited_with_who_and_why)
{
	for (size_t i = 0; i < COUNT(acts); i++)
		test_db_script(database,
		    arena_printf(arena,
			"SET SESSION AUTHORIZATION postrider_operator; %s",
			acts[i]));
	cr_expect_str_eq(
	    one_text("SELECT string_agg(concat_ws('|', who, action, target,"
		     " reason, rows), ' ' ORDER BY id) AS t FROM audit"),
	    "postrider_operator|domain_pause|well.example|x|1 "
	    "postrider_operator|domain_resume|rest.example|1 "
	    "postrider_operator|domain_revive|dead.example|1 "
	    "postrider_operator|fediverse_retry_now|down.example|1 "
	    "postrider_operator|fediverse_discard|well.example|x|2 "
	    "postrider_operator|fediverse_replay|well.example|x|3 "
	    "postrider_operator|fediverse_discard_dead|dead.example|x|3 "
	    "postrider_operator|domain_block|down.example|x|2 "
	    "postrider_operator|domain_unblock|down.example|1 "
	    "postrider_operator|domain_style|down.example|rfc9421, x|1");
}

Test(fediverse_operate, what_a_transaction_books_right_now_is_left_alone)
{
	AUTO(conn_free) struct conn *holder = test_db_conn(database);
	struct err err = { 0 };

	cr_assert(conn_script(holder,
	    "BEGIN; UPDATE fediverse_outbound_queue SET attempts = 9"
	    " WHERE target_domain = 'well.example' AND activity_id = 'a1'",
	    &err));
	cr_expect_str_eq(
	    one_text("SELECT concat_ws('|', entries, remaining) AS t"
		     " FROM ops.fediverse_discard('well.example',"
		     " why => 'x')"),
	    "1|1");
	cr_assert(conn_script(holder, "COMMIT", &err));
}

/* ---- with outboxd ---- */

Test(fediverse_operate, a_paused_domain_gets_nothing_until_it_is_resumed)
{
	struct fediverse_site site = fediverse_site_begin();
	struct test_peer *receiver = fediverse_receiver("far.localhost");
	struct test_peer *other = fediverse_receiver("near.localhost");
	struct test_daemon *outboxd;
	const char *paused;
	const char *flows;

	paused = fediverse_owe(
	    &site, "first", fediverse_inbox(&site, receiver, INBOX));
	test_db_number(site.db,
	    "SELECT count(*) AS n FROM fediverse_outbound_queue q,"
	    " ops.domain_pause(q.target_domain, 'x')");
	flows = fediverse_owe(
	    &site, "second", fediverse_inbox(&site, other, INBOX));
	outboxd = fediverse_outboxd(&site);
	cr_expect(fediverse_becomes(&site, flows, "status = 'delivered'"));
	/* A pace is known from the second look on. */
	cr_expect(test_db_until(site.db,
	    "SELECT EXISTS (SELECT FROM workers WHERE rates ? 'fediverse')"
	    " AS b",
	    FEDIVERSE_SOON_MS));
	cr_expect_str_eq(fediverse_row(&site, paused, "status"), "pending");
	cr_expect_str_eq(fediverse_row(&site, paused, "attempts"), "0");
	test_db_number(site.db,
	    "SELECT count(*) AS n FROM fediverse_outbound_queue q,"
	    " ops.domain_resume(q.target_domain)"
	    " WHERE q.status = 'pending'");
	cr_expect(fediverse_becomes(&site, paused, "status = 'delivered'"));
	cr_expect(fediverse_until(&site,
		      "(SELECT per_minute > 0 FROM ops.queue"
		      " WHERE queue = 'fediverse')",
		      3 * FEDIVERSE_SOON_MS),
	    "what left is told");
	cr_expect_eq(test_daemon_stop(outboxd), 0);
	test_peer_free(&other);
	test_peer_free(&receiver);
	fediverse_site_end(&site);
}
