#include "tests/lib/plain_http.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HEAD_MAX = 16384, BODY_MAX = 4 << 20 };

bool plain_open(struct plain_http *http, const char *host)
{
	const char *colon = strrchr(host, ':');
	struct sockaddr_in addr = { .sin_family = AF_INET };
	int on = 1;

	http->host = host;
	http->port = colon ? (int)strtol(colon + 1, NULL, 10) : 80;
	http->socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	addr.sin_port = htons((uint16_t)http->port);
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	setsockopt(http->socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return connect(http->socket, (struct sockaddr *)&addr, sizeof(addr)) ==
	    0;
}

void plain_close(struct plain_http *http)
{
	close(http->socket);
	http->socket = -1;
}

static bool send_all(int fd, struct bytes bytes)
{
	const char *at = bytes.data;

	while (bytes.len > 0) {
		ssize_t sent = send(fd, at, bytes.len, MSG_NOSIGNAL);

		if (sent <= 0)
			return false;
		at += sent;
		bytes.len -= (size_t)sent;
	}
	return true;
}

/* Reads on until the buffer holds want bytes; 0: until the head is whole. */
static bool receive(int fd, struct buf *in, size_t want)
{
	char piece[8192];

	while (want ? in->len < want : !strstr(in->data, "\r\n\r\n")) {
		ssize_t got = recv(fd, piece, sizeof(piece), 0);

		if (got <= 0)
			return false;
		buf_add(in, piece, (size_t)got);
		if (!buf_ok(in))
			return false;
	}
	return true;
}

static size_t body_length(const char *head)
{
	const char *at = strcasestr(head, "\r\ncontent-length:");

	return at ? strtoul(at + strlen("\r\ncontent-length:"), NULL, 10) : 0;
}

/* The server ends the connection with this answer. */
static bool says_close(const char *head, size_t len)
{
	const char *at = strcasestr(head, "\r\nconnection: close");

	return at && at < head + len;
}

static void request_text(struct buf *out, const struct plain_http *http,
    const char *const line[2], const char *token, const char *body)
{
	buf_printf(out, "%s %s HTTP/1.1\r\nHost: %s\r\n", line[0], line[1],
	    http->host);
	if (token)
		buf_printf(out, "Authorization: Bearer %s\r\n", token);
	if (body)
		buf_printf(out,
		    "Content-Type: application/json\r\n"
		    "Content-Length: %zu\r\n",
		    strlen(body));
	buf_text(out, "\r\n");
	buf_text(out, body ? body : "");
}

bool plain_call(struct plain_http *http, struct arena *arena,
    const char *const line[2], const char *token, const char *body,
    struct plain_answer *answer)
{
	struct buf out;
	struct buf in;
	struct err err = { 0 };
	size_t head;

	buf_init(&out, arena, BODY_MAX);
	buf_init(&in, arena, HEAD_MAX + BODY_MAX);
	buf_text(&in, "");
	request_text(&out, http, line, token, body);
	if (!send_all(http->socket, buf_bytes(&out)) ||
	    !receive(http->socket, &in, 0))
		return false;
	head = (size_t)(strstr(in.data, "\r\n\r\n") - in.data) + 4;
	if (!receive(http->socket, &in, head + body_length(in.data)))
		return false;
	if (says_close(in.data, head)) {
		plain_close(http);
		if (!plain_open(http, http->host))
			return false;
	}
	*answer = (struct plain_answer){
		.status = (int)strtol(in.data + strlen("HTTP/1.1 "), NULL, 10),
		.body = in.data + head,
	};
	if (!json_parse(arena, (struct bytes){ answer->body, in.len - head },
		&answer->json, &err))
		answer->json = NULL;
	return true;
}
