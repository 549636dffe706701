#include <math.h>

#include <criterion/criterion.h>

#include "common/base/clock.h"
#include "common/pg/notify.h"
#include "common/pg/sql.h"
#include "tests/lib/test_db.h"

enum { LOST_MS = 5000 };

struct row {
	int64_t id;
	const char *text;
	bool flag;
	int64_t at;
	double real;
	struct bytes bytes;
	const char *uuid;
	const char *raw;
	int64_t count;
	int64_t span;
};

static const struct shape row_shape[] = {
	SHAPE(ID, struct row, id, NULL),
	SHAPE(TEXT, struct row, text, NULL),
	SHAPE(BOOL, struct row, flag, NULL),
	SHAPE(TIME, struct row, at, NULL),
	SHAPE(REAL, struct row, real, NULL),
	SHAPE(BYTES, struct row, bytes, NULL),
	SHAPE(TEXT, struct row, uuid, NULL),
	SHAPE(RAW, struct row, raw, NULL),
	SHAPE(INT, struct row, count, NULL),
	SHAPE(INT, struct row, span, NULL),
	SHAPE_END(struct row),
};

static const struct stmt echo = { "echo",
	"SELECT $1 AS id, $2 AS text, $3 AS flag, $4 AS at, $5 AS real,"
	" $6 AS bytes, '0d1e2f3a-0000-4000-8000-0123456789ab'::uuid AS uuid,"
	" jsonb_build_object('a', 1) AS raw, cardinality($7) AS count,"
	" $8 AS span, 1 AS of_no_interest",
	SQL_ONE, 8 };

struct number {
	int64_t n;
};

static const struct shape number_shape[] = {
	SHAPE(INT, struct number, n, NULL),
	SHAPE_END(struct number),
};

/* ---- the world of a test ---- */

static char *database;
static struct conn *conn;
static struct arena *arena;

static void set_up(void)
{
	struct conn_def def = { .application = "test/sql",
		.signals_after = true,
		.statement_timeout_ms = 20000 };

	test_db_needed();
	database = test_db_create();
	def.conninfo = database;
	conn = conn_new(&def);
	arena = arena_new();
	test_db_script(database,
	    "CREATE TABLE parent (id bigint PRIMARY KEY);"
	    "CREATE TABLE t (id bigint PRIMARY KEY CHECK (id < 1000),"
	    " text text NOT NULL DEFAULT '', parent bigint REFERENCES parent,"
	    " small integer)");
}

static void tear_down(void)
{
	conn_free(&conn);
	arena_free(&arena);
	test_db_drop(&database);
}

TestSuite(sql, .init = set_up, .fini = tear_down);

static void kill_connection(void)
{
	test_db_script(database,
	    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
	    " WHERE application_name = 'test/sql'"
	    " AND datname = current_database()");
}

static int64_t rows_in_t(void)
{
	return test_db_number(database, "SELECT count(*) AS n FROM t");
}

static bool add(struct tx *tx, int64_t id, struct err *err)
{
	static const struct stmt stmt = { "add",
		"INSERT INTO t (id) VALUES ($1)", SQL_NONE, 1 };

	return sql_none(tx, &stmt, err, v_id(id));
}

/* ---- values and rows ---- */

Test(sql, values_come_back_as_they_went)
{
	AUTO(tx_end) struct tx *tx = tx_new(conn, arena);
	const char *texts[] = { "a", NULL, "" };
	struct err err = { 0 };
	struct row row;

	cr_assert(sql_one(tx, &echo, row_shape, &row, &err, v_id(INT64_MAX),
		      v_text("\"q\" \\ \xc3\xa9"), v_bool(true),
		      v_time(1700000000123), v_real(1.25),
		      v_bytes((struct bytes){ "a\0b", 3 }), v_texts(texts, 3),
		      v_span(90061001)),
	    "%s", err.text);
	cr_expect_eq(row.id, INT64_MAX);
	cr_expect_str_eq(row.text, "\"q\" \\ \xc3\xa9");
	cr_expect(row.flag);
	cr_expect_eq(row.at, 1700000000123);
	cr_expect_eq(row.real, 1.25);
	cr_expect_eq(row.bytes.len, 3);
	cr_expect_arr_eq(row.bytes.data, "a\0b", 3);
	cr_expect_str_eq(row.uuid, "0d1e2f3a-0000-4000-8000-0123456789ab");
	cr_expect_str_eq(row.raw, "{\"a\": 1}");
	cr_expect_eq(row.count, 3);
	cr_expect_eq(row.span, 90061001);
}

Test(sql, nothing_is_null_and_null_is_nothing)
{
	AUTO(tx_end) struct tx *tx = tx_new(conn, arena);
	struct row row = { .id = 1, .text = "x", .flag = true, .at = 1 };
	struct err err = { 0 };

	cr_assert(sql_one(tx, &echo, row_shape, &row, &err, v_id(0),
		      v_text(NULL), v_bool(false), v_time(0), v_real(NAN),
		      v_bytes((struct bytes){ NULL, 0 }), v_texts(NULL, 0),
		      v_span(-5)),
	    "%s", err.text);
	cr_expect_eq(row.id, 0);
	cr_expect_null(row.text);
	cr_expect(!row.flag);
	cr_expect_eq(row.at, 0);
	cr_expect(row.real != row.real, "NaN");
	cr_expect_null(row.bytes.data);
	cr_expect_eq(row.count, 0);
	cr_expect_eq(row.span, -5);
}

Test(sql, a_null_first_does_not_spoil_the_statement)
{
	static const struct stmt stmt = { "small",
		"SELECT count(*) AS n FROM t WHERE small = $1", SQL_ONE, 1 };
	AUTO(tx_end) struct tx *tx = tx_new(conn, arena);
	const struct val vals[] = { v_null(), v_id(0), v_int(7), v_null() };
	struct number row;
	struct err err = { 0 };

	for (size_t i = 0; i < COUNT(vals); i++)
		cr_expect(sql_one(tx, &stmt, number_shape, &row, &err, vals[i]),
		    "value %zu: %s", i, err.text);
}

Test(sql, arrays_keep_order_and_gaps)
{
	static const struct stmt stmt = { "arrays",
		"SELECT string_agg(concat_ws('/', a, b,"
		" extract(epoch FROM c)::bigint, d), ' ' ORDER BY n) AS text"
		" FROM unnest($1, $2, $3, $4)"
		" WITH ORDINALITY AS s (a, b, c, d, n)",
		SQL_ONE, 4 };
	static const struct shape shape[] = {
		SHAPE(TEXT, struct row, text, NULL),
		SHAPE_END(struct row),
	};
	AUTO(tx_end) struct tx *tx = tx_new(conn, arena);
	const int64_t ids[] = { 1, 0, 3 };
	const char *const texts[] = { "x,{}\"", "NULL", NULL };
	const int64_t times[] = { 5000, 0, 7000 };
	const bool flags[] = { true, false, true };
	struct row row = { 0 };
	struct err err = { 0 };

	cr_assert(sql_one(tx, &stmt, shape, &row, &err, v_ids(ids, 3),
		      v_texts(texts, 3), v_times(times, 3), v_bools(flags, 3)),
	    "%s", err.text);
	cr_expect_str_eq(row.text, "1/x,{}\"/5/t NULL/f 3/7/t");
}

Test(sql, each_marker_owes_its_rows)
{
	static const struct stmt one = { "one",
		"SELECT n FROM generate_series(1, $1) AS n", SQL_ONE, 1 };
	static const struct stmt opt = { "opt",
		"SELECT n FROM generate_series(1, $1) AS n", SQL_OPT, 1 };
	static const struct stmt many = { "many",
		"SELECT n FROM generate_series(1, $1) AS n", SQL_MANY, 1 };
	AUTO(tx_end) struct tx *tx = tx_new(conn, arena);
	struct number row = { 77 };
	struct rows rows;
	struct err err = { 0 };
	bool found = true;

	cr_expect(!sql_one(tx, &one, number_shape, &row, &err, v_int(0)));
	cr_expect_eq(err.code, ERR_ABSENT);
	cr_expect_eq(row.n, 77, "untouched");
	cr_expect(
	    sql_opt(tx, &opt, number_shape, &row, &found, &err, v_int(0)));
	cr_expect(!found);
	cr_expect(
	    sql_opt(tx, &opt, number_shape, &row, &found, &err, v_int(1)));
	cr_expect(found);
	cr_expect(sql_many(tx, &many, number_shape, &rows, &err, v_int(3)));
	cr_expect_eq(rows.count, 3);
	cr_expect_eq(((struct number *)rows.items)[2].n, 3);
	cr_expect(!sql_one(tx, &one, number_shape, &row, &err, v_int(2)));
	cr_expect_eq(err.code, ERR_BUG, "two rows where one is owed");
}

Test(sql, a_row_that_does_not_fit_its_shape_is_a_bug)
{
	const struct {
		const char *text;
		const char *says;
	} cases[] = {
		{ "SELECT 1 AS m", "no column n" },
		{ "SELECT 'x'::text AS n", "column n is of type" },
		{ "SELECT 1::numeric AS n", "column n is of type" },
		{ "SELECT 1 AS m WHERE false", "no column n" },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		AUTO(tx_end) struct tx *tx = tx_new(conn, arena);
		struct stmt *stmt = ARENA_NEW(arena, struct stmt);
		struct number row;
		struct err err = { 0 };

		*stmt = (struct stmt){ "case", cases[i].text, SQL_ONE, 0 };
		cr_expect(!sql_one(tx, stmt, number_shape, &row, &err));
		cr_expect_eq(err.code, ERR_BUG, "case %zu", i);
		cr_expect(strstr(err.text, cases[i].says), "%s", err.text);
	}
}

/* ---- failures ---- */

Test(sql, sqlstates_become_codes)
{
	const struct {
		const char *text;
		enum err_code code;
		const char *state;
	} cases[] = {
		{ "INSERT INTO t (id) VALUES (1), (1)", ERR_DUPLICATE,
		    "23505" },
		{ "INSERT INTO t (id, parent) VALUES (1, 5)", ERR_ABSENT,
		    "23503" },
		{ "INSERT INTO t (id) VALUES (5000)", ERR_INVALID, "23514" },
		{ "INSERT INTO t (id, text) VALUES (1, NULL)", ERR_INVALID,
		    "23502" },
		{ "INSERT INTO t (id) VALUES ('x'::text::bigint)", ERR_INVALID,
		    "22P02" },
		{ "DO $$ BEGIN RAISE 'x' USING ERRCODE = '40001'; END $$",
		    ERR_BUSY, "40001" },
		{ "DO $$ BEGIN RAISE 'x' USING ERRCODE = '40P01'; END $$",
		    ERR_BUSY, "40P01" },
		{ "DO $$ BEGIN RAISE 'x' USING ERRCODE = '25006'; END $$",
		    ERR_BUSY, "25006" },
		{ "DO $$ BEGIN RAISE 'x' USING ERRCODE = '53100'; END $$",
		    ERR_BUSY, "53100" },
		{ "DO $$ BEGIN RAISE 'x' USING ERRCODE = 'PT404'; END $$",
		    ERR_ABSENT, "PT404" },
		{ "DO $$ BEGIN RAISE 'x' USING ERRCODE = 'PT409'; END $$",
		    ERR_CONFLICT, "PT409" },
		{ "DO $$ BEGIN RAISE 'x' USING ERRCODE = 'PT429'; END $$",
		    ERR_TOO_MANY, "PT429" },
		{ "SELECT FROM of_nothing", ERR_BUG, "42P01" },
		{ "SELEKT", ERR_BUG, "42601" },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		AUTO(tx_end) struct tx *tx = tx_new(conn, arena);
		struct stmt *stmt = ARENA_NEW(arena, struct stmt);
		struct err err = { 0 };

		*stmt = (struct stmt){ "case", cases[i].text, SQL_NONE, 0 };
		cr_expect(!sql_none(tx, stmt, &err));
		cr_expect_eq(err.code, cases[i].code, "%s: code %d, %s",
		    cases[i].text, err.code, err.text);
		cr_expect_str_eq(conn_sqlstate(conn), cases[i].state);
	}
}

Test(sql, a_raised_text_reaches_the_caller_alone)
{
	static const struct stmt stmt = { "raise",
		"DO $$ BEGIN RAISE 'not today' USING ERRCODE = 'PT403'; END $$",
		SQL_NONE, 0 };
	AUTO(tx_end) struct tx *tx = tx_new(conn, arena);
	struct err err = { 0 };

	cr_expect(!sql_none(tx, &stmt, &err));
	cr_expect_eq(err.code, ERR_FORBIDDEN);
	cr_expect_str_eq(err.text, "not today");
}

Test(sql, a_failed_transaction_commits_nothing)
{
	AUTO(tx_end) struct tx *tx = tx_new(conn, arena);
	struct err err = { 0 };

	cr_assert(add(tx, 1, &err));
	cr_expect(!add(tx, 1, &err));
	cr_expect(!add(tx, 2, &err), "no statement after a failed one");
	cr_expect(!tx_commit(tx, &err));
	cr_expect_eq(rows_in_t(), 0);
	cr_expect(add(tx, 3, &err) && tx_commit(tx, &err), "%s", err.text);
	cr_expect_eq(rows_in_t(), 1);
}

/* ---- transactions ---- */

Test(sql, what_is_not_committed_rolls_back)
{
	struct err err = { 0 };

	{
		AUTO(tx_end) struct tx *tx = tx_new(conn, arena);

		cr_assert(add(tx, 1, &err));
	}
	cr_expect_eq(rows_in_t(), 0);
	{
		AUTO(tx_end) struct tx *tx = tx_new(conn, arena);

		cr_assert(tx_commit(tx, &err), "an empty one commits");
		cr_assert(add(tx, 1, &err) && tx_commit(tx, &err));
		cr_assert(add(tx, 2, &err));
		tx_rollback(tx);
		cr_assert(add(tx, 3, &err) && tx_commit(tx, &err));
	}
	cr_expect_eq(
	    test_db_number(database, "SELECT sum(id)::bigint AS n FROM t"), 4);
}

Test(sql, the_session_is_set_up)
{
	static const struct stmt stmt = { "settings",
		"SELECT concat_ws(' ', current_setting('timezone'),"
		" current_setting('search_path'),"
		" current_setting('lock_timeout'),"
		" current_setting('statement_timeout'),"
		" current_setting('idle_in_transaction_session_timeout'),"
		" current_setting('postrider.signals'),"
		" current_setting('client_encoding'),"
		" current_setting('application_name'),"
		" current_setting('synchronous_commit')) AS text",
		SQL_ONE, 0 };
	static const struct shape shape[] = {
		SHAPE(TEXT, struct row, text, NULL),
		SHAPE_END(struct row),
	};
	AUTO(tx_end) struct tx *tx = tx_new(conn, arena);
	struct row row = { 0 };
	struct err err = { 0 };

	cr_assert(sql_one(tx, &stmt, shape, &row, &err), "%s", err.text);
	cr_expect_str_eq(
	    row.text, "UTC public 10s 20s 30s after UTF8 test/sql on");
	tx_rollback(tx);
	tx_lazy(tx);
	cr_assert(sql_one(tx, &stmt, shape, &row, &err), "%s", err.text);
	cr_expect(strstr(row.text, "test/sql off"), "%s", row.text);
	tx_rollback(tx);
	cr_assert(sql_one(tx, &stmt, shape, &row, &err), "%s", err.text);
	cr_expect(strstr(row.text, "test/sql on"), "lazy once: %s", row.text);
}

/* Each statement a transaction by itself, and what it is told holds for it
 * alone, also after one that failed or was rolled back. */
Test(sql, a_commit_waits_for_the_disk_unless_told_otherwise)
{
	static const struct stmt stmt = { "t_mode",
		"SELECT current_setting('synchronous_commit') AS text", SQL_ONE,
		0 };
	static const struct shape shape[] = {
		SHAPE(TEXT, struct row, text, NULL),
		SHAPE_END(struct row),
	};
	static const bool lazy[] = { false, true, true, false, true };
	AUTO(tx_end) struct tx *tx = tx_new(conn, arena);
	struct row row;
	struct err err = { 0 };

	cr_assert(add(tx, 7, &err) && tx_commit(tx, &err));
	for (size_t i = 0; i < COUNT(lazy) * 3; i++) {
		bool is_lazy = lazy[i % COUNT(lazy)];

		if (is_lazy)
			tx_lazy(tx);
		if (i % 3 != 1)
			tx_closing(tx);
		cr_assert(sql_one(tx, &stmt, shape, &row, &err));
		cr_expect_str_eq(row.text, is_lazy ? "off" : "on");
		if (i % 3 == 1)
			tx_rollback(tx);
		else
			cr_assert(tx_commit(tx, &err));
		if (i % 4 == 0) {
			tx_lazy(tx);
			tx_closing(tx);
			cr_expect_not(add(tx, 7, &err), "it is there");
			tx_rollback(tx);
		}
	}
}

Test(sql, a_closing_statement_takes_the_commit_along)
{
	AUTO(tx_end) struct tx *tx = tx_new(conn, arena);
	struct err err = { 0 };

	tx_closing(tx);
	cr_assert(add(tx, 1, &err), "%s", err.text);
	tx_rollback(tx);
	cr_expect_eq(rows_in_t(), 1, "there is nothing left to roll back");
	cr_assert(add(tx, 2, &err) && tx_commit(tx, &err), "%s", err.text);
	tx_closing(tx);
	cr_expect_not(add(tx, 2, &err), "it is there already");
	cr_expect_not(tx_commit(tx, &err));
	cr_expect_eq(rows_in_t(), 2);
	cr_assert(add(tx, 3, &err), "%s", err.text);
	tx_rollback(tx);
	cr_expect_eq(rows_in_t(), 2, "closing once");
}

/* ---- a database that goes away ---- */

Test(sql, a_closing_statement_is_not_tried_again)
{
	AUTO(tx_end) struct tx *tx = tx_new(conn, arena);
	struct err err = { 0 };

	cr_assert(add(tx, 1, &err) && tx_commit(tx, &err));
	kill_connection();
	tx_closing(tx);
	cr_expect_not(add(tx, 2, &err));
	cr_expect_eq(err.code, ERR_BUSY);
	tx_rollback(tx);
	cr_expect(add(tx, 2, &err) && tx_commit(tx, &err), "%s", err.text);
}

Test(sql, a_connection_that_died_idle_is_replaced_unseen)
{
	AUTO(tx_end) struct tx *tx = tx_new(conn, arena);
	struct err err = { 0 };

	cr_assert(add(tx, 1, &err) && tx_commit(tx, &err));
	kill_connection();
	cr_expect(add(tx, 2, &err) && tx_commit(tx, &err), "%s", err.text);
	cr_expect_eq(rows_in_t(), 2);
}

Test(sql, a_connection_that_dies_amid_a_transaction_loses_it)
{
	AUTO(tx_end) struct tx *tx = tx_new(conn, arena);
	struct err err = { 0 };

	cr_assert(add(tx, 1, &err));
	kill_connection();
	cr_expect(!add(tx, 2, &err));
	cr_expect_eq(err.code, ERR_BUSY);
	cr_expect(!add(tx, 3, &err), "lost is lost");
	cr_expect_eq(err.code, ERR_BUSY);
	cr_expect(!tx_commit(tx, &err));
	cr_expect_eq(err.code, ERR_BUSY);
	cr_expect(add(tx, 4, &err) && tx_commit(tx, &err), "%s", err.text);
	cr_expect_eq(rows_in_t(), 1);
}

Test(sql, a_commit_on_a_dead_connection_fails)
{
	AUTO(tx_end) struct tx *tx = tx_new(conn, arena);
	struct err err = { 0 };

	cr_assert(add(tx, 1, &err));
	kill_connection();
	cr_expect(!tx_commit(tx, &err));
	cr_expect_eq(err.code, ERR_BUSY);
	cr_expect_eq(rows_in_t(), 0);
}

Test(sql, an_absent_database_refuses_at_once_and_comes_back)
{
	const struct conn_def def = { .conninfo =
					  "host=/nowhere dbname=nothing" };
	AUTO(conn_free) struct conn *away = conn_new(&def);
	AUTO(tx_end) struct tx *tx = tx_new(away, arena);
	struct err err = { 0 };
	int64_t began;

	cr_expect(!add(tx, 1, &err));
	cr_expect_eq(err.code, ERR_BUSY);
	cr_expect(!conn_is_up(away));
	began = clock_steady_ms();
	for (int i = 0; i < 100; i++)
		cr_expect(!add(tx, 1, &err));
	cr_expect(clock_steady_ms() - began < 100);
	cr_expect_str_eq(err.text, "database is away");
	clock_shift_ms(2001);
	cr_expect(!add(tx, 1, &err));
	cr_expect(strstr(err.text, "away: "), "tried again: %s", err.text);
}

Test(sql, a_changed_table_is_busy_once)
{
	static const struct stmt stmt = { "star",
		"SELECT *, 1 AS n FROM parent RIGHT JOIN (VALUES (1)) AS v (x)"
		" ON true",
		SQL_ONE, 0 };
	AUTO(tx_end) struct tx *tx = tx_new(conn, arena);
	struct number row;
	struct err err = { 0 };

	cr_assert(sql_one(tx, &stmt, number_shape, &row, &err) &&
	    tx_commit(tx, &err));
	test_db_script(database, "ALTER TABLE parent ADD COLUMN more text");
	cr_expect(!sql_one(tx, &stmt, number_shape, &row, &err));
	cr_expect_eq(err.code, ERR_BUSY, "%s", err.text);
	tx_rollback(tx);
	cr_expect(sql_one(tx, &stmt, number_shape, &row, &err), "%s", err.text);
}

Test(sql, scripts_run_within_and_without_a_transaction)
{
	AUTO(tx_end) struct tx *tx = tx_new(conn, arena);
	struct err err = { 0 };

	cr_expect(conn_script(conn,
	    "INSERT INTO t (id) VALUES (1); INSERT INTO t (id) VALUES (2)",
	    &err));
	cr_expect_eq(rows_in_t(), 2);
	cr_expect(!conn_script(conn, "BEGIN; SELECT 1/0", &err));
	cr_expect_eq(err.code, ERR_INVALID);
	cr_assert(add(tx, 3, &err));
	cr_expect(conn_script(conn, "INSERT INTO t (id) VALUES (4)", &err));
	tx_rollback(tx);
	cr_expect_eq(rows_in_t(), 2);
}
