#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/pg/schema.h"
#include "schema/migrate.h"
#include "tests/lib/test_db.h"
#include "tests/lib/test_run.h"

enum { POLL_MS = 5, SCRIPT_MAX = 160, DROPS_MAX = 20 };

struct answer {
	int64_t n;
	const char *t;
	bool b;
};

static const struct shape number_shape[] = {
	SHAPE(INT, struct answer, n, NULL),
	SHAPE_END(struct answer),
};

static const struct shape text_shape[] = {
	SHAPE(TEXT, struct answer, t, NULL),
	SHAPE_END(struct answer),
};

static const struct shape flag_shape[] = {
	SHAPE(BOOL, struct answer, b, NULL),
	SHAPE_END(struct answer),
};

int test_patience_ms(int ms)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	double load = 0;

	if (getloadavg(&load, 1) != 1 || processors < 1 || load < processors)
		return ms;
	return (int)(ms * load / processors);
}

static void must(bool good, const char *what, const struct err *err)
{
	if (good)
		return;
	fprintf(stderr, "test database: %s: %s\n", what, err->text);
	abort();
}

bool test_db_available(void)
{
	const char *conninfo = getenv("POSTRIDER_TEST_DB");

	return conninfo && *conninfo;
}

static const char *admin_conninfo(void)
{
	if (!test_db_available()) {
		fprintf(
		    stderr, "test database: POSTRIDER_TEST_DB is not set\n");
		abort();
	}
	return getenv("POSTRIDER_TEST_DB");
}

const char *test_db_schema_dir(void)
{
	const char *dir = getenv("POSTRIDER_SCHEMA_DIR");

	return dir && *dir ? dir : "schema";
}

struct conn *test_db_conn(const char *conninfo)
{
	const struct conn_def def = { .conninfo = conninfo,
		.application = "test" };

	return conn_new(&def);
}

/* ---- questions ---- */

static void ask(struct arena *arena, const char *conninfo, const char *query,
    const struct shape *shape, struct answer *answer)
{
	AUTO(conn_free) struct conn *conn = test_db_conn(conninfo);
	AUTO(tx_end) struct tx *tx = tx_new(conn, arena);
	const struct stmt stmt = { "question", query, SQL_ONE, 0 };
	struct err err = { 0 };

	must(sql_one(tx, &stmt, shape, answer, &err) && tx_commit(tx, &err),
	    query, &err);
}

int64_t test_db_number(const char *conninfo, const char *query)
{
	AUTO(arena_free) struct arena *arena = arena_new();
	struct answer answer = { 0 };

	ask(arena, conninfo, query, number_shape, &answer);
	return answer.n;
}

const char *test_db_text(
    struct arena *arena, const char *conninfo, const char *query)
{
	struct answer answer = { 0 };

	ask(arena, conninfo, query, text_shape, &answer);
	return answer.t;
}

bool test_db_until(const char *conninfo, const char *query, int ms)
{
	const struct timespec pause = { 0, POLL_MS * 1000000L };
	const struct stmt stmt = { "until", query, SQL_ONE, 0 };
	AUTO(arena_free) struct arena *arena = arena_new();
	AUTO(conn_free) struct conn *conn = test_db_conn(conninfo);
	struct answer answer = { 0 };
	struct err err = { 0 };

	ms = test_patience_ms(ms);
	for (int waited = 0;; waited += POLL_MS) {
		AUTO(tx_end) struct tx *tx = tx_new(conn, arena);

		must(
		    sql_one(tx, &stmt, flag_shape, &answer, &err), query, &err);
		if (answer.b || waited >= ms)
			return answer.b;
		nanosleep(&pause, NULL);
	}
}

static void script(struct conn *conn, const char *text)
{
	struct err err = { 0 };

	must(conn_script(conn, text, &err), text, &err);
}

void test_db_script(const char *conninfo, const char *text)
{
	AUTO(conn_free) struct conn *conn = test_db_conn(conninfo);

	script(conn, text);
}

/* ---- the template ---- */

static struct migrate migration(struct conn *conn, struct arena *arena)
{
	return (struct migrate){
		.conn = conn, .arena = arena, .dir = test_db_schema_dir()
	};
}

/* Of the files' checksums: the name changes with any of them. */
static const char *template_name(struct conn *admin, struct arena *arena)
{
	const struct migrate migrate = migration(admin, arena);
	const struct migration *items;
	struct rows rows = { 0 };
	struct err err = { 0 };
	uint64_t digest = 1469598103934665603u;
	int64_t newest;

	must(migrate_status(&migrate, &rows, &newest, &err), "files", &err);
	items = rows.items;
	for (size_t i = 0; i < rows.count; i++)
		for (const char *c = items[i].checksum; *c; c++)
			digest = (digest ^ (uint64_t)*c) * 1099511628211u;
	return arena_printf(arena, "postrider_template_%d_%08" PRIx64,
	    schema_needed, digest >> 32);
}

static void roles_make(struct conn *admin, struct arena *arena)
{
	const char *path =
	    arena_printf(arena, "%s/roles.sql", test_db_schema_dir());
	FILE *file = fopen(path, "re");
	struct buf buf;
	char part[4096];
	size_t len;

	if (!file)
		return;
	buf_init(&buf, arena, 1 << 20);
	while ((len = fread(part, 1, sizeof(part), file)) > 0)
		buf_add(&buf, part, len);
	fclose(file);
	script(admin, buf.data);
}

static void template_migrate(struct arena *arena, const char *name)
{
	const char *conninfo =
	    arena_printf(arena, "%s dbname=%s", admin_conninfo(), name);
	AUTO(conn_free) struct conn *conn = test_db_conn(conninfo);
	const struct migrate migrate = migration(conn, arena);
	struct err err = { 0 };

	must(migrate_up(&migrate, 0, &err), "migrations", &err);
}

/* Made under another name, so that half a template is never taken. */
static void template_make(
    struct conn *admin, struct arena *arena, const char *name)
{
	const char *making = arena_printf(arena, "%s_making", name);

	roles_make(admin, arena);
	script(admin,
	    arena_printf(
		arena, "DROP DATABASE IF EXISTS %s WITH (FORCE)", making));
	script(admin,
	    arena_printf(arena,
		"CREATE DATABASE %s TEMPLATE template0 ENCODING 'UTF8'",
		making));
	template_migrate(arena, making);
	script(admin,
	    arena_printf(
		arena, "ALTER DATABASE %s ALLOW_CONNECTIONS false", making));
	script(admin,
	    arena_printf(
		arena, "ALTER DATABASE %s RENAME TO %s", making, name));
}

static bool database_exists(
    struct conn *admin, struct arena *arena, const char *name)
{
	static const struct stmt stmt = { "exists",
		"SELECT count(*) AS n FROM pg_database WHERE datname = $1",
		SQL_ONE, 1 };
	AUTO(tx_end) struct tx *tx = tx_new(admin, arena);
	struct answer answer = { 0 };
	struct err err = { 0 };

	must(sql_one(tx, &stmt, number_shape, &answer, &err, v_text(name)),
	    "look-up", &err);
	return answer.n > 0;
}

/* A session lock: one test makes the template, the others wait. */
static const char *template_ready(struct conn *admin, struct arena *arena)
{
	const char *name;

	script(
	    admin, "SET lock_timeout = 0; SELECT pg_advisory_lock(72368390)");
	name = template_name(admin, arena);
	if (!database_exists(admin, arena, name))
		template_make(admin, arena, name);
	script(admin, "SELECT pg_advisory_unlock(72368390)");
	return name;
}

/* ---- databases ---- */

static char *create(
    struct conn *admin, struct arena *arena, const char *template)
{
	static int number;
	const char *run = getenv(TEST_RUN);
	const char *name = arena_printf(arena,
	    "postrider_test_%s_%d_%d_%" PRId64, run ? run : "alone",
	    (int)getpid(), ++number, clock_wall_ms() % 1000000);
	const char *conninfo;
	char *copy;

	script(admin,
	    arena_printf(arena,
		"CREATE DATABASE %s TEMPLATE %s STRATEGY wal_log", name,
		template));
	conninfo = arena_printf(arena, "%s dbname=%s", admin_conninfo(), name);
	copy = strdup(conninfo);
	if (!copy)
		abort();
	return copy;
}

char *test_db_create(void)
{
	AUTO(arena_free) struct arena *arena = arena_new();
	AUTO(conn_free) struct conn *admin = test_db_conn(admin_conninfo());

	return create(admin, arena, template_ready(admin, arena));
}

char *test_db_create_empty(void)
{
	AUTO(arena_free) struct arena *arena = arena_new();
	AUTO(conn_free) struct conn *admin = test_db_conn(admin_conninfo());

	return create(admin, arena, "template0");
}

/* The server waits five seconds for the sessions that it ends, no longer. */
static void drop(const char *name)
{
	AUTO(conn_free) struct conn *admin = test_db_conn(admin_conninfo());
	char text[SCRIPT_MAX];
	struct err err = { 0 };
	bool dropped = false;

	snprintf(text, sizeof(text), "DROP DATABASE IF EXISTS %s WITH (FORCE)",
	    name);
	for (int i = 0; i < DROPS_MAX && !dropped; i++) {
		dropped = conn_script(admin, text, &err);
		if (!dropped && strcmp(conn_sqlstate(admin), "55006") != 0)
			break;
	}
	must(dropped, text, &err);
}

void test_db_drop(char **conninfo)
{
	const char *name;

	if (!*conninfo)
		return;
	name = strrchr(*conninfo, '='); /* dbname is the last word */
	assert(name);
	drop(name + 1);
	free(*conninfo);
	*conninfo = NULL;
}

void test_db_drop_run(const char *run)
{
	static const struct stmt stmt = { "left",
		"SELECT datname::text AS t FROM pg_database"
		" WHERE starts_with(datname, 'postrider_test_' || $1 || '_')",
		SQL_MANY, 1 };
	AUTO(arena_free) struct arena *arena = arena_new();
	AUTO(conn_free) struct conn *admin = test_db_conn(admin_conninfo());
	AUTO(tx_end) struct tx *tx = tx_new(admin, arena);
	struct rows rows = { 0 };
	const struct answer *left;
	struct err err = { 0 };

	must(sql_many(tx, &stmt, text_shape, &rows, &err, v_text(run)),
	    "what is left", &err);
	left = rows.items;
	for (size_t i = 0; i < rows.count; i++)
		drop(left[i].t);
}

const char *test_db_as(
    struct arena *arena, const char *conninfo, const char *role)
{
	return arena_printf(arena, "%s user=%s", conninfo, role);
}
