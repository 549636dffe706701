/*
 * test_db -- throw-away databases with the schema in them.
 *
 * POSTRIDER_TEST_DB names a superuser of a test cluster in libpq's keyword
 * form ("host=/x user=postgres dbname=postgres"). The first test that needs a
 * database migrates a template, under a lock; each database is a copy of it.
 * The template's name holds a digest of the migrations, so that a changed
 * file makes another.
 *
 * Nothing here knows Criterion, so that benches and demos may use it; a test
 * begins with test_db_needed().
 */
#ifndef POSTRIDER_TEST_DB_H
#define POSTRIDER_TEST_DB_H

#include "common/pg/sql.h"

/* Is POSTRIDER_TEST_DB set? */
bool test_db_available(void);

#define test_db_needed() \
	do { \
		if (!test_db_available()) \
			cr_skip_test("POSTRIDER_TEST_DB is not set"); \
	} while (0)

/* A fresh migrated database, or one without any schema: its conninfo as the
 * superuser. Owned by the caller until test_db_drop, which also ends every
 * connection to it. A failure ends the process with a line on stderr. */
char *test_db_create(void);
char *test_db_create_empty(void);
void test_db_drop(char **conninfo);

/* Drops what the tests of a run (test_run.h) have left. */
void test_db_drop_run(const char *run);

/* The same database as another role; lives in the arena. */
const char *test_db_as(
    struct arena *arena, const char *conninfo, const char *role);

/* Where the migrations are: POSTRIDER_SCHEMA_DIR, else schema. */
const char *test_db_schema_dir(void);

/* A connection of the tests' own; conninfo must outlive it. */
struct conn *test_db_conn(const char *conninfo);

/* Statements without result; the process ends when one fails. */
void test_db_script(const char *conninfo, const char *script);

/* One row with a bigint column n or a text column t. */
int64_t test_db_number(const char *conninfo, const char *query);
const char *test_db_text(
    struct arena *arena, const char *conninfo, const char *query);

/* What takes ms on an idle machine: longer where more runs than there are
 * processors. Waits of this library reckon with it themselves. */
int test_patience_ms(int ms);

/* Polls until the boolean column b of the query is true; false after ms. */
bool test_db_until(const char *conninfo, const char *query, int ms);

#endif
