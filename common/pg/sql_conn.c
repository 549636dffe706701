#include "common/pg/sql_conn.h"
#include "common/base/clock.h"
#include "common/pg/pg_figures.h"

enum { BACKOFF_MIN_MS = 100, BACKOFF_MAX_MS = 2000, SCRATCH_MAX = 512 << 20 };

/* Without seqscan a scan that has no index looks dear enough to be compiled;
 * none of our statements lives long enough to gain by that. Who polls queues is
 * planned for once: a planner that sees values looks for the ends of an index,
 * past all that is dead there. */
static const char session_settings[] =
    "SELECT set_config(name, value, false) FROM (VALUES"
    " ('lock_timeout', '10s'),"
    " ('idle_in_transaction_session_timeout', '30s'),"
    " ('timezone', 'UTC'),"
    " ('search_path', 'public'),"
    " ('jit', 'off'),"
    " ('statement_timeout', $1),"
    " ('postrider.signals', $2),"
    " ('enable_seqscan', coalesce($3, current_setting('enable_seqscan'))),"
    " ('plan_cache_mode', CASE WHEN $3 IS NULL THEN"
    " current_setting('plan_cache_mode') ELSE 'force_generic_plan' END))"
    " AS s (name, value)";

struct conn *conn_new(const struct conn_def *def)
{
	struct conn *conn = calloc(1, sizeof(*conn));

	if (!conn)
		abort();
	conn->def = *def;
	buf_init(&conn->scratch, NULL, SCRATCH_MAX);
	return conn;
}

void conn_free(struct conn **conn)
{
	if (!*conn)
		return;
	assert(!(*conn)->tx_open);
	sql_conn_close(*conn);
	buf_done(&(*conn)->scratch);
	free((*conn)->tx.signals.items);
	free(*conn);
	*conn = NULL;
}

bool conn_is_up(const struct conn *conn)
{
	return conn->pg && PQstatus(conn->pg) == CONNECTION_OK;
}

int64_t conn_statements(const struct conn *conn)
{
	return conn->statements;
}

const char *conn_sqlstate(const struct conn *conn)
{
	return conn->sqlstate;
}

static void ignore_notice(UNUSED void *arg, UNUSED const PGresult *notice)
{
}

/* NOLINTBEGIN(readability-function-size): the macros of uthash */
/* The elements stay linked when their table goes. */
static void prepared_forget(struct conn *conn)
{
	struct prepared *entry = conn->prepared;

	HASH_CLEAR(hh, conn->prepared);
	while (entry) {
		struct prepared *next = entry->hh.next;

		free(entry);
		entry = next;
	}
	conn->prepared_count = 0;
}

static struct prepared *prepared_find(
    struct conn *conn, const struct stmt *stmt)
{
	struct prepared *entry;

	HASH_FIND_PTR(conn->prepared, &stmt, entry);
	return entry;
}

static void prepared_add(struct conn *conn, struct prepared *entry)
{
	HASH_ADD_PTR(conn->prepared, stmt, entry);
}
/* NOLINTEND(readability-function-size) */

void sql_conn_close(struct conn *conn)
{
	prepared_forget(conn);
	PQfinish(conn->pg);
	conn->pg = NULL;
	conn->used = false;
	conn->commits = COMMITS_DURABLY;
	conn->riding = 0;
}

static PGconn *dial(const struct conn_def *def)
{
	const char *const names[] = { "dbname", "application_name",
		"connect_timeout", "client_encoding", "keepalives",
		"keepalives_idle", "keepalives_interval", "keepalives_count",
		"tcp_user_timeout", NULL };
	const char *const values[] = { def->conninfo, def->application, "3",
		"UTF8", "1", "10", "5", "3", "30000", NULL };

	/* dbname is expanded: it is the whole connection string. */
	return PQconnectdbParams(names, values, 1);
}

static bool prepare_session(struct conn *conn)
{
	static const char *const plain[] = { "BEGIN", "COMMIT", "ROLLBACK",
		SQL_LAZILY, SQL_DURABLY };
	bool good = true;

	for (size_t i = 0; i < COUNT(plain) && good; i++) {
		PGresult *result =
		    PQprepare(conn->pg, plain[i], plain[i], 0, NULL);

		good = PQresultStatus(result) == PGRES_COMMAND_OK;
		PQclear(result);
	}
	return good && PQenterPipelineMode(conn->pg);
}

static bool set_up(struct conn *conn)
{
	char timeout[24];
	const char *values[] = { timeout,
		conn->def.signals_after ? "after" : "",
		conn->def.by_index ? "off" : NULL };
	PGresult *result;
	bool good;

	snprintf(timeout, sizeof(timeout), "%" PRId64,
	    conn->def.statement_timeout_ms);
	result = PQexecParams(
	    conn->pg, session_settings, 3, NULL, values, NULL, NULL, 0);
	good = PQresultStatus(result) == PGRES_TUPLES_OK;
	PQclear(result);
	return good && prepare_session(conn);
}

/* libpq's message without its line ends. */
static void connect_refused(struct conn *conn, struct err *err)
{
	char text[160];
	size_t len;

	snprintf(text, sizeof(text), "%s",
	    conn->pg ? PQerrorMessage(conn->pg) : "out of memory");
	len = strlen(text);
	while (len > 0 && text[len - 1] == '\n')
		text[--len] = '\0';
	for (char *c = text; *c; c++)
		if (*c == '\n' || *c == '\t')
			*c = ' ';
	snprintf(conn->sqlstate, sizeof(conn->sqlstate), "08001");
	err_set(err, ERR_BUSY, "database is away: %s", text);
}

static void back_off(struct conn *conn)
{
	conn->backoff_ms *= 2;
	if (conn->backoff_ms < BACKOFF_MIN_MS)
		conn->backoff_ms = BACKOFF_MIN_MS;
	if (conn->backoff_ms > BACKOFF_MAX_MS)
		conn->backoff_ms = BACKOFF_MAX_MS;
	conn->retry_at_ms = clock_steady_ms() + conn->backoff_ms;
}

bool sql_conn_open(struct conn *conn, struct err *err)
{
	if (conn_is_up(conn) && sql_ride_end(conn))
		return true;
	sql_conn_close(conn);
	if (conn->backoff_ms && clock_steady_ms() < conn->retry_at_ms)
		return err_set(err, ERR_BUSY, "database is away");
	conn->pg = dial(&conn->def);
	if (conn_is_up(conn)) {
		PQsetNoticeReceiver(conn->pg, ignore_notice, NULL);
		if (set_up(conn)) {
			conn->backoff_ms = 0;
			metric_set(&figure_db_up, 0, 1);
			return true;
		}
	}
	metric_set(&figure_db_up, 0, 0);
	connect_refused(conn, err);
	sql_conn_close(conn);
	back_off(conn);
	return false;
}

struct prepared *sql_conn_prepared(struct conn *conn, const struct stmt *stmt)
{
	struct prepared *entry = prepared_find(conn, stmt);

	if (entry)
		return entry;
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		abort();
	entry->stmt = stmt;
	prepared_add(conn, entry);
	return entry;
}
