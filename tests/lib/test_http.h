/*
 * test_http -- a small blocking HTTP/1.1 client for tests.
 *
 * It sends what it is told, also what no honest client would send, and fails
 * the test when no complete answer comes within TEST_HTTP_DEADLINE_MS (longer
 * on a busy machine). Everything lives in the arena.
 */
#ifndef POSTRIDER_TEST_HTTP_H
#define POSTRIDER_TEST_HTTP_H

#include "common/base/json.h"

enum { TEST_HTTP_DEADLINE_MS = 20000 };

/* Ends the test, or the program where none runs, with these words. */
void test_fail(const char *format, ...) PRINTF(1, 2);

struct test_reply {
	int status; /* 0: the connection ended without an answer */
	const char *head;
	const char *body; /* NUL-ended */
	size_t body_len;
};

struct test_request {
	const char *method;
	const char *path;
	const char *host;	  /* NULL: "localhost" */
	const char *token;	  /* sent as bearer; NULL: none */
	const char *content_type; /* NULL: JSON if there is a body; "": none */
	const char *headers; /* further lines, each with its \r\n, or NULL */
	const char *body;    /* NUL-ended text or NULL */
	struct bytes bytes;  /* instead of body */
};

struct test_reply test_http(
    struct arena *arena, int port, const struct test_request *request);

/* The usual ones; json NULL: no body. */
struct test_reply test_get(
    struct arena *arena, int port, const char *path, const char *token);
struct test_reply test_post(struct arena *arena, int port, const char *path,
    const char *token, const char *json);
struct test_reply test_patch(struct arena *arena, int port, const char *path,
    const char *token, const char *json);
struct test_reply test_delete(
    struct arena *arena, int port, const char *path, const char *token);

/* By hand: loopback connection, bytes, one answer. */
int test_http_connect(int port);
bool test_http_write(int fd, const void *data, size_t len);
struct test_reply test_http_read(struct arena *arena, int fd);
/* All three on a connection of its own. */
struct test_reply test_http_raw(
    struct arena *arena, int port, const void *data, size_t len);

/* Value of a header, name in lower case; NULL: absent. */
const char *test_header(
    struct arena *arena, const struct test_reply *reply, const char *name);

/*
 * JSON of an answer. path names members and places with dots: "user.id",
 * "0.content", "" is the whole. A path that leads nowhere gives NULL or -1.
 */
const struct json *test_json(
    struct arena *arena, const struct test_reply *reply, const char *path);
const char *test_text(
    struct arena *arena, const struct test_reply *reply, const char *path);
int64_t test_number(
    struct arena *arena, const struct test_reply *reply, const char *path);

#endif
