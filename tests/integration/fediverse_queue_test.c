/*
 * The queue of activities against the real database: the RFC's ten tests by
 * name, then what the contract adds.
 */
#include <criterion/criterion.h>

#include "common/base/clock.h"
#include "common/net/addr.h"
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

TestSuite(fediverse_queue, .init = begin, .fini = end, .timeout = 60);

#define ACTIVITY "https://nova.example/activities/1"
#define FAR_INBOX "https://far.example" INBOX

static struct enqueue_request request_of(
    const char *activity, const char *inbox)
{
	return (struct enqueue_request){
		.activity_id = activity,
		.payload_json = "{\"type\":\"Create\"}",
		.target_inbox = inbox,
		.actor_user_id = site.actor.id,
	};
}

static bool enqueue(const struct enqueue_request *request,
    struct outbound_item *item, struct err *err)
{
	AUTO(tx_end) struct tx *tx = tx_new(site.conn, arena);

	return outbound_enqueue(tx, &site.home, request, item, err) &&
	    tx_commit(tx, err);
}

static struct outbound_item enqueued(const char *activity, const char *inbox)
{
	struct enqueue_request request = request_of(activity, inbox);
	struct outbound_item item = { .id = NULL };
	struct err err = { 0 };

	cr_assert(enqueue(&request, &item, &err), "%s", err.text);
	return item;
}

/* ---- the RFC's ---- */

Test(fediverse_queue, outbound_status_round_trips_through_string)
{
	enum outbound_status status = OUTBOUND_PENDING;

	for (int i = OUTBOUND_PENDING; i <= OUTBOUND_DEAD; i++) {
		const char *text =
		    outbound_status_text((enum outbound_status)i);

		cr_expect(outbound_status_parse(text, &status));
		cr_expect_eq(status, (enum outbound_status)i, "%s", text);
	}
	cr_expect_not(outbound_status_parse("lost", &status));
	cr_expect_not(outbound_status_parse("Pending", &status));
}

Test(fediverse_queue, enqueue_request_clone_works)
{
	char activity[] = ACTIVITY;
	char payload[] = "{}";
	struct enqueue_request request = { .activity_id = activity,
		.payload_json = payload,
		.target_inbox = FAR_INBOX,
		.shared_inbox = true };
	struct enqueue_request copy = enqueue_request_copy(arena, &request);

	activity[0] = payload[0] = 'X';
	cr_expect_str_eq(copy.activity_id, ACTIVITY);
	cr_expect_str_eq(copy.payload_json, "{}");
	cr_expect_str_eq(copy.target_inbox, FAR_INBOX);
	cr_expect_null(copy.target_domain);
	cr_expect_null(copy.actor_user_id);
	cr_expect(copy.shared_inbox);
}

Test(fediverse_queue, enqueue_persists_pending_row)
{
	struct outbound_item item = enqueued(ACTIVITY, FAR_INBOX);

	cr_expect_str_eq(item.status, "pending");
	cr_expect_eq(item.attempts, 0);
	cr_expect_str_eq(fediverse_row(&site, item.id, "status"), "pending");
	cr_expect_str_eq(fediverse_row(&site, item.id, "attempts"), "0");
	cr_expect_str_eq(fediverse_row(&site, item.id, "max_attempts"), "8");
	cr_expect_str_eq(
	    fediverse_row(&site, item.id, "target_domain"), "far.example");
	cr_expect_str_eq(fediverse_row(&site, item.id, "next_retry_at"), "");
}

Test(fediverse_queue, enqueue_uses_provided_activity_id)
{
	static const char odd[] = "HTTPS://Nova.Example/a?x=1#Ünï 'quoted'";
	struct outbound_item item = enqueued(odd, FAR_INBOX);

	cr_expect_str_eq(item.activity_id, odd);
	cr_expect_str_eq(fediverse_row(&site, item.id, "activity_id"), odd);
}

Test(fediverse_queue, drain_one_returns_none_when_empty)
{
	struct outbound_item item;

	cr_expect_not(fediverse_drain_one(&site, &delivery_noop, &item));
}

Test(fediverse_queue, drain_one_marks_delivered_on_success)
{
	struct outbound_item item = enqueued(ACTIVITY, FAR_INBOX);
	struct outbound_item after;

	cr_assert(fediverse_drain_one(&site, &delivery_noop, &after));
	cr_expect_str_eq(after.id, item.id);
	cr_expect_str_eq(after.status, "delivered");
	cr_expect_neq(after.delivered_at, 0);
	cr_expect_null(after.last_error);
	cr_expect_not(fediverse_drain_one(&site, &delivery_noop, &after));
}

static bool refuse(struct delivery_try *attempt)
{
	return delivery_fail(attempt, "the fake says no");
}

static const struct outbound_delivery fake = { .name = "fake",
	.prepare = refuse };

Test(fediverse_queue, drain_one_marks_failed_on_error)
{
	struct outbound_item item = enqueued(ACTIVITY, FAR_INBOX);
	struct outbound_item after;

	cr_assert(fediverse_drain_one(&site, &fake, &after));
	cr_expect_str_eq(after.id, item.id);
	cr_expect_str_eq(after.status, "failed");
	cr_expect_str_eq(after.last_error, "the fake says no");
	cr_expect_eq(after.delivered_at, 0);
}

Test(fediverse_queue, drain_one_increments_attempts)
{
	struct outbound_item after;

	enqueued(ACTIVITY, FAR_INBOX);
	cr_assert(fediverse_drain_one(&site, &delivery_noop, &after));
	cr_expect_eq(after.attempts, 1);
}

Test(fediverse_queue, noop_delivery_returns_ok)
{
	struct outbound_item item = { .id = "1",
		.target_domain = "far.example" };
	struct delivery_try attempt;

	delivery_begin(&attempt, arena, &site.home, &item);
	cr_expect_not(delivery_noop.prepare(&attempt), "nothing is sent");
	cr_expect_eq(attempt.outcome.fate, FATE_DELIVERED);
	cr_expect_eq(outbound_delivery_find("noop"), &delivery_noop);
	cr_expect_null(outbound_delivery_find("pigeon"));
}

/* ---- what the contract adds ---- */

Test(fediverse_queue, a_repeated_enqueue_gives_the_row_that_is_there)
{
	struct outbound_item first = enqueued(ACTIVITY, FAR_INBOX);
	struct outbound_item again =
	    enqueued(ACTIVITY, "https://FAR.example:443" INBOX);
	struct outbound_item other =
	    enqueued(ACTIVITY, "https://far.example/inbox");

	cr_expect_str_eq(again.id, first.id);
	cr_expect_str_neq(other.id, first.id);
	cr_expect_eq(test_db_number(site.db,
			 "SELECT count(*) AS n FROM fediverse_outbound_queue"),
	    2);
}

/* One host in every spelling, in Unicode too. */
Test(fediverse_queue, a_domain_has_one_form)
{
	static const char *const spellings[] = { "https://bücher.example/i",
		"https://BÜCHER.example/i", "https://xn--bcher-kva.example/i",
		"https://XN--BCHER-KVA.example:443/i",
		"https://bücher.example./i" };
	const char *first = NULL;

	for (size_t i = 0; i < COUNT(spellings); i++) {
		struct outbound_item item = enqueued(ACTIVITY, spellings[i]);

		cr_expect_str_eq(item.target_domain, "xn--bcher-kva.example");
		cr_expect_str_eq(
		    item.target_inbox, "https://xn--bcher-kva.example/i");
		first = first ? first : item.id;
		cr_expect_str_eq(item.id, first);
	}
}

Test(fediverse_queue, what_is_no_delivery_is_refused)
{
	static const char *const inboxes[] = { "", "far.example/inbox",
		"ftp://far.example/inbox", "https://u:p@far.example/inbox",
		"https:///inbox", "https://far.example/in box",
		"https://-far.example/inbox", "https://far..example/inbox" };
	struct outbound_item item;

	for (size_t i = 0; i < COUNT(inboxes); i++) {
		struct enqueue_request request =
		    request_of(ACTIVITY, inboxes[i]);
		struct err err = { 0 };

		cr_expect_not(enqueue(&request, &item, &err), "%s", inboxes[i]);
		cr_expect_eq(err.code, ERR_INVALID, "%s", inboxes[i]);
	}
	cr_expect_eq(test_db_number(site.db,
			 "SELECT count(*) AS n FROM fediverse_outbound_queue"),
	    0);
}

Test(fediverse_queue, our_own_inbox_never_enters)
{
	struct enqueue_request request = request_of(
	    ACTIVITY, arena_printf(arena, "%s" INBOX, site.home.origin.text));
	struct outbound_item item;
	struct err err = { 0 };

	cr_expect_not(enqueue(&request, &item, &err));
	cr_expect_eq(err.code, ERR_INVALID);
}

Test(fediverse_queue, a_domain_that_is_not_the_inboxs_is_refused)
{
	struct enqueue_request request = request_of(ACTIVITY, FAR_INBOX);
	struct outbound_item item;
	struct err err = { 0 };

	request.target_domain = "near.example";
	cr_expect_not(enqueue(&request, &item, &err));
	request.target_domain = "FAR.example:443";
	cr_expect(enqueue(&request, &item, &err), "%s", err.text);
}

/* As an application calls it: role, statement, SQLSTATE. */
struct call {
	const char *arguments;
	const char *sqlstate;
};

/* clang-format off */
static const struct call calls[] = {
	{ "'a', '{}', 'https://far.example/inbox'", "" },
	{ "'a', '{}', 'http://far.example:8080'", "" },
	{ "'a', '{}', 'https://[2001:db8::1]/inbox?x=1'", "" },
	{ "'a', '{}', NULL", "PT400" },
	{ "'a', '{}', 'https://bücher.example/inbox'", "PT400" },
	{ "'a', '{}', 'https://far.example:99999/inbox'", "PT400" },
	{ "'a', '{}', 'https://far.example:0/inbox'", "PT400" },
	{ "'a', '{}', 'https://far.example/inbox#x'", "PT400" },
	{ "'a', '{}', 'https://far.example/' || repeat('x', 1024)", "PT400" },
	{ "'', '{}', 'https://far.example/inbox'", "PT400" },
	{ "repeat('a', 1025), '{}', 'https://far.example/inbox'", "PT400" },
	{ "'a', '[]', 'https://far.example/inbox'", "PT400" },
	{ "'a', '{', 'https://far.example/inbox'", "PT400" },
	{ "'a', NULL, 'https://far.example/inbox'", "PT413" },
	{ "'a', '{\"a\":\"' || repeat('x', 262144) || '\"}', 'https://far.example/inbox'", "PT413" },
	{ "'a', '{}', 'https://far.example/inbox', gen_random_uuid()", "PT404" },
	{ "'a', '{}', 'https://far.example/inbox', NULL, 'No Such'", "PT400" },
};
/* clang-format on */

Test(fediverse_queue, an_application_may_call_one_function)
{
	const char *as = test_db_as(arena, site.db, "postrider_app");
	struct conn *conn = test_db_conn(as);
	struct err err = { 0 };

	for (size_t i = 0; i < COUNT(calls); i++) {
		bool ok = conn_script(conn,
		    arena_printf(arena, "SELECT fediverse_enqueue(%s)",
			calls[i].arguments),
		    &err);

		cr_expect_eq(ok, !*calls[i].sqlstate, "%s: %s",
		    calls[i].arguments, err.text);
		if (!ok)
			cr_expect_str_eq(conn_sqlstate(conn), calls[i].sqlstate,
			    "%s", calls[i].arguments);
	}
	conn_free(&conn);
}

/* Its transaction goes on: the row is kept, as what it is. */
Test(fediverse_queue, towards_the_dead_a_row_is_dead_and_nothing_aborts)
{
	const char *as = test_db_as(arena, site.db, "postrider_app");
	struct conn *conn = test_db_conn(as);
	struct err err = { 0 };

	test_db_script(site.db,
	    "INSERT INTO fediverse_domains (domain, state) VALUES "
	    "('far.example', 'dead'), ('closed.example', 'open');"
	    "INSERT INTO fediverse_gone_inboxes (inbox, domain, code, gone_at) "
	    "VALUES ('https://a.example/1', 'a.example', 410, now() - '9 "
	    "d'::interval),"
	    "('https://a.example/2', 'a.example', 404, now()),"
	    "('https://a.example/3', 'a.example', 404, now() - '2 "
	    "d'::interval)");
	cr_assert(
	    conn_script(conn,
		"BEGIN;"
		"SELECT fediverse_enqueue('1', '{}', 'https://far.example/i');"
		"SELECT fediverse_enqueue('2', '{}', "
		"'https://closed.example/i');"
		"SELECT fediverse_enqueue('3', '{}', 'https://a.example/1');"
		"SELECT fediverse_enqueue('4', '{}', 'https://a.example/2');"
		"SELECT fediverse_enqueue('5', '{}', 'https://a.example/3');"
		"COMMIT",
		&err),
	    "%s", err.text);
	cr_expect_str_eq(
	    test_db_text(arena, site.db,
		"SELECT string_agg(status, ' ' ORDER BY activity_id) AS t "
		"FROM fediverse_outbound_queue"),
	    "dead pending failed failed pending");
	cr_expect_eq(test_db_number(site.db,
			 "SELECT count(*) AS n FROM fediverse_outbound_queue "
			 "WHERE status <> 'pending' AND last_error IS NULL"),
	    0);
	conn_free(&conn);
}

Test(fediverse_queue, revival_opens_the_way_again)
{
	test_db_script(site.db,
	    "INSERT INTO fediverse_domains (domain, state, gone, failure_days) "
	    "VALUES ('far.example', 'dead', true, 7);"
	    "INSERT INTO fediverse_gone_inboxes (inbox, domain, code) "
	    "VALUES ('" FAR_INBOX "', 'far.example', 410);");
	cr_expect_str_eq(enqueued("1", FAR_INBOX).status, "dead");
	cr_expect_eq(test_db_number(site.db,
			 "SELECT fediverse_revive('far.example')::int AS n"),
	    1);
	cr_expect_eq(test_db_number(site.db,
			 "SELECT fediverse_revive('far.example')::int AS n"),
	    0, "it lives already");
	cr_expect_str_eq(enqueued("2", FAR_INBOX).status, "pending");
}

Test(fediverse_queue, off_means_that_rows_wait)
{
	struct outbound_item after;

	test_db_script(
	    site.db, "UPDATE instance_settings SET fediverse = false");
	cr_expect_str_eq(enqueued(ACTIVITY, FAR_INBOX).status, "pending");
	cr_expect_not(fediverse_drain_one(&site, &delivery_noop, &after));
	test_db_script(
	    site.db, "UPDATE instance_settings SET fediverse = true");
	cr_expect(fediverse_drain_one(&site, &delivery_noop, &after));
}

static bool postpone(struct delivery_try *attempt)
{
	attempt->outcome = outcome_of_status(503, false);
	attempt->outcome.text = "503: later";
	return false;
}

static const struct outbound_delivery busy = { .name = "busy",
	.prepare = postpone };

Test(fediverse_queue, a_temporary_error_waits_along_the_schedule)
{
	struct outbound_item item = enqueued(ACTIVITY, FAR_INBOX);
	struct outbound_item after;
	const char *again =
	    "UPDATE fediverse_outbound_queue SET next_retry_at = now();"
	    "UPDATE fediverse_domains SET state = 'closed', failures = 0, "
	    "not_before = '-infinity'";

	for (int i = 1; i <= 7; i++) {
		static const int64_t minutes[] = { 5, 15, 45, 135, 405, 1215,
			2880 };
		int64_t wait;

		cr_assert(fediverse_drain_one(&site, &busy, &after));
		cr_expect_str_eq(after.status, "pending");
		cr_expect_eq(after.attempts, i);
		cr_expect_str_eq(after.last_error, "503: later");
		wait = after.next_retry_at - clock_wall_ms();
		cr_expect_geq(wait, minutes[i - 1] * 60000 - 10000);
		cr_expect_leq(wait, minutes[i - 1] * 72000);
		cr_expect_not(
		    fediverse_drain_one(&site, &busy, &after), "not yet");
		test_db_script(site.db, again);
	}
	cr_assert(fediverse_drain_one(&site, &busy, &after));
	cr_expect_str_eq(after.id, item.id);
	cr_expect_str_eq(after.status, "dead");
	cr_expect_eq(after.attempts, 8);
}

static bool lead_nowhere(struct delivery_try *attempt)
{
	const struct client_result result = {
		.outcome = CLIENT_NO_CONNECTION,
		.unresolved = true,
		.text = "no such name",
	};

	delivery_conclude(attempt, &result);
	return false;
}

static const struct outbound_delivery nowhere = { .name = "nowhere",
	.prepare = lead_nowhere };

/* The fourth time is the last, if the name servers say so, too: where they
 * do not answer, nothing is known of the name. */
Test(fediverse_queue, a_name_that_does_not_exist_ends_after_four_attempts)
{
	const char *want =
	    addr_name_is_absent("nobody.invalid") ? "dead" : "pending";
	struct outbound_item after;

	enqueued(ACTIVITY, "https://nobody.invalid/inbox");
	for (int i = 1; i <= 4; i++) {
		cr_assert(fediverse_drain_one(&site, &nowhere, &after));
		cr_expect_eq(after.attempts, i);
		cr_expect_str_eq(after.status, i < 4 ? "pending" : want);
		fediverse_now(&site);
	}
	cr_expect_str_eq(after.last_error, "no such name");
}

static size_t read_rows(
    struct tx *tx, const char *domain, const char *under_way, bool *more)
{
	const struct outbound_reading reading = {
		.count = 1,
		.domains = (const char *[]){ domain },
		.limits = (int64_t[]){ 9 },
		.under_way = (const char *[]){ under_way },
		.under_way_count = under_way ? 1 : 0,
		.more = more,
	};
	struct rows rows;
	struct err err = { 0 };

	cr_assert(outbound_read(tx, &reading, &rows, &err), "%s", err.text);
	return rows.count;
}

/* Whoever has lost the lease changes nothing. */
Test(fediverse_queue, a_lost_lease_settles_nothing)
{
	const struct outbound_item item = enqueued(ACTIVITY, FAR_INBOX);
	AUTO(tx_end) struct tx *tx = tx_new(site.conn, arena);
	const struct outbound_result result = {
		.item = &item,
		.outcome = { .fate = FATE_DELIVERED },
	};
	struct outbound_visit visit = { .count = 0 };
	struct outbound_item after;
	struct rows rows;
	struct err err = { 0 };
	bool more = true;

	cr_assert(outbound_claim(tx, 10, 7, &rows, &err), "%s", err.text);
	cr_assert_eq(rows.count, 1);
	visit.lease = ((const struct outbound_claimed *)rows.items)->lease;
	cr_assert(outbound_lock(tx, &visit, 1, &err), "%s", err.text);
	cr_expect(visit.held);
	cr_expect_eq(read_rows(tx, visit.lease.domain, item.id, &more), 0,
	    "what is under way is not read again");
	cr_expect_not(more);
	cr_expect_eq(read_rows(tx, visit.lease.domain, NULL, &more), 1);
	cr_assert(outbound_claim(tx, 10, 8, &rows, &err), "%s", err.text);
	cr_expect_eq(rows.count, 0, "it is taken");
	visit.lease.token = "00000000-0000-0000-0000-000000000000";
	visit.results = &result;
	visit.count = 1;
	cr_assert(outbound_lock(tx, &visit, 1, &err), "%s", err.text);
	cr_expect_not(visit.held);
	cr_assert(outbound_settle(tx, &visit, 1, &err), "%s", err.text);
	cr_assert(outbound_find(tx, item.id, &after, &err), "%s", err.text);
	cr_expect_str_eq(after.status, "pending");
}

/* What is kept in memory for a domain has a bound. */
Test(fediverse_queue, large_activities_are_read_a_megabyte_at_a_time)
{
	AUTO(tx_end) struct tx *tx = tx_new(site.conn, arena);
	bool more = false;

	test_db_script(site.db,
	    "SELECT fediverse_enqueue('l' || n, '{\"x\":\"' "
	    "|| repeat('x', 250000) || '\"}', 'https://large.example/' || n)"
	    "  FROM generate_series(1, 7) n");
	cr_expect_eq(read_rows(tx, "large.example", NULL, &more), 5);
	cr_expect(more);
}

struct looked {
	int64_t rows;
};

/* How many rows this transaction has looked at. */
static int64_t rows_looked_at(struct tx *tx)
{
	static const struct stmt fetched = { "test_fetched",
		"SELECT pg_stat_get_xact_tuples_fetched("
		"'fediverse_outbound_queue'::regclass) AS rows",
		SQL_ONE, 0 };
	static const struct shape shape[] = {
		SHAPE(INT, struct looked, rows, NULL),
		SHAPE_END(struct looked),
	};
	struct looked looked;
	struct err err = { 0 };

	cr_assert(sql_one(tx, &fetched, shape, &looked, &err), "%s", err.text);
	return looked.rows;
}

/* Otherwise a domain that has much would cost more with each of its rows. */
Test(fediverse_queue, a_reading_looks_at_no_more_rows_than_it_takes)
{
	const struct conn_def def = { .conninfo = site.db, .by_index = true };
	AUTO(conn_free) struct conn *conn = conn_new(&def);
	AUTO(tx_end) struct tx *tx = tx_new(conn, arena);
	bool more = false;

	test_db_script(site.db,
	    "SELECT fediverse_enqueue('m' || n, '{}', 'https://much.example/'"
	    " || n) FROM generate_series(1, 1000) n;"
	    "ANALYZE fediverse_outbound_queue");
	cr_expect_eq(read_rows(tx, "much.example", NULL, &more), 9);
	cr_expect(more);
	cr_expect_leq(rows_looked_at(tx), 9);
}
