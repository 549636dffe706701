/*
 * http_io -- bytes to and from a client's socket, in clear text or by TLS.
 *
 * Non-blocking. Internal to the HTTP server; loop thread.
 */
#ifndef POSTRIDER_HTTP_IO_H
#define POSTRIDER_HTTP_IO_H

#include <openssl/ssl.h>

#include "common/base/err.h"

enum { HTTP_IO_AGAIN = -1, HTTP_IO_ERROR = -2 };

struct http_io {
	int fd;
	SSL *ssl;	       /* NULL: clear text */
	bool read_wants_write; /* TLS: the last read waits for room to write */
	bool lost;	       /* after an error TLS sends nothing any more */
};

/* A context from PEM files; NULL with err. Makes SIGPIPE ignored. */
SSL_CTX *http_io_context(
    const char *certificate, const char *key, struct err *err);

/* Takes the socket over; context NULL for clear text. */
void http_io_init(struct http_io *io, int fd, SSL_CTX *context);
void http_io_close(struct http_io *io);

/* Bytes read, 0 at the end, or one of the two above. */
ssize_t http_io_read(struct http_io *io, void *data, size_t room);
/* Bytes taken, or one of the two above. */
ssize_t http_io_write(struct http_io *io, const void *data, size_t len);
/* Head and body at once, as far as the kernel takes them. */
ssize_t http_io_write_two(
    struct http_io *io, struct bytes head, struct bytes body);
/* Read already, but not yet handed out: no event will tell. */
bool http_io_pending(const struct http_io *io);
/* Nothing more will be written. */
void http_io_finish(struct http_io *io);

#endif
