#include "common/pg/sql_conn.h"

struct state_rule {
	const char *prefix; /* of the SQLSTATE; the first that fits counts */
	enum err_code code;
};

/* clang-format off */
static const struct state_rule state_rules[] = {
	{ "23505", ERR_DUPLICATE }, /* unique */
	{ "23P01", ERR_DUPLICATE }, /* exclusion */
	{ "23503", ERR_ABSENT    }, /* foreign key */
	{ "23",    ERR_INVALID   }, /* check, not null */
	{ "22",    ERR_INVALID   }, /* data */
	{ "08",    ERR_BUSY      }, /* connection */
	{ "40",    ERR_BUSY      }, /* deadlock, serialization */
	{ "53",    ERR_BUSY      }, /* out of memory, disk, connections */
	{ "57",    ERR_BUSY      }, /* shutdown, cancelled, starting up */
	{ "58",    ERR_BUSY      }, /* its operating system */
	{ "55P03", ERR_BUSY      }, /* lock timeout */
	{ "25006", ERR_BUSY      }, /* read-only: a standby */
	{ "25P03", ERR_BUSY      }, /* idle in transaction too long */
	{ "0A000", ERR_BUSY      }, /* the schema moved under a statement */
	{ "26000", ERR_BUSY      }, /* a prepared statement went missing */
};
/* clang-format on */

/* PTxyz, raised on purpose, means an HTTP status. */
static enum err_code raised_code(const char *sqlstate)
{
	int http = (int)strtol(sqlstate + 2, NULL, 10);

	if (http == 409)
		return ERR_CONFLICT;
	for (int code = ERR_NONE + 1; code < ERR_CODES; code++)
		if (err_rules[code].http == http)
			return code;
	return ERR_BUG;
}

static bool is_raised(const char *sqlstate)
{
	return strncmp(sqlstate, "PT", 2) == 0;
}

enum err_code sql_state_code(const char *sqlstate)
{
	if (is_raised(sqlstate))
		return raised_code(sqlstate);
	for (size_t i = 0; i < COUNT(state_rules); i++)
		if (strncmp(sqlstate, state_rules[i].prefix,
			strlen(state_rules[i].prefix)) == 0)
			return state_rules[i].code;
	return ERR_BUG;
}

/* The answer to a statement, or the state of a broken connection. */
static const char *result_state(const struct conn *conn, const PGresult *result)
{
	const char *state =
	    result ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;

	if (state)
		return state;
	return conn->pg && PQstatus(conn->pg) == CONNECTION_OK ? "XX000"
							       : "08006";
}

static const char *result_text(const PGresult *result, int field)
{
	const char *text = result ? PQresultErrorField(result, field) : NULL;

	return text ? text : "";
}

bool sql_state_set(struct conn *conn, const char *what, const PGresult *result,
    struct err *err)
{
	const char *state = result_state(conn, result);
	enum err_code code = sql_state_code(state);
	const char *message = result_text(result, PG_DIAG_MESSAGE_PRIMARY);
	const char *constraint = result_text(result, PG_DIAG_CONSTRAINT_NAME);

	snprintf(conn->sqlstate, sizeof(conn->sqlstate), "%s", state);
	if (is_raised(state))
		return err_set(err, code, "%s", message);
	if (code == ERR_DUPLICATE)
		return err_set(err, code, "already there (%s)", constraint);
	if (code == ERR_ABSENT)
		return err_set(err, code, "not there (%s)", constraint);
	if (code == ERR_INVALID)
		return err_set(err, code, "value refused (%s)",
		    *constraint ? constraint : state);
	if (!*message)
		message = "database connection lost";
	return err_set(err, code, "%s: %s (%s)", what, message, state);
}
