/*
 * plain_http -- a blocking HTTP/1.1 client on one kept-alive connection.
 *
 * For programs that show or measure nodes on loopback. Answers live in the
 * arena. One thread.
 */
#ifndef POSTRIDER_PLAIN_HTTP_H
#define POSTRIDER_PLAIN_HTTP_H

#include "common/base/json.h"

struct plain_http {
	const char *host; /* "nova.localhost:8101": what Host says */
	int port;
	int socket;
};

struct plain_answer {
	int status;
	const struct json *json; /* NULL: not JSON */
	const char *body;
};

/* Connects to 127.0.0.1 at the port of host. False: nobody listens there. */
MUST_CHECK bool plain_open(struct plain_http *http, const char *host);
void plain_close(struct plain_http *http);

/* token and body may be NULL. False: the connection broke. A connection that
 * the server ends with its answer is opened anew. */
MUST_CHECK bool plain_call(struct plain_http *http, struct arena *arena,
    const char *const line[2], const char *token, const char *body,
    struct plain_answer *answer);

#define LINE(method, path) ((const char *const[2]){ method, path })

#endif
