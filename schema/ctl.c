/*
 * postrider-ctl -- see ctl.h, and postrider-ctl(8).
 */
#include <getopt.h>
#include <unistd.h>

#include "common/base/build.h"
#include "common/pg/schema.h"
#include "schema/ctl.h"

struct command {
	const char *name;
	int (*run)(struct ctl *ctl);
	bool plain; /* reads no settings */
};

enum option_code {
	OPTION_CONFIG = 256,
	OPTION_DATABASE,
	OPTION_SCHEMA,
	OPTION_ORIGIN,
	OPTION_TO,
	OPTION_DRY_RUN,
	OPTION_PRINT_SQL,
	OPTION_HELP,
	OPTION_VERSION
};

/* clang-format off */
static const struct option options[] = {
	{ "config",    required_argument, NULL, OPTION_CONFIG    },
	{ "database",  required_argument, NULL, OPTION_DATABASE  },
	{ "schema",    required_argument, NULL, OPTION_SCHEMA    },
	{ "origin",    required_argument, NULL, OPTION_ORIGIN    },
	{ "to",        required_argument, NULL, OPTION_TO        },
	{ "dry-run",   no_argument,       NULL, OPTION_DRY_RUN   },
	{ "print-sql", no_argument,       NULL, OPTION_PRINT_SQL },
	{ "help",      no_argument,       NULL, OPTION_HELP      },
	{ "version",   no_argument,       NULL, OPTION_VERSION   },
	{ NULL,        0,                 NULL, 0                },
};
/* clang-format on */

static const char usage[] =
    "usage: postrider-ctl [options] command\n"
    "\n"
    "  init                   roles, database, tables, node key, first\n"
    "                         configuration; may be run again\n"
    "  migrate up|down|status move the schema, or say where it is\n"
    "  check                  what is wrong, a line each; status 1 if any\n"
    "  version                of this program and the schema it needs\n"
    "\n"
    "  --config FILE     settings (" POSTRIDER_CONF_FILE ")\n"
    "  --database TEXT   libpq connection string, instead of the file's\n"
    "  --schema DIR      where the migrations are\n"
    "  --origin URL      init: of this node, for the first configuration\n"
    "  --to N            migrate: stop at this number\n"
    "  --dry-run         migrate: only say what would be done\n"
    "  --print-sql       init: print what a superuser has to run\n";

struct conn *ctl_connect(const char *conninfo)
{
	const struct conn_def def = { .conninfo = conninfo,
		.application = "postrider-ctl",
		.signals_after = false };

	return conn_new(&def);
}

int ctl_fail(const struct err *err)
{
	fprintf(stderr, "postrider-ctl: %s\n", err->text);
	return 1;
}

static int version(UNUSED struct ctl *ctl)
{
	printf(
	    "postrider-ctl %s, schema %d\n", POSTRIDER_VERSION, schema_needed);
	return 0;
}

static int help(UNUSED struct ctl *ctl)
{
	fputs(usage, stdout);
	return 0;
}

static const struct command commands[] = {
	{ "init", ctl_init, false },
	{ "migrate", ctl_migrate, false },
	{ "check", ctl_check, false },
	{ "version", version, true },
	{ "help", help, true },
};

/* ---- arguments ---- */

static bool option_take(struct ctl *ctl, int code, const char **command)
{
	switch (code) {
	case OPTION_CONFIG:
		ctl->config = optarg;
		return true;
	case OPTION_DATABASE:
		ctl->database = optarg;
		return true;
	case OPTION_SCHEMA:
		ctl->schema_dir = optarg;
		return true;
	case OPTION_ORIGIN:
		ctl->origin = optarg;
		return true;
	case OPTION_TO:
		ctl->to = optarg;
		return true;
	case OPTION_DRY_RUN:
		ctl->dry_run = true;
		return true;
	case OPTION_PRINT_SQL:
		ctl->print_sql = true;
		return true;
	case OPTION_HELP:
		*command = "help";
		return true;
	case OPTION_VERSION:
		*command = "version";
		return true;
	default:
		return false;
	}
}

/* ---- settings ---- */

static bool has_file(const char *dir, const char *name)
{
	char path[4096];
	int len = snprintf(path, sizeof(path), "%s/%s", dir, name);

	return len > 0 && (size_t)len < sizeof(path) && access(path, R_OK) == 0;
}

/* In a build tree the migrations lie in schema, seen from the program. */
static const char *beside_program(struct arena *arena)
{
	char path[4096];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);
	char *slash;

	if (len <= 0)
		return NULL;
	path[len] = '\0';
	slash = strrchr(path, '/');
	if (!slash)
		return NULL;
	*slash = '\0';
	return arena_printf(arena, "%s/../schema", path);
}

static const char *schema_dir_find(struct arena *arena)
{
	const char *named = getenv("POSTRIDER_SCHEMA_DIR");
	const char *beside = beside_program(arena);

	if (named && *named)
		return named;
	if (beside && has_file(beside, "roles.sql"))
		return beside;
	return POSTRIDER_SCHEMA_DIR;
}

/* A configuration that isn't there is no fault until somebody names it. */
static bool settings_read(struct ctl *ctl, const char *command, struct err *err)
{
	static const struct conf_key none[] = { { 0 } };
	bool named = ctl->config != NULL;
	bool may_lack = !named || strcmp(command, "init") == 0;

	if (!named)
		ctl->config = POSTRIDER_CONF_FILE;
	ctl->config_read = !may_lack || access(ctl->config, F_OK) == 0;
	if (!conf_load(
		none, &ctl->conf, ctl->config_read ? ctl->config : NULL, err))
		return false;
	if (!ctl->database)
		ctl->database = ctl->conf.common.database;
	if (!ctl->schema_dir)
		ctl->schema_dir = schema_dir_find(ctl->arena);
	return true;
}

static const struct command *command_find(const char *name)
{
	for (size_t i = 0; i < COUNT(commands); i++)
		if (name && strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

int main(int argc, char **argv)
{
	AUTO(arena_free) struct arena *arena = arena_new();
	struct ctl ctl = { .arena = arena };
	const struct command *command;
	const char *name = NULL;
	struct err err = { 0 };
	int code;

	while ((code = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (!option_take(&ctl, code, &name))
			return 2;
	ctl.words = argc - optind;
	ctl.word = argv + optind;
	if (!name && ctl.words > 0)
		name = ctl.word[0];
	command = command_find(name);
	if (!command) {
		fputs(usage, stderr);
		return 2;
	}
	if (!command->plain && !settings_read(&ctl, command->name, &err))
		return ctl_fail(&err);
	return command->run(&ctl);
}
