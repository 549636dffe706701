/*
 * Every statement of the tree on a fresh schema: does it parse, do its tables
 * and columns exist, and may a role that uses its folder run it? EXPLAIN
 * checks rights without running anything.
 */
#include <glob.h>

#include <criterion/criterion.h>

#include "common/base/buf.h"
#include "common/pg/sql.h"
#include "tests/lib/test_db.h"

enum { TEXT_MAX = 1 << 16, ROLES_MAX = 2, PARAMS_MAX = 48 };

struct folder {
	const char *files;
	const char *roles[ROLES_MAX]; /* at least one of them may */
};

/* clang-format off */
static const struct folder folders[] = {
	{ "common/chat/*.sql",       { "postrider_frontd", NULL } },
	{ "common/federation/*.sql", { "postrider_frontd", "postrider_outboxd" } },
	{ "common/fediverse/*.sql",  { "postrider_outboxd", "postrider_frontd" } },
	{ "common/pg/*.sql",         { "postrider_frontd", "postrider_outboxd" } },
	{ "common/queue/*.sql",      { "postrider_outboxd", "postrider_frontd" } },
	{ "frontd/*.sql",            { "postrider_frontd", NULL } },
	{ "janitord/*.sql",          { "postrider_janitord", NULL } },
	{ "outboxd/*.sql",           { "postrider_outboxd", NULL } },
};
/* clang-format on */

/* What needs the types of values, which only the calls know. */
static const char *const needs_types[] = { "42P18", "42725", "42P08", "42883",
	"42804" };

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

TestSuite(statements, .init = set_up, .fini = tear_down);

enum { NAME_MAX_LEN = 80, PARTS_MAX = 16 };

struct statement {
	char name[NAME_MAX_LEN];
	struct buf text;
};

/* What a file says once and uses in several statements (sql2h.awk). */
struct parts {
	struct statement list[PARTS_MAX];
	size_t count;
};

static int params_of(const char *text)
{
	int highest = 0;

	for (const char *c = text; (c = strchr(c, '$')) != NULL; c++) {
		int number = (int)strtol(c + 1, NULL, 10);

		if (number > highest && number < PARAMS_MAX)
			highest = number;
	}
	return highest;
}

static const char *explain_of(const char *text)
{
	struct buf out;
	int params = params_of(text);

	buf_init(&out, arena, TEXT_MAX);
	buf_text(&out, "EXPLAIN EXECUTE tried");
	for (int i = 0; i < params; i++)
		buf_text(&out, i ? ", NULL" : "(NULL");
	if (params)
		buf_char(&out, ')');
	return out.data;
}

static bool is_untyped(const char *state)
{
	for (size_t i = 0; i < COUNT(needs_types); i++)
		if (strcmp(state, needs_types[i]) == 0)
			return true;
	return false;
}

/* "" when it is fine, else what is wrong. */
static const char *try_as(const char *role, const char *text)
{
	const char *conninfo = test_db_as(arena, database, role);
	AUTO(conn_free) struct conn *conn = test_db_conn(conninfo);
	const char *prepare = arena_printf(arena, "PREPARE tried AS %s", text);
	struct err err = { 0 };

	if (!conn_script(conn, prepare, &err))
		return is_untyped(conn_sqlstate(conn))
		    ? ""
		    : arena_text(arena, err.text);
	if (!conn_script(conn, explain_of(text), &err))
		return arena_text(arena, err.text);
	return "";
}

static int statement_try(
    const struct folder *folder, const char *file, struct statement *statement)
{
	const char *wrong = "";

	if (!statement->name[0])
		return 0;
	for (size_t i = 0; i < ROLES_MAX && folder->roles[i]; i++) {
		wrong = try_as(folder->roles[i], statement->text.data);
		if (!*wrong)
			break;
	}
	cr_expect_str_eq(wrong, "", "%s: %s: %s", file, statement->name, wrong);
	statement->name[0] = '\0';
	return 1;
}

static struct buf *part_new(struct parts *parts, const char *line)
{
	struct statement *part = &parts->list[parts->count++];

	cr_assert_leq(parts->count, PARTS_MAX);
	buf_init(&part->text, arena, TEXT_MAX);
	cr_assert_eq(sscanf(line, "-- part: %79s", part->name), 1);
	return &part->text;
}

static const char *part_used(const struct parts *parts, const char *line)
{
	char name[NAME_MAX_LEN];

	cr_assert_eq(sscanf(line, "-- use: %79s", name), 1);
	for (size_t i = 0; i < parts->count; i++)
		if (strcmp(parts->list[i].name, name) == 0)
			return parts->list[i].text.data;
	cr_assert_fail("no part %s", name);
	return "";
}

static int file_try(const struct folder *folder, const char *path)
{
	FILE *file = fopen(path, "re");
	struct statement statement = { .name = "" };
	struct parts parts = { .count = 0 };
	struct buf *text = NULL; /* what a line belongs to */
	char *line = NULL;
	size_t room = 0;
	int count = 0;

	cr_assert(file, "%s", path);
	while (getline(&line, &room, file) > 0) {
		const char *word = line + strspn(line, " \t");

		if (strncmp(line, "-- name:", 8) == 0) {
			count += statement_try(folder, path, &statement);
			text = &statement.text;
			buf_init(text, arena, TEXT_MAX);
			cr_assert_eq(
			    sscanf(line, "-- name: %79s", statement.name), 1);
		} else if (strncmp(line, "-- part:", 8) == 0) {
			count += statement_try(folder, path, &statement);
			text = part_new(&parts, line);
		} else if (text && strncmp(word, "-- use:", 7) == 0) {
			buf_text(text, part_used(&parts, word));
		} else if (text && strncmp(word, "--", 2) != 0) {
			buf_text(text, line);
		}
	}
	count += statement_try(folder, path, &statement);
	free(line);
	fclose(file);
	return count;
}

Test(statements, each_fits_the_schema_and_the_rights, .timeout = 300)
{
	const char *top = getenv("POSTRIDER_TOP");
	int count = 0;

	for (size_t i = 0; i < COUNT(folders); i++) {
		glob_t found;

		if (glob(arena_printf(
			     arena, "%s/%s", top ? top : ".", folders[i].files),
			0, NULL, &found) != 0)
			continue;
		for (size_t f = 0; f < found.gl_pathc; f++)
			count += file_try(&folders[i], found.gl_pathv[f]);
		globfree(&found);
	}
	cr_expect(count > 50, "only %d statements found", count);
}
