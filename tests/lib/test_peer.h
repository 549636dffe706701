/*
 * test_peer -- a scripted node on loopback, with plain sockets.
 *
 * It keeps every request it gets and answers as it is told: by default it
 * takes every handshake and every event. A script may answer anything else,
 * cut the connection, or keep silent. Each connection has a thread; the
 * script runs under the peer's lock, one request at a time.
 */
#ifndef POSTRIDER_TEST_PEER_H
#define POSTRIDER_TEST_PEER_H

#include "common/base/json.h"

struct test_peer;

struct test_peer_request {
	const char *method;
	const char *path;
	const char *head; /* all lines, NUL-ended */
	struct bytes body;
	int64_t at_ms; /* steady */
};

struct test_peer_answer {
	int status;	     /* 0: close without an answer */
	const char *headers; /* further lines, each with its \r\n, or NULL */
	const char *body;
	int hold_ms;  /* keep silent that long first, or until the peer ends */
	bool cut;     /* close in the middle of the answer */
	bool endless; /* the body never ends */
	const char *content_type; /* NULL: JSON */
};

/* Fills answer, which holds the default one; texts in the arena. */
typedef void test_peer_script(void *arg, struct arena *arena,
    const struct test_peer_request *request, struct test_peer_answer *answer);

struct test_peer *test_peer_new(
    const char *host, test_peer_script *script, void *arg);
void test_peer_free(struct test_peer **peer);

const char *test_peer_origin(const struct test_peer *peer);
int test_peer_port(const struct test_peer *peer);

/* Waits until it got count requests to path (NULL: to any). */
bool test_peer_got(
    struct test_peer *peer, const char *path, size_t count, int ms);
size_t test_peer_count(struct test_peer *peer, const char *path);
/* The place-th of them, from 0; must be there. */
struct test_peer_request test_peer_nth(
    struct test_peer *peer, const char *path, size_t place);

/* A header of a request, name in lower case; NULL: absent. */
const char *test_peer_header(struct arena *arena,
    const struct test_peer_request *request, const char *name);

/* The answer to a batch: all of it accepted, in order, or refused with the
 * reason. */
const char *test_peer_verdict(
    struct arena *arena, struct bytes body, const char *reason);

#endif
