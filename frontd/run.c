#include "common/base/clock.h"
#include "common/chat/session.h"
#include "frontd/dispatch.h"
#include "frontd/reply.h"

/* Who may call, by the column of the route. */
static bool caller_check(
    struct request *req, const struct route *route, struct err *err)
{
	if (route->who != USER && route->who != PASSWORD_USER &&
	    route->who != ADMIN)
		return true;
	if (!session_check(req->tx, http_head_get(req->head, "authorization"),
		&req->user, err))
		return false;
	if (route->who == ADMIN && !req->user.is_admin)
		return err_set(err, ERR_FORBIDDEN,
		    "Only instance admins can perform this action");
	return true;
}

/* Without a body a handler of the client API sees an empty object. */
static void body_fill(struct request *req, const struct route *route)
{
	if (req->body.len == 0 && route->who != PEER && route->who != INBOX)
		req->body = (struct bytes){ "{}", 2 };
}

static bool first_part(
    struct request *req, const struct route *route, struct err *err)
{
	body_fill(req, route);
	return caller_check(req, route, err) && route->handler(req, err);
}

/*
 * A refusal of a body that is no JSON at all is the HTTP layer's: asked
 * only once something was refused, so that signatures are checked first.
 */
static bool is_bad_json(
    struct request *req, const struct err *err, struct err *why)
{
	const struct json *value;

	return err->code == ERR_INVALID && req->body.len > 0 &&
	    !json_parse(req->arena, req->body, &value, why);
}

static void answer_error(struct call *call, const struct worker *worker)
{
	struct request *req = &call->req;
	struct err why;

	call->failed = true;
	req->after = NULL;
	if (call->err.code >= ERR_BUSY)
		snprintf(call->sqlstate, sizeof(call->sqlstate), "%s",
		    conn_sqlstate(worker->conn));
	if (!call->deadline_ms && is_bad_json(req, &call->err, &why))
		reply_bad_json(req, why.text);
	else
		reply_error(req, &call->err);
}

/*
 * What woke us was a hint: only the row tells whether the answer is there. If
 * not, and there is time left, *park says to wait on.
 */
static bool answer_look(struct call *call, bool *park, struct err *err)
{
	const struct request *req = &call->req;
	struct ask ask;

	*park = false;
	if (clock_wall_ms() >= call->deadline_ms)
		return true;
	for (size_t i = 0; i < req->parked_count && !*park; i++) {
		if (!ask_read(req->tx, req->parked_asks[i], &ask, err))
			return false;
		*park = ask.answered_at == 0;
	}
	return true;
}

static bool second_part(struct call *call, struct err *err)
{
	struct request *req = &call->req;
	bool (*after)(struct request * req, struct err * err) = req->after;
	bool park;

	if (!answer_look(call, &park, err))
		return false;
	if (park)
		return true;
	req->after = NULL;
	return after(req, err);
}

static bool run_in_tx(struct call *call, struct tx *tx)
{
	struct request *req = &call->req;
	struct err *err = &call->err;

	req->tx = tx;
	if (req->after ? !second_part(call, err)
		       : !first_part(req, call->match->route, err))
		return false;
	if (!tx_commit(tx, err))
		return false;
	if (!req->after && !buf_ok(&req->reply))
		return err_set(err, ERR_BUG, "reply too large");
	return true;
}

void call_run(void *arg, void *state)
{
	struct call *call = arg;
	struct worker *worker = state;
	AUTO(log_scope_end) struct log_scope scope;
	const struct field fields[] = { F("req", v_int(call->number)) };

	log_scope_begin(&scope, fields, COUNT(fields));
	{
		AUTO(tx_end)
		struct tx *tx = tx_new(worker->conn, call->req.arena);

		if (!run_in_tx(call, tx))
			answer_error(call, worker);
	}
	call->req.tx = NULL;
}
