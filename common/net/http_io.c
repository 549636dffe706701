#include "common/net/http_io.h"

#include <errno.h>
#include <openssl/err.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

static ssize_t plain_result(ssize_t done)
{
	if (done >= 0)
		return done;
	return errno == EAGAIN || errno == EINTR ? HTTP_IO_AGAIN
						 : HTTP_IO_ERROR;
}

static ssize_t tls_failure(struct http_io *io, int result, bool reading)
{
	switch (SSL_get_error(io->ssl, result)) {
	case SSL_ERROR_WANT_WRITE:
		io->read_wants_write = reading;
		return HTTP_IO_AGAIN;
	case SSL_ERROR_WANT_READ:
		return HTTP_IO_AGAIN;
	case SSL_ERROR_ZERO_RETURN:
		return reading ? 0 : HTTP_IO_ERROR;
	default:
		io->lost = true;
		return HTTP_IO_ERROR;
	}
}

static bool context_load(
    SSL_CTX *context, const char *certificate, const char *key)
{
	return context != NULL &&
	    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1 &&
	    SSL_CTX_use_certificate_chain_file(context, certificate) == 1 &&
	    SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) == 1 &&
	    SSL_CTX_check_private_key(context) == 1;
}

SSL_CTX *http_io_context(
    const char *certificate, const char *key, struct err *err)
{
	SSL_CTX *context;
	char text[120];

	ERR_clear_error();
	context = SSL_CTX_new(TLS_server_method());
	if (!context_load(context, certificate, key)) {
		ERR_error_string_n(ERR_get_error(), text, sizeof(text));
		err_set(err, ERR_INVALID, "TLS certificate %s: %s", certificate,
		    text);
		SSL_CTX_free(context);
		return NULL;
	}
	SSL_CTX_set_mode(context,
	    SSL_MODE_ENABLE_PARTIAL_WRITE |
		SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
	signal(SIGPIPE, SIG_IGN);
	return context;
}

void http_io_init(struct http_io *io, int fd, SSL_CTX *context)
{
	*io = (struct http_io){ .fd = fd };
	if (context == NULL)
		return;
	io->ssl = SSL_new(context);
	if (io->ssl == NULL || SSL_set_fd(io->ssl, fd) != 1)
		abort();
	SSL_set_accept_state(io->ssl);
}

void http_io_close(struct http_io *io)
{
	SSL_free(io->ssl);
	close(io->fd);
	io->ssl = NULL;
	io->fd = -1;
}

ssize_t http_io_read(struct http_io *io, void *data, size_t room)
{
	size_t done;

	if (io->ssl == NULL)
		return plain_result(recv(io->fd, data, room, 0));
	ERR_clear_error();
	io->read_wants_write = false;
	if (SSL_read_ex(io->ssl, data, room, &done) == 1)
		return (ssize_t)done;
	return tls_failure(io, 0, true);
}

ssize_t http_io_write(struct http_io *io, const void *data, size_t len)
{
	size_t done;

	if (io->ssl == NULL)
		return plain_result(send(io->fd, data, len, MSG_NOSIGNAL));
	if (len == 0)
		return 0;
	ERR_clear_error();
	if (SSL_write_ex(io->ssl, data, len, &done) == 1)
		return (ssize_t)done;
	return tls_failure(io, 0, false);
}

ssize_t http_io_write_two(
    struct http_io *io, struct bytes head, struct bytes body)
{
	struct iovec parts[2] = {
		{ (void *)(uintptr_t)head.data, head.len },
		{ (void *)(uintptr_t)body.data, body.len },
	};
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };
	ssize_t first, second;

	if (io->ssl == NULL)
		return plain_result(sendmsg(io->fd, &message, MSG_NOSIGNAL));
	first = http_io_write(io, head.data, head.len);
	if (first < (ssize_t)head.len)
		return first;
	second = http_io_write(io, body.data, body.len);
	return second > 0 ? first + second : first;
}

bool http_io_pending(const struct http_io *io)
{
	return io->ssl != NULL && SSL_pending(io->ssl) > 0;
}

void http_io_finish(struct http_io *io)
{
	if (io->ssl != NULL && !io->lost) {
		ERR_clear_error();
		SSL_shutdown(io->ssl);
	}
	shutdown(io->fd, SHUT_WR);
}
