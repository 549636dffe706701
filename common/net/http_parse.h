/*
 * http_parse -- the strict HTTP/1.1 request grammar (RFC 9112), no I/O.
 *
 * Everything a front proxy could read differently is refused with 400 (or
 * 501, 505, 414, 431, 413) and the connection is closed: two Content-Length,
 * Content-Length with Transfer-Encoding, any coding but a single "chunked",
 * sign or space in a length, space before a colon, folded lines, bare CR or
 * LF, NUL or controls in a value, chunk size with 0x or beyond 2^31, junk
 * after a chunk, no or two Host, a bad Host, chunked in HTTP/1.0, anything but
 * HTTP/1.0 and 1.1, absolute targets for other hosts than Host names.
 * One row a rule in the test.
 *
 * The parser is fed bytes and tells how many it took. It is fuzzed.
 */
#ifndef POSTRIDER_HTTP_PARSE_H
#define POSTRIDER_HTTP_PARSE_H

#include "common/base/arena.h"

enum { HTTP_HEAD_MAX = 16384, HTTP_LINE_MAX = 8192, HTTP_HEADERS_MAX = 100 };

struct http_header {
	const char *name; /* lower case */
	const char *value;
};

struct http_head {
	const char *method;
	const char *target; /* as sent */
	const char *path;   /* percent-decoded once; no NUL, valid UTF-8 */
	const char *query;  /* raw, after ?, or "" */
	int minor;	    /* HTTP/1.minor */
	bool keep_alive;
	bool chunked;
	bool expect_continue;
	bool has_body;
	int64_t content_length; /* -1: none or chunked */
	struct http_header *headers;
	size_t header_count;
};

enum http_parse { HTTP_MORE, HTTP_DONE, HTTP_BAD };

/*
 * Looks for a complete head in data. DONE: head is filled (in the arena) and
 * *used says how long it was. MORE: not complete, *used is 0. BAD: *status is
 * what to answer before closing.
 */
enum http_parse http_parse_head(struct arena *arena, const char *data,
    size_t len, struct http_head *head, size_t *used, int *status);

/* Value of the only header of that name (lower case); NULL: absent or twice. */
const char *http_head_get(const struct http_head *head, const char *name);
size_t http_head_count(const struct http_head *head, const char *name);

/* A query or form value, decoded; NULL: absent or badly encoded. */
const char *http_query_get(
    struct arena *arena, const char *query, const char *name);

/* Chunked bodies. Zeroed at the start. */
struct http_chunks {
	int state;
	uint64_t left;
	size_t line_len;
	size_t trailer_len;
};

/*
 * Takes bytes from data; body bytes found are handed out as one piece
 * (*piece inside data). DONE after the last chunk and trailers (dropped).
 */
enum http_parse http_parse_chunks(struct http_chunks *chunks, const char *data,
    size_t len, size_t *used, struct bytes *piece);

#endif
