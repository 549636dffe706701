/*
 * asks_run -- one question on its way: what to send, and what came back.
 *
 * Prepared and written down on worker threads, sent on the loop; it has one
 * owner at a time and an arena of its own.
 */
#ifndef POSTRIDER_ASKS_RUN_H
#define POSTRIDER_ASKS_RUN_H

#include "common/federation/handshake.h"
#include "common/federation/rotation.h"
#include "outboxd/asks.h"
#include "outboxd/outboxd.h"

enum { ASKS_HEADERS = 6 };

enum asks_step {
	ASKS_FIRST,
	ASKS_AGAIN, /* elsewhere, or signed otherwise: to be prepared anew */
	ASKS_RELAY,
	ASKS_DONE
};

/* An inbox that led a delivery to another server. */
struct asks_moved {
	const char *inbox;
	const char *actor; /* whose it is */
	const char *leads_to;
};

struct asks_run {
	struct asks *asks;
	struct asks_run *next;
	struct arena *arena;
	struct ask ask;
	struct handshake_plan plan;
	struct handshake_name name;    /* of who took the counter */
	struct rotation_plan rotation; /* of kind rotate */
	enum rotation_fate fate;
	bool refused;	    /* the retry was, with the old secret */
	const char *secret; /* of kind relay */
	enum asks_step step;
	bool kept;	/* they say that their secret stands */
	bool kept_done; /* and it is in the row */
	bool proved;	/* the empty relay was answered 200 */
	bool ok;	/* the last job on a worker */
	int tries;
	int64_t due_ms;		 /* steady: not before */
	const char *url;	 /* of kind actor */
	int hops;		 /* how often that was led elsewhere */
	bool knocked_twice;	 /* in the other style of signature */
	struct asks_moved moved; /* of kind inbox */
	size_t prepared;	 /* headers that are there already */
	struct http_header headers[ASKS_HEADERS];
	struct client_request request;
};

/* From a row as claimed. */
struct asks_run *asks_run_new(struct asks *asks, const struct ask *ask);
void asks_run_free(struct asks_run **run);

/* Opens what it needs, and commits the secret that it makes; an outcome is set
 * when it can not be sent. Once more for what is asked again. Worker. */
void asks_run_prepare(
    struct asks_run *run, struct conn *conn, const struct node *node);

/* The request of its step; false when there is no time left. */
bool asks_run_request(struct asks_run *run, const struct node *node);

/* The answer to its step moves it on: step, kept, proved, or the outcome. */
void asks_run_answered(
    struct asks_run *run, const struct client_result *result);

/* Commits that the other secret verifies too. Worker. */
MUST_CHECK bool asks_run_keep(
    struct asks_run *run, struct conn *conn, struct err *err);
/* Commits the answer, and with it what it says of the peer's row. Worker. */
MUST_CHECK bool asks_run_write(
    struct asks_run *run, struct conn *conn, struct err *err);

#endif
