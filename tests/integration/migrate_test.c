#include <pthread.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "common/pg/schema.h"
#include "schema/migrate.h"
#include "tests/lib/test_db.h"

enum { LINES_MAX = 128 };

struct report {
	int count;
	char lines[LINES_MAX][80];
};

static char *database;
static struct conn *conn;
static struct arena *arena;
static struct report report;

static void report_line(void *arg, const char *line)
{
	struct report *r = arg;

	cr_assert(r->count < LINES_MAX);
	snprintf(r->lines[r->count++], sizeof(r->lines[0]), "%s", line);
}

static struct migrate migrate_of(const char *dir)
{
	return (struct migrate){ .conn = conn,
		.arena = arena,
		.dir = dir ? dir : test_db_schema_dir(),
		.report = report_line,
		.arg = &report };
}

static void set_up(void)
{
	char *other;

	test_db_needed();
	other = test_db_create(); /* makes the roles */
	test_db_drop(&other);
	database = test_db_create_empty();
	conn = test_db_conn(database);
	arena = arena_new();
	memset(&report, 0, sizeof(report));
}

static void tear_down(void)
{
	conn_free(&conn);
	arena_free(&arena);
	test_db_drop(&database);
}

TestSuite(migrate, .init = set_up, .fini = tear_down);

/* What a user of the database could see of us. */
static int64_t things(void)
{
	return test_db_number(database,
	    "SELECT (SELECT count(*) FROM pg_class c JOIN pg_namespace n"
	    " ON n.oid = relnamespace WHERE nspname IN ('public', 'ops'))"
	    " + (SELECT count(*) FROM pg_proc p JOIN pg_namespace n"
	    " ON n.oid = pronamespace WHERE nspname IN ('public', 'ops'))"
	    " + (SELECT count(*) FROM pg_namespace WHERE nspname = 'ops')"
	    " AS n");
}

static int64_t applied(void)
{
	return test_db_number(
	    database, "SELECT count(*) AS n FROM schema_migrations");
}

Test(migrate, up_applies_all_and_down_to_zero_leaves_nothing)
{
	const struct migrate migrate = migrate_of(NULL);
	struct err err = { 0 };

	cr_assert(migrate_up(&migrate, 0, &err), "%s", err.text);
	cr_expect_eq(applied(), schema_needed);
	cr_expect_eq(report.count, schema_needed);
	cr_expect_str_eq(report.lines[0], "applied 0001 base");
	cr_expect(migrate_up(&migrate, 0, &err), "again: %s", err.text);
	cr_expect_eq(report.count, schema_needed, "nothing to do");
	cr_assert(migrate_down(&migrate, 0, &err), "%s", err.text);
	cr_expect_eq(things(), 0);
	cr_assert(migrate_up(&migrate, 0, &err), "and up: %s", err.text);
	cr_expect_eq(applied(), schema_needed);
}

Test(migrate, every_step_down_and_up_again_fits)
{
	const struct migrate migrate = migrate_of(NULL);
	struct err err = { 0 };

	cr_assert(migrate_up(&migrate, 0, &err), "%s", err.text);
	for (int64_t to = schema_needed - 1; to >= 0; to--) {
		cr_assert(migrate_down(&migrate, to, &err), "%s", err.text);
		cr_assert(migrate_up(&migrate, to + 1, &err), "%s", err.text);
		cr_assert(migrate_down(&migrate, to, &err), "%s", err.text);
	}
}

Test(migrate, it_stops_where_it_is_told)
{
	const struct migrate migrate = migrate_of(NULL);
	struct err err = { 0 };

	cr_assert(migrate_up(&migrate, 3, &err), "%s", err.text);
	cr_expect_eq(applied(), 3);
	cr_assert(migrate_down(&migrate, 1, &err), "%s", err.text);
	cr_expect_eq(applied(), 1);
	cr_expect(!migrate_up(&migrate, 999, &err));
	cr_expect_eq(err.code, ERR_INVALID);
}

Test(migrate, a_dry_run_says_and_does_nothing)
{
	struct migrate migrate = migrate_of(NULL);
	struct err err = { 0 };

	migrate.dry_run = true;
	cr_assert(migrate_up(&migrate, 2, &err), "%s", err.text);
	cr_expect_eq(report.count, 2);
	cr_expect_str_eq(report.lines[1], "would apply 0002 chat");
	cr_expect_eq(things(), 0);
	migrate.dry_run = false;
	cr_assert(migrate_up(&migrate, 2, &err), "%s", err.text);
	migrate.dry_run = true;
	report.count = 0;
	cr_assert(migrate_down(&migrate, 0, &err), "%s", err.text);
	cr_expect_eq(report.count, 2);
	cr_expect_str_eq(report.lines[0], "would take back 0002 chat");
	cr_expect_eq(applied(), 2);
}

Test(migrate, a_changed_file_is_refused)
{
	const struct migrate migrate = migrate_of(NULL);
	struct err err = { 0 };

	cr_assert(migrate_up(&migrate, 3, &err), "%s", err.text);
	test_db_script(database,
	    "UPDATE schema_migrations SET checksum = 'x' WHERE number = 2");
	cr_expect(!migrate_up(&migrate, 0, &err));
	cr_expect_eq(err.code, ERR_CONFLICT);
	cr_expect(
	    strstr(err.text, "migration 2 (chat) has changed"), "%s", err.text);
	cr_expect(!migrate_down(&migrate, 0, &err));
	cr_expect_eq(applied(), 3);
}

static const char *dir_make(const char *second_up)
{
	char *dir = arena_text(arena, "/tmp/postrider-migrate-XXXXXX");
	const char *const files[][2] = {
		{ "0001_one.up.sql", "CREATE TABLE one (a int);" },
		{ "0001_one.down.sql", "DROP TABLE one;" },
		{ "0002_two.up.sql", second_up },
		{ "0002_two.down.sql", "DROP TABLE two;" },
	};

	cr_assert(mkdtemp(dir));
	for (size_t i = 0; i < COUNT(files); i++) {
		FILE *file =
		    fopen(arena_printf(arena, "%s/%s", dir, files[i][0]), "w");

		cr_assert(file);
		fputs(files[i][1], file);
		fclose(file);
	}
	return dir;
}

static void dir_drop(const char *dir)
{
	const char *const names[] = { "0001_one.up.sql", "0001_one.down.sql",
		"0002_two.up.sql", "0002_two.down.sql" };

	for (size_t i = 0; i < COUNT(names); i++)
		unlink(arena_printf(arena, "%s/%s", dir, names[i]));
	rmdir(dir);
}

Test(migrate, a_step_that_fails_leaves_the_one_before)
{
	const char *dir = dir_make("CREATE TABLE two (a int); SELECT 1/0;");
	const struct migrate migrate = migrate_of(dir);
	struct err err = { 0 };

	cr_expect(!migrate_up(&migrate, 0, &err));
	cr_expect(strstr(err.text, "migration 2 (two)"), "%s", err.text);
	cr_expect_eq(applied(), 1);
	cr_expect_eq(test_db_number(database,
			 "SELECT count(*) AS n FROM pg_class"
			 " WHERE relname = 'two'"),
	    0);
	dir_drop(dir);
}

Test(migrate, a_gap_in_the_files_is_refused)
{
	const char *dir = dir_make("SELECT 1;");
	const struct migrate migrate = migrate_of(dir);
	struct err err = { 0 };

	unlink(arena_printf(arena, "%s/0001_one.up.sql", dir));
	cr_expect(!migrate_up(&migrate, 0, &err));
	cr_expect(strstr(err.text, "migration 1 is missing"), "%s", err.text);
	dir_drop(dir);
}

static void *other_migration(void *arg)
{
	struct err *err = arg;
	AUTO(conn_free) struct conn *other = test_db_conn(database);
	AUTO(arena_free) struct arena *own = arena_new();
	const struct migrate migrate = {
		.conn = other, .arena = own, .dir = test_db_schema_dir()
	};

	return migrate_up(&migrate, 0, err) ? arg : NULL;
}

Test(migrate, two_at_once_do_each_step_once)
{
	const struct migrate migrate = migrate_of(NULL);
	pthread_t thread;
	struct err err = { 0 };
	struct err other_err = { 0 };
	void *other_good = NULL;

	cr_assert_eq(
	    pthread_create(&thread, NULL, other_migration, &other_err), 0);
	cr_expect(migrate_up(&migrate, 0, &err), "%s", err.text);
	pthread_join(thread, &other_good);
	cr_expect(other_good, "%s", other_err.text);
	cr_expect_eq(applied(), schema_needed);
}

/* What a daemon says of a database that does not fit. */
Test(migrate, daemons_name_what_they_need_and_what_is_there)
{
	const int needed = schema_needed;
	const struct {
		const char *script;
		const char *says;
	} cases[] = {
		{ NULL,
		    arena_printf(arena,
			"no schema of Postrider, this program needs %d",
			needed) },
		{ "CREATE TABLE schema_migrations (number int)",
		    "no schema of Postrider" },
		{ arena_printf(arena,
		      "INSERT INTO schema_migrations VALUES (1), (%d)",
		      needed - 1),
		    arena_printf(arena,
			"has schema %d, this program needs %d: run "
			"postrider-ctl",
			needed - 1, needed) },
		{ arena_printf(arena,
		      "INSERT INTO schema_migrations VALUES (%d)", needed + 1),
		    arena_printf(arena,
			"has schema %d, this program needs %d: install the "
			"newer",
			needed + 1, needed) },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		AUTO(tx_end) struct tx *tx = tx_new(conn, arena);
		struct err err = { 0 };

		if (cases[i].script)
			test_db_script(database, cases[i].script);
		cr_expect(!schema_check(tx, &err));
		cr_expect_eq(err.code, ERR_CONFLICT);
		cr_expect(strstr(err.text, cases[i].says), "%s", err.text);
	}
}

Test(migrate, a_fitting_schema_is_taken)
{
	const struct migrate migrate = migrate_of(NULL);
	AUTO(tx_end) struct tx *tx = NULL;
	struct err err = { 0 };

	cr_assert(migrate_up(&migrate, 0, &err), "%s", err.text);
	tx = tx_new(conn, arena);
	cr_expect(schema_check(tx, &err), "%s", err.text);
}
