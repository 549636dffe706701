#include "common/base/clock.h"
#include "common/crypto/secret.h"
#include "common/pg/schema.h"
#include "schema/ctl.h"
#include "schema/ctl_check.sql.h"

struct finding {
	const char *finding;
};

static const struct shape finding_shape[] = {
	SHAPE(TEXT, struct finding, finding, NULL),
	SHAPE_END(struct finding),
};

struct backend {
	int64_t pid;
};

static const struct shape backend_shape[] = {
	SHAPE(INT, struct backend, pid, NULL),
	SHAPE_END(struct backend),
};

/* Asked of the server, whatever schema it has. */
static const struct stmt *const server_checks[] = {
	&SQL_check_encoding,
	&SQL_check_standby,
	&SQL_check_durability,
	&SQL_check_synchronous,
	&SQL_check_wal_level,
	&SQL_check_autovacuum,
	&SQL_check_notifications,
	&SQL_check_connections,
	&SQL_check_snapshots,
	&SQL_check_roles,
};

/* Asked only of a schema that fits. */
static const struct stmt *const schema_checks[] = {
	&SQL_check_settings,
	&SQL_check_peers,
	&SQL_check_dead_letters,
};

struct check {
	struct ctl *ctl;
	struct conn *conn;
	int findings;
};

static void found(struct check *check, const char *text)
{
	puts(text);
	check->findings++;
}

static void print_rows(struct check *check, const struct rows *rows)
{
	const struct finding *items = rows->items;

	for (size_t i = 0; i < rows->count; i++)
		found(check, items[i].finding);
}

static void ask(struct check *check, const struct stmt *stmt,
    const struct val *vals, size_t count)
{
	AUTO(tx_end) struct tx *tx = tx_new(check->conn, check->ctl->arena);
	struct rows rows = { 0 };
	struct err err = { 0 };

	if (sql_many_vals(tx, stmt, finding_shape, &rows, &err, vals, count))
		print_rows(check, &rows);
	else
		found(check, err.text);
}

static void ask_all(
    struct check *check, const struct stmt *const *checks, size_t count)
{
	for (size_t i = 0; i < count; i++)
		ask(check, checks[i], NULL, 0);
}

static bool backend_pid(struct check *check, int64_t *pid, struct err *err)
{
	AUTO(tx_end) struct tx *tx = tx_new(check->conn, check->ctl->arena);
	struct backend row = { 0 };

	if (!sql_one(tx, &SQL_check_backend, backend_shape, &row, err) ||
	    !tx_commit(tx, err))
		return false;
	*pid = row.pid;
	return true;
}

/* False when the database cannot be asked at all. */
static bool connection_check(struct check *check)
{
	struct err err = { 0 };
	int64_t first, second;

	if (!backend_pid(check, &first, &err) ||
	    !backend_pid(check, &second, &err)) {
		found(check, err.text);
		return false;
	}
	if (first != second)
		found(check,
		    "the connection goes through a transaction pooler: "
		    "session locks and LISTEN need a direct one");
	return true;
}

static bool schema_fits(struct check *check)
{
	AUTO(tx_end) struct tx *tx = tx_new(check->conn, check->ctl->arena);
	struct err err = { 0 };

	if (schema_check(tx, &err))
		return true;
	found(check, err.text);
	return false;
}

static void key_check(struct check *check)
{
	const struct conf_common *conf = &check->ctl->conf.common;
	struct node_key *key = NULL;
	struct err err = { 0 };

	if (!check->ctl->config_read)
		return;
	if (!node_key_load(conf->node_key_file, &key, &err))
		found(check, err.text);
	node_key_free(&key);
	if (!*conf->origin)
		found(check, "origin is not set");
}

int ctl_check(struct ctl *ctl)
{
	AUTO(conn_free) struct conn *conn = ctl_connect(ctl->database);
	struct check check = { .ctl = ctl, .conn = conn };
	const struct val now = v_time(clock_wall_ms());
	const struct val needed = v_int(schema_needed);

	key_check(&check);
	if (!connection_check(&check))
		return 1;
	ask_all(&check, server_checks, COUNT(server_checks));
	ask(&check, &SQL_check_clock, &now, 1);
	if (schema_fits(&check)) {
		ask_all(&check, schema_checks, COUNT(schema_checks));
		ask(&check, &SQL_check_workers, &needed, 1);
	}
	return check.findings ? 1 : 0;
}
