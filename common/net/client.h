/*
 * client -- HTTP requests to peers (libcurl multi on the loop).
 *
 * http and https only, no redirects, no proxies from the environment, no
 * Expect: 100-continue, certificates checked (ca_file may add one). Every
 * address is checked before connecting and again on reused connections: only
 * public ones, unless allow_private_addresses; plain http only to loopback.
 * Answers are bounded in size and total time. Connections are kept alive and
 * retired early; a request that failed on a reused connection before a byte
 * of an answer came is sent once more on a fresh one. Names resolve on
 * curl's threads.
 *
 * Loop thread only. done is called exactly once, from the loop, never from
 * within client_send; its result is valid during the call.
 */
#ifndef POSTRIDER_CLIENT_H
#define POSTRIDER_CLIENT_H

#include "common/base/err.h"
#include "common/base/loop.h"
#include "common/net/http_parse.h"

struct client;
struct client_call;

struct client_def {
	bool allow_private_addresses;
	const char *ca_file;
	const char *resolve; /* "host:port:address" comma list, development */
	const char *user_agent;
	int64_t connections_per_host_max;
};

struct client_request {
	const char *method;
	const char *url;
	const struct http_header *headers;
	size_t header_count;
	struct bytes body;  /* must live until done */
	int64_t timeout_ms; /* total */
	int64_t connect_ms; /* of that, with name and TLS; 0: all of it */
	int64_t stall_s;    /* of that with less than a byte a second; 0: all */
	size_t answer_max;  /* bytes; more fails with CLIENT_TOO_LARGE */
	bool once; /* on a connection of its own, and never sent again */
};

enum client_outcome {
	CLIENT_ANSWERED, /* a complete answer, of whatever status */
	CLIENT_REFUSED_ADDRESS,
	CLIENT_NO_CONNECTION, /* nothing was sent: resolve, connect, TLS */
	CLIENT_CUT,	      /* outcome unknown: sent, then lost */
	CLIENT_TIMEOUT,	      /* outcome unknown unless never connected */
	CLIENT_TOO_LARGE,
	CLIENT_ABORTED
};

struct client_result {
	enum client_outcome outcome;
	bool sent;	 /* the request may have reached the peer */
	bool unresolved; /* its name led nowhere */
	/* Of a whole head, even if what followed it was cut, late or too
	 * large; 0: none. */
	int head_status;
	const char *location; /* that head's, as it stands, or NULL */
	int status;
	struct bytes body;
	const char *content_type; /* or NULL */
	int64_t retry_after_ms;	  /* bounded 0..2 days; -1: none */
	const char *text;	  /* for the log, no secrets */
	int64_t took_ms;
};

struct client *client_new(struct loop *loop, const struct client_def *def);
void client_free(struct client **client); /* aborts what is in flight */

struct client_call *client_send(struct client *client,
    const struct client_request *request,
    void (*done)(void *arg, const struct client_result *result), void *arg);
/* done comes with CLIENT_ABORTED, before this returns. */
void client_abort(struct client_call *call);
size_t client_in_flight(const struct client *client);

#endif
