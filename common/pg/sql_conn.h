/*
 * sql_conn -- the inside of connections; for the files of this folder only.
 *
 * A connection is always in pipeline mode: what belongs together (begin,
 * prepare, execute) leaves in one write and costs one round trip.
 */
#ifndef POSTRIDER_SQL_CONN_H
#define POSTRIDER_SQL_CONN_H

#include <libpq-fe.h>
#include <uthash.h>

#include "common/pg/sql.h"

enum { SQL_PARAMS_MAX = 48 };

/* Prepared under their own text on each connection, as BEGIN is. */
#define SQL_LAZILY "SET synchronous_commit = off"
#define SQL_DURABLY "SET synchronous_commit TO DEFAULT"

/* How the session's commits wait for the disk; a rollback takes a SET back. */
enum commit_mode { COMMITS_DURABLY, COMMITS_LAZILY, COMMITS_UNKNOWN };

/* Types by their numbers in pg_type. */
enum sql_type {
	SQL_TYPE_UNKNOWN = 0,
	SQL_TYPE_BOOL = 16,
	SQL_TYPE_BYTEA = 17,
	SQL_TYPE_NAME = 19,
	SQL_TYPE_INT8 = 20,
	SQL_TYPE_INT2 = 21,
	SQL_TYPE_INT4 = 23,
	SQL_TYPE_TEXT = 25,
	SQL_TYPE_OID = 26,
	SQL_TYPE_JSON = 114,
	SQL_TYPE_FLOAT4 = 700,
	SQL_TYPE_FLOAT8 = 701,
	SQL_TYPE_LITERAL = 705,
	SQL_TYPE_BOOLS = 1000,
	SQL_TYPE_TEXTS = 1009,
	SQL_TYPE_INT8S = 1016,
	SQL_TYPE_BPCHAR = 1042,
	SQL_TYPE_VARCHAR = 1043,
	SQL_TYPE_TIME = 1184,
	SQL_TYPE_TIMES = 1185,
	SQL_TYPE_SPAN = 1186,
	SQL_TYPE_UUID = 2950,
	SQL_TYPE_JSONB = 3802
};

/* Values in libpq's form; what had to be encoded lives in scratch. */
struct sql_params {
	Oid types[SQL_PARAMS_MAX];
	const char *values[SQL_PARAMS_MAX];
	int lengths[SQL_PARAMS_MAX];
	int formats[SQL_PARAMS_MAX];
	int count;
};

/* A statement on one connection. */
struct prepared {
	const struct stmt *stmt;
	char name[24];
	Oid types[SQL_PARAMS_MAX];
	bool ready;
	UT_hash_handle hh;
};

enum signal_channel {
	SIGNAL_CONVERSATION,
	SIGNAL_USER,
	SIGNAL_OUTBOX,
	SIGNAL_ACTIVITY,
	SIGNAL_FILES,
	SIGNAL_REQUEST,
	SIGNAL_REPLY,
	SIGNAL_INBOX,
	SIGNAL_CONTROL,
	SIGNAL_EPHEMERAL
};

enum { SIGNAL_WORD_MAX = 24 };

struct signal {
	enum signal_channel channel;
	int64_t key;
	int64_t seq;
	char word[SIGNAL_WORD_MAX];
	const char *payload; /* ephemeral; in the transaction's arena */
};

struct signal_list {
	struct signal *items;
	size_t count;
	size_t room;
};

struct tx {
	struct conn *conn;
	struct arena *arena;
	bool begun;
	bool lazy;
	bool closing;	      /* the next statement takes the commit along */
	enum err_code failed; /* ERR_NONE while all went well */
	struct signal_list signals;
};

struct conn {
	struct conn_def def;
	PGconn *pg;
	struct prepared *prepared;
	int prepared_count;
	bool used; /* has answered since it was opened */
	enum commit_mode commits;
	int64_t retry_at_ms;
	int64_t backoff_ms;
	int64_t statements; /* sent */
	char sqlstate[6];
	struct buf scratch;
	struct tx tx;
	bool tx_open;
	int riding; /* commands behind a commit whose answers nobody has read */
	/* Signals of a transaction: sent behind its commit, which is not yet
	 * answered, or false; or taken after it. */
	bool (*signals_ride)(void *arg, struct tx *tx);
	void (*signals_take)(void *arg, const struct signal_list *signals);
	void *signals_arg;
};

/* sql_conn.c: open it if it isn't; ERR_BUSY while the database is away. */
MUST_CHECK bool sql_conn_open(struct conn *conn, struct err *err);
void sql_conn_close(struct conn *conn);
struct prepared *sql_conn_prepared(struct conn *conn, const struct stmt *stmt);

/* sql.c: sends a statement behind the commit that has just left, for who is
 * not interested in what becomes of it; false if it was not sent. */
bool sql_ride(struct tx *tx, const struct stmt *stmt, const struct val *vals,
    size_t count);
/* Reads what it was answered; false when the connection is of no more use. */
MUST_CHECK bool sql_ride_end(struct conn *conn);

/* sql_param.c */
void sql_params_fill(struct sql_params *params, struct buf *scratch,
    const struct val *vals, size_t count);

/* sql_result.c */
MUST_CHECK bool sql_read_one(struct arena *arena, const PGresult *result,
    const struct shape *shape, void *record, struct err *err);
MUST_CHECK bool sql_read_many(struct arena *arena, const PGresult *result,
    const struct shape *shape, struct rows *rows, struct err *err);

/* sql_state.c: what a failed result means; result may be NULL. */
enum err_code sql_state_code(const char *sqlstate);
bool sql_state_set(struct conn *conn, const char *what, const PGresult *result,
    struct err *err);

#endif
