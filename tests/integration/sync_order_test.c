/* Pages of the log: nothing twice, nothing missing, whenever rows commit. */
#include <criterion/criterion.h>

#include "tests/integration/sync_site.h"
#include "tests/lib/test_db.h"

static struct relay_site site;

static void begin(void)
{
	test_db_needed();
	relay_site_begin(&site);
}

static void end(void)
{
	relay_site_end(&site);
}

TestSuite(sync_order, .init = begin, .fini = end, .timeout = 300);

/* Delete events of one time, all for luna; their ids are the numbers. */
#define LOG_ROWS \
	"INSERT INTO federation_mutation_log (context_type, context_id, " \
	"mutation_type, entity_id, payload, hosts, mutated_at) SELECT 'dm', " \
	"(n %% 7)::text, 'delete', n::text, '', '{luna.test}', " \
	"'2026-01-01 00:00:00Z' FROM generate_series(%d, %d) AS g(n) " \
	"ORDER BY g.n"

static void log_rows(int from, int to)
{
	test_db_script(
	    site.conninfo, arena_printf(site.arena, LOG_ROWS, from, to));
}

static void sql(const char *script)
{
	test_db_script(site.conninfo, script);
}

static const char *ask(int64_t since, int limit)
{
	return sync_site_ask(&site, "luna.test",
	    arena_printf(site.arena,
		"{\"sinceTimestamp\":%" PRId64 ",\"limit\":%d}", since, limit));
}

/* What a reference peer does: on from the checkpoint while there is more. */
struct reading {
	int64_t since;
	int pages;
	struct buf ids;
};

static void read_on(struct reading *reading, int limit)
{
	const char *answer;

	if (!reading->ids.arena)
		buf_init(&reading->ids, site.arena, 1 << 24);
	do {
		answer = ask(reading->since, limit);
		buf_printf(&reading->ids, "%s ", sync_site_ids(&site, answer));
		reading->since = sync_site_checkpoint(answer);
		reading->pages++;
		cr_assert_lt(reading->pages, 1000);
	} while (sync_site_more(answer));
}

/* Each of 1 to count once, in order? */
static bool is_row(const char *ids, int count)
{
	const char *at = ids;

	for (int i = 1; i <= count; i++) {
		char *after;

		if (strtol(at, &after, 10) != i)
			return false;
		at = after;
	}
	return at[strspn(at, " ")] == '\0';
}

Test(sync_order, rows_of_one_time_are_told_once_each)
{
	struct reading reading = { 0 };

	log_rows(1, 350);
	read_on(&reading, 100);
	log_rows(351, 351);
	read_on(&reading, 100);
	cr_expect(is_row(reading.ids.data, 351), "%s", reading.ids.data);
	cr_expect_str_eq(sync_site_types(&site, ask(reading.since, 100)), "");
}

Test(sync_order, a_page_is_as_long_as_asked)
{
	int64_t since = 0;

	log_rows(1, 7);
	for (int i = 0; i < 7; i++) {
		const char *answer = ask(since, 1);

		cr_expect_str_eq(sync_site_ids(&site, answer),
		    arena_printf(site.arena, "%d", i + 1));
		cr_expect(sync_site_more(answer));
		since = sync_site_checkpoint(answer);
	}
	cr_expect_not(sync_site_more(ask(since, 1)));
}

/* A backlog shares milliseconds, and a page takes all that share its last. */
Test(sync_order, a_backlog_does_not_run_ahead_of_the_clock)
{
	struct reading reading = { 0 };
	int64_t ahead;

	log_rows(1, 30000);
	read_on(&reading, 500);
	cr_expect(is_row(reading.ids.data, 30000));
	ahead = relay_site_number(&site,
	    "SELECT max(ready_ms) - (extract(epoch FROM clock_timestamp()) * "
	    "1000)::bigint AS n FROM federation_sync_entries");
	cr_expect_lt(ahead, 10000, "%" PRId64 " ms ahead", ahead);
	cr_expect_leq(relay_site_number(&site,
			  "SELECT max(n)::bigint AS n FROM (SELECT count(*) AS "
			  "n FROM federation_sync_entries GROUP BY ready_ms) "
			  "AS t"),
	    20);
}

/* ---- late commits ---- */

static struct conn *open_writer(int from, int to)
{
	struct conn *conn = test_db_conn(site.conninfo);
	struct err err = { 0 };

	cr_assert(conn_script(conn, "BEGIN", &err) &&
		conn_script(
		    conn, arena_printf(site.arena, LOG_ROWS, from, to), &err),
	    "%s", err.text);
	return conn;
}

static void close_writer(struct conn **conn, const char *how)
{
	struct err err = { 0 };

	cr_assert(conn_script(*conn, how, &err), "%s", err.text);
	conn_free(conn);
}

Test(sync_order, what_commits_late_is_told_late_and_not_lost)
{
	struct reading reading = { 0 };
	struct conn *late;

	log_rows(1, 3);
	read_on(&reading, 2);
	late = open_writer(4, 5);
	log_rows(6, 8);
	read_on(&reading, 2);
	/* What came after the hanging one waits for it. */
	cr_expect_str_eq(reading.ids.data, "1 2 3  ");
	close_writer(&late, "COMMIT");
	read_on(&reading, 2);
	cr_expect(is_row(reading.ids.data, 8), "%s", reading.ids.data);
}

Test(sync_order, what_is_rolled_back_holds_nothing_up)
{
	struct reading reading = { 0 };
	struct conn *late = open_writer(9, 9);

	log_rows(1, 2);
	read_on(&reading, 100);
	close_writer(&late, "ROLLBACK");
	read_on(&reading, 100);
	cr_expect(is_row(reading.ids.data, 2), "%s", reading.ids.data);
}

/* Its number is older than that of rows which were told long before it wrote.
 */
Test(sync_order, an_old_transaction_that_writes_last_is_told_last)
{
	struct reading reading = { 0 };
	struct conn *old = test_db_conn(site.conninfo);
	struct err err = { 0 };

	log_rows(1, 1);
	read_on(&reading, 100);
	cr_assert(conn_script(old, "BEGIN; SELECT pg_current_xact_id()", &err));
	log_rows(2, 2);
	read_on(&reading, 100);
	cr_expect_str_eq(reading.ids.data, "1 2 ");
	cr_assert(
	    conn_script(old, arena_printf(site.arena, LOG_ROWS, 3, 3), &err));
	read_on(&reading, 100);
	close_writer(&old, "COMMIT");
	log_rows(4, 4);
	read_on(&reading, 100);
	cr_expect(is_row(reading.ids.data, 4), "%s", reading.ids.data);
}

/* Small steps: the rest of a round is taken up where it was left. */
Test(sync_order, a_round_may_take_many_steps)
{
	struct reading reading = { 0 };

	log_rows(1, 5);
	for (int i = 0; i < 5; i++)
		cr_expect_eq(relay_site_number(
				 &site, "SELECT sync_publish(2)::bigint AS n"),
		    i < 2 ? 2 : i == 2);
	log_rows(6, 6);
	read_on(&reading, 100);
	cr_expect(is_row(reading.ids.data, 6), "%s", reading.ids.data);
}

Test(sync_order, two_who_publish_at_once_do_it_once)
{
	struct conn *other = test_db_conn(site.conninfo);
	struct reading reading = { 0 };
	struct err err = { 0 };

	log_rows(1, 10);
	cr_assert(conn_script(other, "BEGIN; SELECT sync_publish(4)", &err),
	    "%s", err.text);
	/* Not seen yet, so not told; and told by nobody else meanwhile. */
	cr_assert(conn_script(site.conn, "SET lock_timeout = '50ms'", &err));
	cr_expect_not(conn_script(site.conn, "SELECT sync_publish()", &err));
	cr_assert(conn_script(site.conn, "SET lock_timeout = 0", &err));
	close_writer(&other, "COMMIT");
	read_on(&reading, 3);
	cr_expect(is_row(reading.ids.data, 10), "%s", reading.ids.data);
}

/* ---- what is gone ---- */

Test(sync_order, what_is_deleted_is_left_out_and_no_page_is_empty_in_between)
{
	int64_t pair = sync_site_pair(
	    &site, site.alice, sync_site_person(&site, "luna.test", "700"));
	struct message kept;
	const char *answer;

	for (int i = 0; i < 5; i++) {
		struct message gone =
		    sync_site_say(&site, pair, site.alice, "gone");

		sql(arena_printf(site.arena,
		    "DELETE FROM dm_messages WHERE id = %" PRId64, gone.id));
	}
	kept = sync_site_say(&site, pair, site.alice, "kept");
	answer = ask(0, 2);
	cr_expect_str_eq(sync_site_ids(&site, answer),
	    arena_printf(site.arena, "%" PRId64, kept.id));
	cr_expect_str_eq(
	    sync_site_types(&site, ask(sync_site_checkpoint(answer), 2)), "");
}

/* ---- what a page costs ---- */

/* Rows that were read for one page, whatever the plans. */
static int64_t rows_read(int64_t since, const char *more)
{
	static const char read[] =
	    "SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::bigint AS "
	    "n "
	    "FROM pg_stat_user_tables WHERE relname IN "
	    "('federation_mutation_log', 'federation_sync_entries')";
	static const char flush[] = "SELECT pg_stat_force_next_flush()";
	struct err err = { 0 };
	int64_t before;

	cr_assert(conn_script(site.conn, flush, &err));
	before = relay_site_number(&site, read);
	sync_site_ask(&site, "luna.test",
	    arena_printf(site.arena,
		"{\"sinceTimestamp\":%" PRId64 ",\"limit\":100%s}", since,
		more));
	cr_assert(conn_script(site.conn, flush, &err));
	return relay_site_number(&site, read) - before;
}

Test(sync_order, a_page_of_a_large_log_reads_little_more_than_itself)
{
	int64_t middle;

	/* luna takes part in one row of a hundred. */
	sql("INSERT INTO federation_mutation_log (context_type, context_id, "
	    "mutation_type, entity_id, payload, hosts) SELECT 'dm', (n % 50)"
	    "::text, 'delete', n::text, '', CASE WHEN n % 100 = 0 THEN "
	    "'{luna.test}' ELSE '{other.test}' END::text[] FROM "
	    "generate_series(1, 100000) AS n");
	for (int i = 0; i < 60; i++)
		relay_site_number(
		    &site, "SELECT sync_publish(2000)::bigint AS n");
	middle = relay_site_number(&site,
	    "SELECT ready_ms AS n FROM federation_sync_entries "
	    "WHERE host = 'luna.test' ORDER BY ready_ms OFFSET 500 LIMIT 1");
	ask(0, 100); /* plans are made */
	cr_expect_leq(rows_read(0, ""), 1000);
	cr_expect_leq(rows_read(middle, ""), 1000);
	cr_expect_leq(rows_read(middle, ",\"dmChannelId\":\"0\""), 1000);
	cr_expect_leq(rows_read(middle, ",\"dmChannelId\":\"1\""), 1000);
	cr_expect_leq(rows_read(middle, ",\"contextType\":\"friend\""), 1000);
	cr_expect_leq(rows_read(middle * 2, ""), 1000);
}
