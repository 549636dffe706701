#include "common/pg/sql_conn.h"

enum { SCRATCH_KEEP = 1 << 20 };

/* What one round trip carries, and what came back. */
struct trip {
	int sent;      /* commands */
	int statement; /* which of them is the statement, or the only one */
	int succeeded; /* from the front */
	PGresult *result;
	bool lost; /* the connection */
};

/* ---- one round trip ---- */

static bool send_plain(struct trip *trip, PGconn *pg, const char *name)
{
	trip->sent++;
	return PQsendQueryPrepared(pg, name, 0, NULL, NULL, NULL, 0);
}

/* Said only when it changes: most connections commit one way. */
static bool send_mode(struct trip *trip, struct tx *tx)
{
	struct conn *conn = tx->conn;
	enum commit_mode wanted = tx->lazy ? COMMITS_LAZILY : COMMITS_DURABLY;

	if (conn->commits == wanted)
		return true;
	conn->commits = wanted;
	return send_plain(trip, conn->pg, tx->lazy ? SQL_LAZILY : SQL_DURABLY);
}

/* A statement that is first and last is a transaction by itself. */
static bool send_begin(struct trip *trip, struct tx *tx)
{
	if (tx->begun)
		return true;
	if (!send_mode(trip, tx))
		return false;
	if (tx->closing)
		return true;
	tx->begun = true;
	return send_plain(trip, tx->conn->pg, "BEGIN");
}

/*
 * The types of the values are the statement's. A NULL whose type nobody knew
 * left it to the server, and a later value may name it: prepared once more.
 */
static void types_settle(struct conn *conn, struct prepared *prepared,
    const struct sql_params *params)
{
	for (int i = 0; i < params->count; i++) {
		Oid *known = &prepared->types[i];

		if (!params->types[i] || *known == params->types[i])
			continue;
		assert(!*known);
		*known = params->types[i];
		prepared->ready = false;
	}
	if (!prepared->ready)
		snprintf(prepared->name, sizeof(prepared->name), "s%d",
		    ++conn->prepared_count);
}

static bool send_statement(struct trip *trip, struct conn *conn,
    struct prepared *prepared, const struct sql_params *params)
{
	if (!prepared->ready) {
		trip->sent++;
		if (!PQsendPrepare(conn->pg, prepared->name,
			prepared->stmt->text, params->count, prepared->types))
			return false;
	}
	trip->statement = trip->sent++;
	conn->statements++;
	return PQsendQueryPrepared(conn->pg, prepared->name, params->count,
	    params->values, params->lengths, params->formats, 1);
}

static bool is_good(const PGresult *result)
{
	ExecStatusType status = PQresultStatus(result);

	return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

/* The result of the next command; what follows it is thrown away. */
static PGresult *next_result(PGconn *pg)
{
	PGresult *first = PQgetResult(pg);
	PGresult *more = first;

	while (more && PQstatus(pg) == CONNECTION_OK) {
		more = PQgetResult(pg);
		PQclear(more);
	}
	return first;
}

static bool reached_sync(PGconn *pg)
{
	PGresult *result = PQgetResult(pg);
	bool sync = PQresultStatus(result) == PGRES_PIPELINE_SYNC;

	PQclear(result);
	return sync;
}

/* Keeps the statement's result, or the first bad one. */
static void collect(struct trip *trip, PGconn *pg)
{
	bool bad = false;

	for (int i = 0; i < trip->sent; i++) {
		PGresult *result = next_result(pg);

		if (bad || (i > trip->statement && is_good(result))) {
			PQclear(result);
			trip->succeeded += !bad;
			continue;
		}
		PQclear(trip->result);
		trip->result = result;
		bad = !is_good(result);
		if (PQstatus(pg) != CONNECTION_OK)
			break;
		trip->succeeded += !bad;
	}
	trip->lost = PQstatus(pg) != CONNECTION_OK || !reached_sync(pg);
}

static bool trip_good(const struct trip *trip)
{
	return !trip->lost && trip->succeeded == trip->sent;
}

/* ---- what rides behind a commit ---- */

bool sql_ride(struct tx *tx, const struct stmt *stmt, const struct val *vals,
    size_t count)
{
	struct conn *conn = tx->conn;
	struct prepared *prepared = sql_conn_prepared(conn, stmt);
	struct sql_params params;
	struct trip trip = { 0 };

	assert(stmt->params == (int)count && conn->riding == 0);
	sql_params_fill(&params, &conn->scratch, vals, count);
	types_settle(conn, prepared, &params);
	if (!send_statement(&trip, conn, prepared, &params) ||
	    !PQpipelineSync(conn->pg))
		return false;
	prepared->ready = true;
	conn->riding = trip.sent;
	return true;
}

bool sql_ride_end(struct conn *conn)
{
	struct trip trip = { .sent = conn->riding };

	if (conn->riding == 0)
		return true;
	conn->riding = 0;
	collect(&trip, conn->pg);
	PQclear(trip.result);
	return trip_good(&trip);
}

/* Should the commit fail, a hint was given for nothing. */
static void signals_ride(struct tx *tx)
{
	struct conn *conn = tx->conn;

	if (tx->signals.count && conn->signals_ride &&
	    conn->signals_ride(conn->signals_arg, tx))
		tx->signals.count = 0;
}

/* ---- statements ---- */

static void scratch_shrink(struct buf *scratch)
{
	size_t max = scratch->max;

	if (scratch->room <= SCRATCH_KEEP)
		return;
	buf_done(scratch);
	buf_init(scratch, NULL, max);
}

static void travel(struct trip *trip, struct tx *tx, const struct stmt *stmt,
    const struct sql_params *params)
{
	struct conn *conn = tx->conn;
	struct prepared *prepared = sql_conn_prepared(conn, stmt);
	bool sent;

	types_settle(conn, prepared, params);
	sent = send_begin(trip, tx) &&
	    send_statement(trip, conn, prepared, params) &&
	    (!tx->begun || !tx->closing ||
		send_plain(trip, conn->pg, "COMMIT")) &&
	    PQpipelineSync(conn->pg);
	if (!sent) {
		trip->lost = true;
		return;
	}
	if (tx->closing)
		signals_ride(tx);
	collect(trip, conn->pg);
	conn->used |= trip->succeeded > 0;
	prepared->ready |= !trip->lost && trip->succeeded >= trip->statement;
}

/*
 * A connection that died while it was idle shows it only now. Nothing of this
 * transaction was done yet, so that it may begin again on a fresh one.
 */
static bool travel_again(struct trip *trip, struct tx *tx, bool first)
{
	if (!first || !trip->lost || !tx->conn->used || tx->closing)
		return false;
	PQclear(trip->result);
	*trip = (struct trip){ 0 };
	tx->begun = false;
	return true;
}

static bool refuse_failed(const struct tx *tx, struct err *err)
{
	if (tx->failed == ERR_BUSY)
		return err_set(err, ERR_BUSY, "transaction was lost");
	return err_set(err, ERR_BUG, "statement after a failed one");
}

/* The schema moved under our plans, or a server that can't write. */
static bool needs_fresh(const struct conn *conn)
{
	static const char *const states[] = { "0A000", "26000", "25006" };

	for (size_t i = 0; i < COUNT(states); i++)
		if (strcmp(conn->sqlstate, states[i]) == 0)
			return true;
	return false;
}

static bool trip_failed(
    struct trip *trip, struct tx *tx, const struct stmt *stmt, struct err *err)
{
	sql_state_set(tx->conn, stmt->name, trip->result, err);
	if (trip->lost && err->code != ERR_BUSY)
		err_set(
		    err, ERR_BUSY, "%s: database connection lost", stmt->name);
	tx->failed = err->code;
	tx->conn->commits = COMMITS_UNKNOWN;
	PQclear(trip->result);
	if (trip->lost || needs_fresh(tx->conn))
		sql_conn_close(tx->conn);
	return false;
}

static bool run(struct tx *tx, const struct stmt *stmt, const struct val *vals,
    size_t count, PGresult **result, struct err *err)
{
	struct conn *conn = tx->conn;
	struct sql_params params;
	struct trip trip = { 0 };
	bool first = !tx->begun;

	assert(stmt->params == (int)count);
	if (tx->failed)
		return refuse_failed(tx, err);
	if (first && !sql_conn_open(conn, err))
		return false;
	sql_params_fill(&params, &conn->scratch, vals, count);
	travel(&trip, tx, stmt, &params);
	if (travel_again(&trip, tx, first)) {
		sql_conn_close(conn);
		if (!sql_conn_open(conn, err))
			return false;
		travel(&trip, tx, stmt, &params);
	}
	scratch_shrink(&conn->scratch);
	if (!trip_good(&trip))
		return trip_failed(&trip, tx, stmt, err);
	tx->begun &= !tx->closing;
	*result = trip.result;
	return true;
}

static void result_clear(PGresult **result)
{
	PQclear(*result);
	*result = NULL;
}

/* A row that the shape doesn't fit is a bug: say where. */
static bool misread(struct tx *tx, const struct stmt *stmt, struct err *err)
{
	tx->failed = ERR_BUG;
	return err_set(err, ERR_BUG, "%s: %s", stmt->name, err->text);
}

bool sql_none_vals(struct tx *tx, const struct stmt *stmt, int64_t *affected,
    struct err *err, const struct val *vals, size_t count)
{
	AUTO(result_clear) PGresult *result = NULL;

	assert(stmt->rows == SQL_NONE);
	if (!run(tx, stmt, vals, count, &result, err))
		return false;
	if (affected)
		*affected = strtoll(PQcmdTuples(result), NULL, 10);
	return true;
}

static bool read_single(struct tx *tx, const struct stmt *stmt,
    const PGresult *result, const struct shape *shape, void *record,
    struct err *err)
{
	if (PQntuples(result) > 1) {
		err_set(err, ERR_BUG, "%d rows", PQntuples(result));
		return misread(tx, stmt, err);
	}
	return sql_read_one(tx->arena, result, shape, record, err) ||
	    misread(tx, stmt, err);
}

bool sql_one_vals(struct tx *tx, const struct stmt *stmt,
    const struct shape *shape, void *record, struct err *err,
    const struct val *vals, size_t count)
{
	AUTO(result_clear) PGresult *result = NULL;

	assert(stmt->rows == SQL_ONE);
	if (!run(tx, stmt, vals, count, &result, err) ||
	    !read_single(tx, stmt, result, shape, record, err))
		return false;
	if (PQntuples(result) == 0)
		return err_set(err, ERR_ABSENT, "not found");
	return true;
}

/* NOLINTNEXTLINE(readability-function-size): one more than others */
bool sql_opt_vals(struct tx *tx, const struct stmt *stmt,
    const struct shape *shape, void *record, bool *found, struct err *err,
    const struct val *vals, size_t count)
{
	AUTO(result_clear) PGresult *result = NULL;

	assert(stmt->rows == SQL_OPT);
	if (!run(tx, stmt, vals, count, &result, err) ||
	    !read_single(tx, stmt, result, shape, record, err))
		return false;
	*found = PQntuples(result) > 0;
	return true;
}

bool sql_many_vals(struct tx *tx, const struct stmt *stmt,
    const struct shape *shape, struct rows *rows, struct err *err,
    const struct val *vals, size_t count)
{
	AUTO(result_clear) PGresult *result = NULL;

	assert(stmt->rows == SQL_MANY);
	if (!run(tx, stmt, vals, count, &result, err))
		return false;
	return sql_read_many(tx->arena, result, shape, rows, err) ||
	    misread(tx, stmt, err);
}

/* ---- transactions ---- */

struct tx *tx_new(struct conn *conn, struct arena *arena)
{
	struct tx *tx = &conn->tx;

	assert(!conn->tx_open);
	conn->tx_open = true;
	tx->conn = conn;
	tx->arena = arena;
	return tx;
}

struct arena *tx_arena(struct tx *tx)
{
	return tx->arena;
}

struct signal_list *tx_signals(struct tx *tx)
{
	return &tx->signals;
}

void tx_lazy(struct tx *tx)
{
	assert(!tx->begun);
	tx->lazy = true;
}

void tx_closing(struct tx *tx)
{
	tx->closing = true;
}

static void tx_clear(struct tx *tx)
{
	tx->begun = false;
	tx->lazy = false;
	tx->closing = false;
	tx->failed = ERR_NONE;
	tx->signals.count = 0;
}

/* COMMIT or ROLLBACK; the caller looks at the trip. */
static void tx_finish(struct tx *tx, const char *how, struct trip *trip)
{
	struct conn *conn = tx->conn;

	if (!conn_is_up(conn) || !sql_ride_end(conn) ||
	    !send_plain(trip, conn->pg, how) || !PQpipelineSync(conn->pg)) {
		trip->lost = true;
		return;
	}
	signals_ride(tx);
	collect(trip, conn->pg);
}

void tx_rollback(struct tx *tx)
{
	struct trip trip = { 0 };

	tx->signals.count = 0;
	if (tx->begun) {
		tx->conn->commits = COMMITS_UNKNOWN;
		tx_finish(tx, "ROLLBACK", &trip);
		PQclear(trip.result);
		if (!trip_good(&trip))
			sql_conn_close(tx->conn);
	}
	tx_clear(tx);
}

void tx_end(struct tx **tx)
{
	if (!*tx)
		return;
	tx_rollback(*tx);
	(*tx)->conn->tx_open = false;
	*tx = NULL;
}

static bool commit_failed(struct tx *tx, struct trip *trip, struct err *err)
{
	sql_state_set(tx->conn, "commit", trip->result, err);
	tx->conn->commits = COMMITS_UNKNOWN;
	if (trip->lost)
		err_set(err, ERR_BUSY, "commit: database connection lost");
	PQclear(trip->result);
	if (trip->lost || needs_fresh(tx->conn))
		sql_conn_close(tx->conn);
	tx_clear(tx);
	return false;
}

bool tx_commit(struct tx *tx, struct err *err)
{
	struct conn *conn = tx->conn;
	struct trip trip = { 0 };

	if (tx->failed) {
		refuse_failed(tx, err);
		tx_rollback(tx);
		return false;
	}
	if (tx->begun) {
		tx_finish(tx, "COMMIT", &trip);
		if (!trip_good(&trip))
			return commit_failed(tx, &trip, err);
		PQclear(trip.result);
	}
	if (conn->signals_take && tx->signals.count)
		conn->signals_take(conn->signals_arg, &tx->signals);
	tx_clear(tx);
	return true;
}

/* ---- scripts ---- */

static bool script_run(struct conn *conn, const char *script, struct err *err)
{
	AUTO(result_clear) PGresult *result = NULL;

	if (!PQexitPipelineMode(conn->pg))
		return err_set(err, ERR_BUG, "script amid a statement");
	result = PQexec(conn->pg, script);
	if (is_good(result) || PQresultStatus(result) == PGRES_EMPTY_QUERY)
		return true;
	return sql_state_set(conn, "script", result, err);
}

bool conn_script(struct conn *conn, const char *script, struct err *err)
{
	bool inside = conn->tx_open && conn->tx.begun;
	bool good;

	if (inside && conn->tx.failed)
		return refuse_failed(&conn->tx, err);
	if (!inside && !sql_conn_open(conn, err))
		return false;
	good = script_run(conn, script, err);
	if (!good && inside)
		conn->tx.failed = err->code;
	if (!good && !inside && PQtransactionStatus(conn->pg) != PQTRANS_IDLE)
		PQclear(PQexec(conn->pg, "ROLLBACK"));
	if (!conn_is_up(conn) || !PQenterPipelineMode(conn->pg))
		sql_conn_close(conn);
	return good;
}
