#include <glob.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "common/base/buf.h"
#include "common/pg/schema.h"
#include "tests/lib/test_db.h"

enum { OUTPUT_MAX = 1 << 20 };

static struct arena *arena;
static const char *dir;
static const char *config;
static char *database; /* taken over by test_db_drop */

struct outcome {
	int status;
	const char *text; /* stdout and stderr */
};

static const char *program(void)
{
	const char *build = getenv("POSTRIDER_BUILD_DIR");

	return arena_printf(
	    arena, "%s/postrider-ctl", build && *build ? build : ".");
}

static struct outcome run_command(const char *command)
{
	FILE *pipe = popen(command, "re");
	struct buf out;
	char part[4096];
	size_t len;
	int status;

	cr_assert(pipe);
	buf_init(&out, arena, OUTPUT_MAX);
	buf_text(&out, "");
	while ((len = fread(part, 1, sizeof(part), pipe)) > 0)
		buf_add(&out, part, len);
	status = pclose(pipe);
	return (struct outcome){ WIFEXITED(status) ? WEXITSTATUS(status) : -1,
		out.data ? out.data : "" };
}

static struct outcome run(const char *args)
{
	return run_command(arena_printf(arena,
	    "POSTRIDER_SCHEMA_DIR='%s' '%s' --config '%s' %s 2>&1",
	    test_db_schema_dir(), program(), config, args));
}

/* A daemon with the configuration that init wrote, for five seconds. */
static struct outcome run_daemon(const char *daemon)
{
	const char *beside = program();

	return run_command(arena_printf(arena,
	    "PGUSER=postrider_%s POSTRIDER_LISTEN=127.0.0.1:0 timeout 5 "
	    "'%.*s/postrider-%s' --config '%s' 2>&1",
	    daemon, (int)(strrchr(beside, '/') - beside), beside, daemon,
	    config));
}

static struct outcome run_on(const char *conninfo, const char *args)
{
	return run(arena_printf(arena, "%s --database '%s'", args, conninfo));
}

/* The newest step as it is told: "0007 grants". */
static const char *newest_step(void)
{
	const char *pattern = arena_printf(
	    arena, "%s/%04d_*.up.sql", test_db_schema_dir(), schema_needed);
	const char *name;
	glob_t found;

	cr_assert_eq(glob(pattern, 0, NULL, &found), 0, "%s", pattern);
	name = strrchr(found.gl_pathv[0], '/') + 1;
	name = arena_printf(
	    arena, "%.4s %.*s", name, (int)strcspn(name + 5, "."), name + 5);
	globfree(&found);
	return name;
}

static void set_up(void)
{
	char *made;

	test_db_needed();
	arena = arena_new();
	if (access(program(), X_OK) != 0)
		cr_skip_test("postrider-ctl is not built");
	made = arena_text(arena, "/tmp/postrider-ctl-XXXXXX");
	cr_assert(mkdtemp(made));
	dir = made;
	config = arena_printf(arena, "%s/postrider.conf", dir);
	database = strdup(arena_printf(arena, "%s dbname=postrider_ctl_%d",
	    getenv("POSTRIDER_TEST_DB"), (int)getpid()));
}

static void tear_down(void)
{
	if (dir) {
		unlink(config);
		unlink(arena_printf(arena, "%s/node.key", dir));
		rmdir(dir);
	}
	if (database)
		test_db_drop(&database);
	arena_free(&arena);
}

TestSuite(ctl, .init = set_up, .fini = tear_down);

Test(ctl, init_makes_everything_and_may_run_again)
{
	struct outcome first =
	    run_on(database, "init --origin https://a.example");
	struct outcome again = run_on(database, "init");
	struct stat key;
	FILE *file;
	char line[4096];
	size_t len;

	cr_expect_eq(first.status, 0, "%s", first.text);
	cr_expect(strstr(first.text, "made the database"), "%s", first.text);
	cr_expect(strstr(first.text, "applied 0001 base"), "%s", first.text);
	cr_expect_eq(again.status, 0, "%s", again.text);
	cr_expect_str_eq(again.text, "");
	cr_expect_eq(test_db_number(database,
			 "SELECT count(*) AS n FROM schema_migrations"),
	    schema_needed);
	cr_assert_eq(stat(arena_printf(arena, "%s/node.key", dir), &key), 0);
	cr_expect_eq(key.st_mode & 0777, 0600);
	file = fopen(config, "r");
	cr_assert(file);
	len = fread(line, 1, sizeof(line) - 1, file);
	line[len] = '\0';
	fclose(file);
	cr_expect(strstr(line, "origin = https://a.example\n"), "%s", line);
	cr_expect(strstr(line, "dbname=postrider_ctl_"), "%s", line);
	cr_expect_null(strstr(line, "user="), "daemons log in as themselves");
}

Test(ctl, who_may_not_make_roles_is_told_what_to_do)
{
	const char *app = test_db_as(arena, database, "postrider_app");
	struct outcome made = run_on(database, "init");
	struct outcome refused;
	struct outcome printed;

	cr_assert_eq(made.status, 0, "%s", made.text);
	refused = run(arena_printf(
	    arena, "init --database '%s dbname=postrider_ctl_other'", app));
	cr_expect_eq(refused.status, 1);
	cr_expect(strstr(refused.text, "--print-sql"), "%s", refused.text);
	printed = run_on(app, "init --print-sql");
	cr_expect_eq(printed.status, 0);
	cr_expect(strstr(printed.text, "postrider_outboxd"));
	cr_expect(strstr(printed.text, "CREATE DATABASE postrider_ctl_"));
}

Test(ctl, check_says_a_line_per_finding)
{
	struct outcome outcome = run_on(database, "init");
	const struct {
		const char *script;
		const char *line;
	} cases[] = {
		{ "", "no outboxd is running" },
		{ "UPDATE instance_settings SET peer_accept_policy = 'open'",
		    "peer_accept_policy is open" },
		{ "INSERT INTO federation_peers (origin, host, status,"
		  " hmac_secret, auth_failures) VALUES ('https://a.example',"
		  " 'a.example', 'active', 'x', 3)",
		    "peer https://a.example: refuses our signature since" },
		{ "INSERT INTO dead_letters (queue, peer, why)"
		  " VALUES ('outbox', 'https://b.example', 'x')",
		    "1 dead letters for https://b.example" },
		{ "ALTER TABLE nonces SET (autovacuum_enabled = false)",
		    "autovacuum is off for table nonces" },
		{ arena_printf(arena,
		      "DELETE FROM schema_migrations WHERE number = %d",
		      schema_needed),
		    arena_printf(arena,
			"the database has schema %d, this program needs %d",
			schema_needed - 1, schema_needed) },
	};

	cr_assert_eq(outcome.status, 0, "%s", outcome.text);
	for (size_t i = 0; i < COUNT(cases); i++) {
		if (*cases[i].script)
			test_db_script(database, cases[i].script);
		outcome = run_on(database, "check");
		cr_expect_eq(outcome.status, 1);
		cr_expect(strstr(outcome.text, cases[i].line), "%s, not in: %s",
		    cases[i].line, outcome.text);
	}
	outcome = run("check --database 'host=/nowhere dbname=x'");
	cr_expect_eq(outcome.status, 1);
	cr_expect(strstr(outcome.text, "database is away"), "%s", outcome.text);
}

Test(ctl, daemons_end_at_once_on_a_schema_that_does_not_fit)
{
	static const char *const daemons[] = { "frontd", "outboxd",
		"janitord" };
	struct outcome outcome = run_on(database, "init");
	const char *needed = arena_printf(arena,
	    "the database has schema %d, this program needs %d",
	    schema_needed - 1, schema_needed);

	cr_assert_eq(outcome.status, 0, "%s", outcome.text);
	test_db_script(database,
	    arena_printf(arena,
		"DELETE FROM schema_migrations WHERE number = %d",
		schema_needed));
	for (size_t i = 0; i < COUNT(daemons); i++) {
		const char *first;

		outcome = run_daemon(daemons[i]);
		cr_expect_eq(outcome.status, EX_CONFIG, "%s: %d %s", daemons[i],
		    outcome.status, outcome.text);
		first = strstr(outcome.text, needed);
		cr_expect(first, "%s: %s", daemons[i], outcome.text);
		cr_expect_null(first ? strstr(first + 1, needed) : NULL,
		    "said twice: %s", outcome.text);
	}
}

Test(ctl, arguments_are_checked)
{
	const struct {
		const char *args;
		int status;
		const char *says;
	} cases[] = {
		{ "version", 0, "postrider-ctl " },
		{ "--version", 0,
		    arena_printf(arena, "schema %d", schema_needed) },
		{ "--help", 0, "usage: " },
		{ "", 2, "usage: " },
		{ "dance", 2, "usage: " },
		{ "--dance", 2, "--dance" },
		{ "init --database 'dbname=x;y'", 1, "lower-case letters" },
		{ "init --database 'postgresql://h/x'", 1, "key=value" },
		{ "init --database 'host=/nowhere'", 1, "names no database" },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct outcome outcome = run(cases[i].args);

		cr_expect_eq(outcome.status, cases[i].status, "%s: %d %s",
		    cases[i].args, outcome.status, outcome.text);
		cr_expect(strstr(outcome.text, cases[i].says), "%s: %s",
		    cases[i].args, outcome.text);
	}
}

Test(ctl, migrate_moves_and_tells)
{
	struct outcome outcome = run_on(database, "init");
	const char *newest = newest_step();

	cr_assert_eq(outcome.status, 0, "%s", outcome.text);
	unlink(config); /* what was named must be there */
	outcome = run_on(database, "migrate status");
	cr_expect_eq(outcome.status, 1);
	outcome = run_on(database, "init");
	cr_expect_eq(outcome.status, 0, "%s", outcome.text);
	outcome = run_on(database, "migrate down");
	cr_expect_str_eq(
	    outcome.text, arena_printf(arena, "took back %s\n", newest));
	outcome = run_on(database, "migrate status");
	cr_expect(strstr(outcome.text, "0006 ops          applied "));
	cr_expect(strstr(
	    outcome.text, arena_printf(arena, "%-17s not applied\n", newest)));
	outcome = run_on(database, "migrate up --dry-run");
	cr_expect_str_eq(
	    outcome.text, arena_printf(arena, "would apply %s\n", newest));
	outcome = run_on(database, "migrate up");
	cr_expect_str_eq(
	    outcome.text, arena_printf(arena, "applied %s\n", newest));
	outcome = run_on(database, "migrate sideways");
	cr_expect_eq(outcome.status, 1);
}
