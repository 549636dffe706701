#include "common/base/clock.h"
#include "frontd/dispatch.h"
#include "frontd/park.h"
#include "frontd/reply.h"

enum { LIMIT_KEYS_MAX = 100000, HASHING_WAITING_MAX = 64 };

/* ---- a call ---- */

const struct match *call_match(const struct request *req)
{
	return ((const struct call *)req)->match;
}

void call_park_until(struct request *req, int64_t deadline_ms)
{
	((struct call *)req)->deadline_ms = deadline_ms;
}

static struct call *call_new(
    struct dispatch *dispatch, struct http_exchange *ex)
{
	struct arena *arena = arena_new();
	struct call *call = ARENA_NEW(arena, struct call);

	call->dispatch = dispatch;
	call->ex = ex;
	call->match = http_user(ex);
	call->number = ++dispatch->next_number;
	call->began_us = clock_steady_us();
	call->req = (struct request){
		.arena = arena,
		.node = dispatch->node,
		.conf = dispatch->conf,
		.head = http_head(ex),
		.body = gate_text(ex),
		.client = http_client(ex),
	};
	dispatch->in_flight++;
	return call;
}

static void call_free(struct call *call)
{
	struct arena *arena = call->req.arena;

	call->dispatch->in_flight--;
	arena_free(&arena);
}

void call_send(struct call *call)
{
	const struct request *req = &call->req;
	struct http_reply reply = {
		.status = req->status,
		.content_type = req->reply_type,
		.body = buf_bytes(&req->reply),
		.headers = req->reply_headers,
		.header_count = req->reply_header_count,
	};

	observe_call(call);
	gate_served(call->dispatch, call->ex, call->match->route, reply.status);
	gate_headers(call->ex, &reply);
	http_reply(call->ex, &reply);
	call_free(call);
}

static void say_busy(struct call *call)
{
	err_set(&call->err, ERR_BUSY, "too many requests at once");
	call->failed = true;
	reply_error(&call->req, &call->err);
}

void call_give_up(struct call *call)
{
	say_busy(call);
	call_send(call);
}

static bool is_hashing(const struct call *call)
{
	enum route_who who = call->match->route->who;

	return who == PASSWORD || who == PASSWORD_USER;
}

/*
 * Calls that hash a password never hold more workers than there are slots, so
 * that a crowd at the door keeps nobody else waiting. The next few wait here.
 */
static bool hashing_submit(struct call *call)
{
	struct dispatch *dispatch = call->dispatch;

	if (!call_submit(call))
		return false;
	dispatch->hashing++;
	return true;
}

static bool hashing_wait(struct call *call)
{
	struct dispatch *dispatch = call->dispatch;

	if (dispatch->hashing_waiting == HASHING_WAITING_MAX)
		return false;
	dispatch->hashing_waiting++;
	call->next = NULL;
	if (dispatch->hashing_first)
		dispatch->hashing_last->next = call;
	else
		dispatch->hashing_first = call;
	dispatch->hashing_last = call;
	return true;
}

static bool call_begin(struct call *call)
{
	struct dispatch *dispatch = call->dispatch;

	if (!is_hashing(call))
		return call_submit(call);
	if (dispatch->hashing < (size_t)dispatch->conf->password_slots)
		return hashing_submit(call);
	return hashing_wait(call);
}

/* One is through: its place goes to whoever has waited longest. */
static void hashing_done(struct dispatch *dispatch)
{
	struct call *next;

	dispatch->hashing--;
	while ((next = dispatch->hashing_first) &&
	    dispatch->hashing < (size_t)dispatch->conf->password_slots) {
		dispatch->hashing_first = next->next;
		dispatch->hashing_waiting--;
		if (!hashing_submit(next))
			call_give_up(next);
	}
}

/* A worker is through with it: loop thread again. */
static void call_done(void *arg)
{
	struct call *call = arg;
	struct request *req = &call->req;
	struct parking *parking = call->dispatch->parking;

	call->dispatch->last_done_ms = clock_steady_ms();
	if (is_hashing(call))
		hashing_done(call->dispatch);
	if (req->after) {
		if (parking_add(parking, call))
			return;
		say_busy(call);
	}
	if (req->reply_not_before > clock_wall_ms()) {
		call->due_ms = req->reply_not_before;
		parking_hold(parking, call);
		return;
	}
	call_send(call);
}

bool call_submit(struct call *call)
{
	struct dispatch *dispatch = call->dispatch;

	if (dispatch->stopping)
		return false;
	if (work_running(dispatch->pool) == 0)
		dispatch->last_done_ms = clock_steady_ms();
	return work_submit(dispatch->pool, call_run, call_done, call);
}

/* ---- what the server calls ---- */

void dispatch_request(struct http_exchange *ex, void *arg)
{
	struct dispatch *dispatch = arg;
	struct http_reply reply = { .status = 0 };
	struct call *call;

	if (!gate_body(dispatch, ex, &reply)) {
		gate_headers(ex, &reply);
		observe_head_refused(dispatch, reply.status, http_head(ex));
		http_reply(ex, &reply);
		return;
	}
	call = call_new(dispatch, ex);
	if (!call_begin(call))
		call_give_up(call);
}

static const char *layer_text(int status)
{
	return status == 413 ? "Request body is too large"
			     : http_reason(status);
}

void dispatch_error(
    struct arena *arena, int status, struct http_reply *reply, void *arg)
{
	struct dispatch *dispatch = arg;

	observe_head_refused(dispatch, status, NULL);
	reply_layer(arena, reply, status,
	    status == 413 ? "FST_ERR_CTP_BODY_TOO_LARGE" : NULL,
	    layer_text(status));
}

/* ---- life ---- */

struct dispatch *dispatch_new(
    struct loop *loop, const struct frontd_conf *conf, const struct node *node)
{
	struct dispatch *dispatch = calloc(1, sizeof(*dispatch));

	if (!dispatch)
		abort();
	dispatch->loop = loop;
	dispatch->conf = conf;
	dispatch->node = node;
	dispatch->limit = limit_new(LIMIT_KEYS_MAX);
	dispatch->parking = parking_new(dispatch);
	dispatch->last_done_ms = clock_steady_ms();
	dispatch->sum_timer = loop_timer_new(loop, observe_sum, dispatch);
	observe_setup();
	return dispatch;
}

void dispatch_free(struct dispatch **dispatch)
{
	if (!*dispatch)
		return;
	parking_free(&(*dispatch)->parking);
	loop_timer_free(&(*dispatch)->sum_timer);
	limit_free(&(*dispatch)->limit);
	free(*dispatch);
	*dispatch = NULL;
}
