#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/crypto/secret.h"
#include "schema/ctl.h"
#include "schema/ctl_init.sql.h"
#include "schema/migrate.h"

enum { ROLES_MAX = 1 << 20, ROLES = 7 };

struct count {
	int64_t n;
};

static const struct shape count_shape[] = {
	SHAPE(INT, struct count, n, NULL),
	SHAPE_END(struct count),
};

static void print_line(UNUSED void *arg, const char *line)
{
	puts(line);
}

static bool roles_read(struct ctl *ctl, const char **script, struct err *err)
{
	const char *path =
	    arena_printf(ctl->arena, "%s/roles.sql", ctl->schema_dir);
	FILE *file = fopen(path, "re");
	struct buf buf;
	char part[4096];
	size_t len;

	if (!file)
		return err_set(
		    err, ERR_ABSENT, "%s: %s", path, strerror(errno));
	buf_init(&buf, ctl->arena, ROLES_MAX);
	while ((len = fread(part, 1, sizeof(part), file)) > 0)
		buf_add(&buf, part, len);
	fclose(file);
	if (!buf_ok(&buf) || !buf.len)
		return err_set(err, ERR_INVALID, "%s: no roles", path);
	*script = buf.data;
	return true;
}

/* ---- the words of a connection string ---- */

static bool word_is(const char *word, size_t len, const char *key)
{
	size_t key_len = strlen(key);

	return len > key_len && word[key_len] == '=' &&
	    strncmp(word, key, key_len) == 0;
}

/* Only "key=value" words; what quotes or is an address is refused. */
static bool database_name(struct ctl *ctl, const char **name, struct err *err)
{
	const char *at = ctl->database;

	*name = NULL;
	if (strpbrk(at, "'\\") || strstr(at, "://"))
		return err_set(err, ERR_INVALID,
		    "init takes a connection string of plain key=value words");
	while (*at) {
		size_t len = strcspn(at, " ");

		if (word_is(at, len, "dbname"))
			*name = arena_textn(ctl->arena, at + 7, len - 7);
		at += len + strspn(at + len, " ");
	}
	if (!*name)
		return err_set(err, ERR_INVALID,
		    "the connection string names no database: "
		    "dbname=postrider");
	if (strspn(*name, "abcdefghijklmnopqrstuvwxyz0123456789_") !=
	    strlen(*name))
		return err_set(err, ERR_INVALID,
		    "database %s: lower-case letters, digits and _ only",
		    *name);
	return true;
}

/* Daemons log in as themselves. */
static const char *without_login(struct ctl *ctl)
{
	const char *at = ctl->database;
	struct buf out;

	buf_init(&out, ctl->arena, 4096);
	while (*at) {
		size_t len = strcspn(at, " ");

		if (!word_is(at, len, "user") &&
		    !word_is(at, len, "password")) {
			if (out.len)
				buf_char(&out, ' ');
			buf_add(&out, at, len);
		}
		at += len + strspn(at + len, " ");
	}
	return out.data ? out.data : "";
}

/* ---- roles and database ---- */

static bool count_of(struct ctl *ctl, struct conn *conn,
    const struct stmt *stmt, const char *name, int64_t *n, struct err *err)
{
	AUTO(tx_end) struct tx *tx = tx_new(conn, ctl->arena);
	struct count row = { 0 };
	bool good = stmt->params
	    ? sql_one(tx, stmt, count_shape, &row, err, v_text(name))
	    : sql_one(tx, stmt, count_shape, &row, err);

	*n = row.n;
	return good;
}

static bool privilege_hint(struct conn *conn, struct err *err)
{
	if (strcmp(conn_sqlstate(conn), "42501") != 0)
		return false;
	return err_set(err, ERR_FORBIDDEN,
	    "this role may not make roles and databases: let a superuser run "
	    "what postrider-ctl init --print-sql prints");
}

static bool roles_make(struct ctl *ctl, struct conn *conn, struct err *err)
{
	const char *script = "";
	int64_t there;

	if (!roles_read(ctl, &script, err) ||
	    !count_of(ctl, conn, &SQL_init_roles, NULL, &there, err))
		return false;
	if (there == ROLES)
		return true;
	if (!conn_script(conn, script, err))
		return privilege_hint(conn, err);
	puts("made the roles");
	return true;
}

static bool database_make(
    struct ctl *ctl, struct conn *conn, const char *name, struct err *err)
{
	const char *script = arena_printf(ctl->arena,
	    "CREATE DATABASE %s TEMPLATE template0 ENCODING 'UTF8'", name);
	int64_t there;

	if (!count_of(ctl, conn, &SQL_init_database, name, &there, err))
		return false;
	if (there)
		return true;
	if (!conn_script(conn, script, err))
		return privilege_hint(conn, err);
	printf("made the database %s\n", name);
	return true;
}

static bool cluster_make(struct ctl *ctl, const char *name, struct err *err)
{
	const char *conninfo =
	    arena_printf(ctl->arena, "%s dbname=postgres", ctl->database);
	AUTO(conn_free) struct conn *conn = ctl_connect(conninfo);

	return roles_make(ctl, conn, err) &&
	    database_make(ctl, conn, name, err);
}

static bool tables_make(struct ctl *ctl, struct err *err)
{
	AUTO(conn_free) struct conn *conn = ctl_connect(ctl->database);
	const struct migrate migrate = { .conn = conn,
		.arena = ctl->arena,
		.dir = ctl->schema_dir,
		.report = print_line };

	return migrate_up(&migrate, 0, err);
}

/* ---- files ---- */

static const char *key_file(const struct ctl *ctl)
{
	const char *named = ctl->conf.common.node_key_file;
	char *copy = arena_text(ctl->arena, ctl->config);
	char dir[PATH_MAX];

	if (named && *named)
		return named;
	/* Whole, since a daemon starts elsewhere. */
	if (!realpath(dirname(copy), dir))
		return "node.key";
	return arena_printf(ctl->arena, "%s/node.key", dir);
}

static bool key_make(const char *path, struct err *err)
{
	if (access(path, F_OK) == 0)
		return true;
	if (!node_key_create(path, err))
		return false;
	printf("made the node key %s: keep a copy elsewhere\n", path);
	return true;
}

static const char *own_origin(const struct ctl *ctl)
{
	char host[256] = "localhost";

	if (ctl->origin)
		return ctl->origin;
	gethostname(host, sizeof(host) - 1);
	return arena_printf(ctl->arena, "https://%s", host);
}

static bool config_make(struct ctl *ctl, const char *key, struct err *err)
{
	int fd;

	if (ctl->config_read)
		return true;
	fd = open(ctl->config, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		return err_set(err, ERR_ABSENT, "cannot write %s: %s",
		    ctl->config, strerror(errno));
	dprintf(fd,
	    "# Settings of this node; each daemon lists its own with\n"
	    "# --help-config. Under which address do others reach it?\n"
	    "origin = %s\n"
	    "listen = 127.0.0.1:8080\n"
	    "database = %s\n"
	    "node_key_file = %s\n",
	    own_origin(ctl), without_login(ctl), key);
	close(fd);
	printf("wrote %s: look at origin and listen\n", ctl->config);
	return true;
}

static bool files_make(struct ctl *ctl, struct err *err)
{
	const char *key = key_file(ctl);

	return key_make(key, err) && config_make(ctl, key, err);
}

static bool print_sql(struct ctl *ctl, const char *name, struct err *err)
{
	const char *script = "";

	if (!roles_read(ctl, &script, err))
		return false;
	fputs(script, stdout);
	printf("CREATE DATABASE %s TEMPLATE template0 ENCODING 'UTF8';\n"
	       "-- Then, as the owner of the database: postrider-ctl init\n",
	    name);
	return true;
}

static bool init(struct ctl *ctl, struct err *err)
{
	const char *name = NULL;

	if (!database_name(ctl, &name, err))
		return false;
	if (ctl->print_sql)
		return print_sql(ctl, name, err);
	return cluster_make(ctl, name, err) && tables_make(ctl, err) &&
	    files_make(ctl, err);
}

int ctl_init(struct ctl *ctl)
{
	struct err err = { 0 };

	return init(ctl, &err) ? 0 : ctl_fail(&err);
}
