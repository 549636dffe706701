/*
 * sql -- connections, prepared statements, transactions.
 *
 * Statements live in <module>.sql beside their module; schema/sql2h.awk turns
 * them into constants SQL_<name> with how many rows each owes. A transaction
 * begins at its first statement and rolls back unless tx_commit ran. Values
 * are typed and never printed into SQL. Records are filled by column name
 * after a shape (base/json.h) and live in the transaction's arena.
 *
 * SQLSTATEs become err codes in one table: unique -> DUPLICATE, foreign key
 * -> ABSENT, check and data errors -> INVALID; lost connection, deadlock,
 * serialization, shutdown, read-only -> BUSY; anything else -> BUG. A raise
 * with SQLSTATE PT409 and the like (PTxyz) becomes the code of that HTTP
 * status, with the raised text.
 *
 * A connection and its transaction belong to one worker thread. They are
 * direct (never through a transaction pooler) and reconnect by themselves:
 * while the database is away every statement fails with ERR_BUSY at once.
 */
#ifndef POSTRIDER_SQL_H
#define POSTRIDER_SQL_H

#include "common/base/err.h"
#include "common/base/json.h"

struct conn;
struct tx;
struct pg_result;

enum sql_rows { SQL_NONE, SQL_ONE, SQL_OPT, SQL_MANY };

struct stmt {
	const char *name;
	const char *text;
	enum sql_rows rows;
	int params;
};

struct conn_def {
	const char *conninfo;
	const char *application; /* "frontd/<instance>" */
	bool signals_after;	 /* SET postrider.signals = after */
	int64_t statement_timeout_ms;
	/* For who polls queues: a plan made while a queue was empty would read
	 * all of a later backlog. SET enable_seqscan = off, and each statement
	 * is planned once (plan_cache_mode = force_generic_plan) */
	bool by_index;
};

/* Connects at the first statement. Strings must outlive the connection. */
struct conn *conn_new(const struct conn_def *def);
void conn_free(struct conn **conn);
bool conn_is_up(const struct conn *conn);

/* One transaction at a time on a connection; arena takes its records. */
struct tx *tx_new(struct conn *conn, struct arena *arena);
/* Rolls back what tx_commit has not committed; takes the variable's address. */
void tx_end(struct tx **tx);
/* True also when no statement ran. Ends the transaction; more may follow. */
MUST_CHECK bool tx_commit(struct tx *tx, struct err *err);
void tx_rollback(struct tx *tx);
struct arena *tx_arena(struct tx *tx);
/* Before the first statement: this commit need not wait for the disk. */
void tx_lazy(struct tx *tx);

/* The next statement is the last: it takes the commit along, and tx_commit
 * only says so. When the connection is lost with it nobody knows whether it
 * was done, and it is not tried again. */
void tx_closing(struct tx *tx);

/* What to signal after the commit: see notify.h. Dropped by a rollback. */
struct signal_list;
struct signal_list *tx_signals(struct tx *tx);

/*
 * none: rows don't matter (affected, if not NULL, gets their number).
 * one:  fills record; no row is ERR_ABSENT.
 * opt:  fills record and sets *found.
 * many: fills rows.
 * The record's type is the shape's; shape may be NULL when nothing is read.
 */
MUST_CHECK bool sql_none_vals(struct tx *tx, const struct stmt *stmt,
    int64_t *affected, struct err *err, const struct val *vals, size_t count);
MUST_CHECK bool sql_one_vals(struct tx *tx, const struct stmt *stmt,
    const struct shape *shape, void *record, struct err *err,
    const struct val *vals, size_t count);
MUST_CHECK bool sql_opt_vals(struct tx *tx, const struct stmt *stmt,
    const struct shape *shape, void *record, bool *found, struct err *err,
    const struct val *vals, size_t count);
MUST_CHECK bool sql_many_vals(struct tx *tx, const struct stmt *stmt,
    const struct shape *shape, struct rows *rows, struct err *err,
    const struct val *vals, size_t count);

#define SQL_VALS(...) VALS(__VA_ARGS__) + 1, VALS_COUNT(__VA_ARGS__)
#define sql_none(tx, stmt, err, ...) \
	sql_none_vals(tx, stmt, NULL, err, SQL_VALS(__VA_ARGS__))
#define sql_count(tx, stmt, affected, err, ...) \
	sql_none_vals(tx, stmt, affected, err, SQL_VALS(__VA_ARGS__))
#define sql_one(tx, stmt, shape, record, err, ...) \
	sql_one_vals(tx, stmt, shape, record, err, SQL_VALS(__VA_ARGS__))
#define sql_opt(tx, stmt, shape, record, found, err, ...) \
	sql_opt_vals(tx, stmt, shape, record, found, err, SQL_VALS(__VA_ARGS__))
#define sql_many(tx, stmt, shape, rows, err, ...) \
	sql_many_vals(tx, stmt, shape, rows, err, SQL_VALS(__VA_ARGS__))

/* How many statements it has sent, for tests and benches. */
int64_t conn_statements(const struct conn *conn);

/* SQLSTATE of the last failure on this connection, "" if none. */
const char *conn_sqlstate(const struct conn *conn);

/* Plain SQL without parameters, several statements allowed: migrations and
 * tests only. */
MUST_CHECK bool conn_script(
    struct conn *conn, const char *script, struct err *err);

#endif
