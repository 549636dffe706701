/*
 * dispatch -- a request from its complete head to the sent answer.
 *
 * gate_* (gate.c) decides at the head: route, rate, media type, body limit.
 * A request with its body becomes a call: dispatch.c hands it to a worker,
 * which checks who asks, runs the handler and commits; back on the loop the
 * answer is sent, held until a wall time, or the call is parked (park.c) and
 * goes to a worker a second time.
 *
 * A call has an arena of its own and one owner at a time, loop or worker.
 * The exchange lives until the answer is sent, also when the client is gone.
 * All of it is for the loop thread but call_run and what handlers call.
 */
#ifndef POSTRIDER_DISPATCH_H
#define POSTRIDER_DISPATCH_H

#include "common/base/work.h"
#include "common/net/limit.h"
#include "common/pg/notify.h"
#include "frontd/frontd.h"
#include "frontd/routes.h"

struct parking;

struct dispatch {
	struct loop *loop;
	const struct frontd_conf *conf;
	const struct node *node;
	struct work_pool *pool;
	struct limit *limit;
	struct parking *parking;
	int64_t next_number;
	size_t in_flight;
	bool stopping;	      /* the workers are being sent home */
	int64_t last_done_ms; /* steady: a worker gave something back */
	int64_t refusals_unsaid;
	struct loop_timer *sum_timer;
	size_t hashing; /* calls of such routes at work */
	struct call *hashing_first, *hashing_last; /* and waiting */
	size_t hashing_waiting;
};

/* State of a worker thread. */
struct worker {
	struct conn *conn;
};

struct call {
	struct request req; /* first: all that a handler sees */
	struct dispatch *dispatch;
	struct http_exchange *ex;
	const struct match *match;
	struct err err;
	bool failed;
	char sqlstate[6];
	int64_t number;
	int64_t began_us;
	int64_t deadline_ms; /* wall: of the ask; 0: never parked */
	int64_t due_ms;	     /* wall: when it leaves the list it is in */
	struct call *next;   /* in a list of park.c, or waiting to hash */
};

/* ---- dispatch.c ---- */

struct dispatch *dispatch_new(
    struct loop *loop, const struct frontd_conf *conf, const struct node *node);
void dispatch_free(struct dispatch **dispatch);

void dispatch_request(struct http_exchange *ex, void *dispatch);
void dispatch_error(
    struct arena *arena, int status, struct http_reply *reply, void *dispatch);

/* Hands the call to a worker; false when the queue is full. */
MUST_CHECK bool call_submit(struct call *call);
/* Sends what the call holds and ends it. */
void call_send(struct call *call);
/* The same with 503. */
void call_give_up(struct call *call);

const struct match *call_match(const struct request *req);
void call_park_until(struct request *req, int64_t deadline_ms);

/* ---- run.c: on a worker ---- */

void call_run(void *call, void *worker);

/* ---- gate.c ---- */

/* on_head of the server: the body's limit, or -1 with a reply. */
int64_t gate_head(
    struct http_exchange *ex, struct http_reply *reply, void *dispatch);
/* With the body: the counters that a body in bad JSON doesn't touch. */
MUST_CHECK bool gate_body(struct dispatch *dispatch, struct http_exchange *ex,
    struct http_reply *reply);
/* Headers that every answer carries. */
/* What a handler reads as the body: text/plain is but a JSON string. */
struct bytes gate_text(const struct http_exchange *ex);
void gate_headers(struct http_exchange *ex, struct http_reply *reply);
/* How it ended: who is verified is no stranger. */
void gate_served(struct dispatch *dispatch, struct http_exchange *ex,
    const struct route *route, int status);

/* ---- observe.c: metrics and the line in the log ---- */

void observe_setup(void);
void observe_head_refused(
    struct dispatch *dispatch, int status, const struct http_head *head);
void observe_call(const struct call *call);
/* scope is what the request was counted by. */
void observe_limited(const char *scope);
void observe_sum(void *dispatch);
void observe_gauges(const struct dispatch *dispatch);

#endif
