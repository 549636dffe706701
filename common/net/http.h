/*
 * http -- the HTTP/1.1 server on the loop (DESIGN 8).
 *
 * Strict grammar (http_parse.h); total deadlines for head and body and a
 * minimum body rate; limits on connections in all and per address, requests
 * per connection, head and body; bodies above spool_above stream to an
 * unlinked temporary file and reach the handler as mapped memory. One
 * request of a connection is served at a time; pipelined ones wait unread.
 * On EMFILE accepting pauses. Request bodies with a Content-Encoding: 415.
 *
 * Everything runs on the loop thread. A worker may read the exchange between
 * on_request and http_reply, and never touches anything else.
 */
#ifndef POSTRIDER_HTTP_H
#define POSTRIDER_HTTP_H

#include "common/base/err.h"
#include "common/base/loop.h"
#include "common/net/http_parse.h"

struct http_server;
struct http_exchange;

struct http_limits {
	int64_t head_deadline_ms;  /* from the first byte to the whole head */
	int64_t idle_deadline_ms;  /* between requests */
	int64_t body_deadline_ms;  /* whole body, plus its size / body_rate */
	int64_t body_rate_bytes;   /* per second */
	int64_t write_deadline_ms; /* without progress */
	int64_t spool_above_bytes;
	int64_t connections_max;
	int64_t connections_per_address_max;
	int64_t requests_per_connection_max;
};
extern const struct http_limits http_limits_default;

struct http_reply {
	int status;
	const char *content_type; /* NULL: application/json; charset=utf-8 */
	struct bytes body;
	const struct http_header *headers; /* extra ones */
	size_t header_count;
	bool close;
};

struct http_server_def {
	const struct http_limits *limits;
	const char *spool_dir; /* NULL: /tmp */
	const char *trusted_proxies;
	const char *tls_certificate; /* PEM files, or NULL for plain */
	const char *tls_key;
	/*
	 * The head is complete: how large may the body be (>= 0), or answer
	 * at once without reading it: fill reply, return -1. The exchange's
	 * arena may hold what reply points to.
	 */
	int64_t (*on_head)(
	    struct http_exchange *ex, struct http_reply *reply, void *arg);
	/* The body is complete; answer with http_reply, now or later. */
	void (*on_request)(struct http_exchange *ex, void *arg);
	/* An error of the HTTP layer: fill reply's body for status, or leave.
	 */
	void (*on_error)(struct arena *arena, int status,
	    struct http_reply *reply, void *arg);
	void *arg;
};

struct http_server *http_server_new(
    struct loop *loop, const struct http_server_def *def, struct err *err);

/* "127.0.0.1:8101", "[::1]:80", "unix:/run/x", "fd:3". Port 0 picks one. */
MUST_CHECK bool http_server_listen(
    struct http_server *server, const char *address, struct err *err);
/* The port that was bound last. */
int http_server_port(const struct http_server *server);

/* No new connections or requests; idle connections close. */
void http_server_drain(struct http_server *server);
size_t http_server_busy(const struct http_server *server);
void http_server_free(struct http_server **server);

/* ---- an exchange: valid from on_head until http_reply returns ---- */

const struct http_head *http_head(const struct http_exchange *ex);
struct bytes http_body(const struct http_exchange *ex);
/* Client address (addr_client), and the arena that lives as long as it. */
const char *http_client(const struct http_exchange *ex);
struct arena *http_arena(struct http_exchange *ex);
/* The dispatcher's own pointer. */
void http_set_user(struct http_exchange *ex, void *user);
void *http_user(const struct http_exchange *ex);

/* Copies what it sends. A client that is gone is no error. Ends the exchange.
 */
void http_reply(struct http_exchange *ex, const struct http_reply *reply);

/* Reason phrase of a status. */
const char *http_reason(int status);

#endif
