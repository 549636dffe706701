/*
 * http_spool -- a request's body: in memory while small, else in a file.
 *
 * The file has no name and is gone with its descriptor; it is mapped when the
 * body is complete. Internal to the HTTP server; loop thread.
 */
#ifndef POSTRIDER_HTTP_SPOOL_H
#define POSTRIDER_HTTP_SPOOL_H

#include "common/base/buf.h"

struct http_spool {
	const char *dir;
	int64_t above; /* more bytes than that go to a file */
	int64_t size;
	struct buf memory;
	int fd; /* -1: in memory */
	void *map;
};

void http_spool_init(struct http_spool *spool, const char *dir, int64_t above);
void http_spool_done(struct http_spool *spool);

/* False: the file could not be made, written or mapped. */
MUST_CHECK bool http_spool_add(
    struct http_spool *spool, const void *data, size_t len);
MUST_CHECK bool http_spool_end(struct http_spool *spool);

struct bytes http_spool_bytes(const struct http_spool *spool);

#endif
