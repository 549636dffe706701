#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "common/base/clock.h"
#include "tests/lib/test_db.h"
#include "tests/lib/test_http.h"

enum { ANSWER_MAX = 64 * 1024 * 1024, FAIL_TEXT_MAX = 2000 };

/* Criterion says nothing where it runs no test. */
void test_fail(const char *format, ...)
{
	char text[FAIL_TEXT_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (criterion_current_test)
		cr_assert_fail("%s", text);
	fprintf(stderr, "%s\n", text);
	exit(EXIT_FAILURE);
}

/* ---- a connection ---- */

int test_http_connect(int port)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr = { htonl(INADDR_LOOPBACK) },
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	cr_assert(fd >= 0, "socket: %s", strerror(errno));
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0)
		return fd;
	close(fd);
	return -1;
}

bool test_http_write(int fd, const void *data, size_t len)
{
	const char *p = data;

	while (len > 0) {
		ssize_t sent = send(fd, p, len, MSG_NOSIGNAL);

		if (sent <= 0)
			return false;
		p += sent;
		len -= (size_t)sent;
	}
	return true;
}

/* More bytes of the answer; false at its end. */
static bool read_more(int fd, struct buf *in, int64_t until_ms)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	int64_t left_ms = until_ms - clock_steady_ms();
	char chunk[16384];
	ssize_t got;

	if (left_ms <= 0 || poll(&ready, 1, (int)left_ms) != 1)
		test_fail("no complete answer in time, so far: %s", in->data);
	got = recv(fd, chunk, sizeof(chunk), 0);
	if (got <= 0)
		return false;
	buf_add(in, chunk, (size_t)got);
	return true;
}

static const char *header_of(
    struct arena *arena, const char *head, const char *name)
{
	size_t len = strlen(name);
	const char *line = head;

	while ((line = strstr(line, "\r\n")) != NULL) {
		line += 2;
		if (strncasecmp(line, name, len) == 0 && line[len] == ':') {
			line += len + 1;
			line += strspn(line, " ");
			return arena_textn(arena, line, strcspn(line, "\r"));
		}
	}
	return NULL;
}

const char *test_header(
    struct arena *arena, const struct test_reply *reply, const char *name)
{
	return reply->head ? header_of(arena, reply->head, name) : NULL;
}

static int status_of(const char *head)
{
	return strncmp(head, "HTTP/1.", 7) == 0
	    ? (int)strtol(head + strcspn(head, " "), NULL, 10)
	    : 0;
}

static size_t body_length(struct arena *arena, const char *head, int status)
{
	const char *length = header_of(arena, head, "content-length");

	if (status == 204 || status / 100 == 1)
		return 0;
	return length ? strtoul(length, NULL, 10) : SIZE_MAX;
}

struct test_reply test_http_read(struct arena *arena, int fd)
{
	int64_t until_ms =
	    clock_steady_ms() + test_patience_ms(TEST_HTTP_DEADLINE_MS);
	struct test_reply reply = { .status = 0 };
	const char *end = NULL;
	size_t head_len;
	struct buf in;

	buf_init(&in, arena, ANSWER_MAX);
	buf_text(&in, "");
	while (!(end = in.data ? strstr(in.data, "\r\n\r\n") : NULL))
		if (!read_more(fd, &in, until_ms))
			return reply;
	head_len = (size_t)(end - in.data) + 4;
	reply.head = arena_textn(arena, in.data, head_len);
	reply.status = status_of(reply.head);
	reply.body_len = body_length(arena, reply.head, reply.status);
	while (in.len - head_len < reply.body_len)
		if (!read_more(fd, &in, until_ms))
			break;
	if (in.len - head_len < reply.body_len)
		reply.body_len = in.len - head_len;
	reply.body = arena_textn(arena, in.data + head_len, reply.body_len);
	return reply;
}

struct test_reply test_http_raw(
    struct arena *arena, int port, const void *data, size_t len)
{
	struct test_reply reply = { .status = 0 };
	int fd = test_http_connect(port);

	if (fd < 0)
		return reply;
	/* A server may answer and close before it has read everything. */
	(void)test_http_write(fd, data, len);
	reply = test_http_read(arena, fd);
	close(fd);
	return reply;
}

/* ---- whole requests ---- */

static struct bytes body_of(const struct test_request *request)
{
	if (request->body)
		return (struct bytes){ request->body, strlen(request->body) };
	return request->bytes;
}

static const char *type_of(const struct test_request *request, bool has_body)
{
	if (request->content_type)
		return request->content_type;
	return has_body ? "application/json" : "";
}

struct test_reply test_http(
    struct arena *arena, int port, const struct test_request *request)
{
	struct bytes body = body_of(request);
	const char *type = type_of(request, body.data != NULL);
	struct buf out;

	buf_init(&out, arena, ANSWER_MAX);
	buf_printf(&out, "%s %s HTTP/1.1\r\nHost: %s\r\n", request->method,
	    request->path, request->host ? request->host : "localhost");
	if (request->token)
		buf_printf(
		    &out, "Authorization: Bearer %s\r\n", request->token);
	if (*type)
		buf_printf(&out, "Content-Type: %s\r\n", type);
	if (body.data || *type)
		buf_printf(&out, "Content-Length: %zu\r\n", body.len);
	if (request->headers)
		buf_text(&out, request->headers);
	buf_text(&out, "Connection: close\r\n\r\n");
	if (body.len)
		buf_add(&out, body.data, body.len);
	return test_http_raw(arena, port, out.data, out.len);
}

struct test_reply test_get(
    struct arena *arena, int port, const char *path, const char *token)
{
	return test_http(arena, port,
	    &(struct test_request){
		.method = "GET", .path = path, .token = token });
}

struct test_reply test_post(struct arena *arena, int port, const char *path,
    const char *token, const char *json)
{
	return test_http(arena, port,
	    &(struct test_request){
		.method = "POST", .path = path, .token = token, .body = json });
}

struct test_reply test_patch(struct arena *arena, int port, const char *path,
    const char *token, const char *json)
{
	return test_http(arena, port,
	    &(struct test_request){ .method = "PATCH",
		.path = path,
		.token = token,
		.body = json });
}

struct test_reply test_delete(
    struct arena *arena, int port, const char *path, const char *token)
{
	return test_http(arena, port,
	    &(struct test_request){
		.method = "DELETE", .path = path, .token = token });
}

/* ---- JSON of an answer ---- */

static const struct json *step(const struct json *value, const char *name)
{
	if (json_type(value) == JSON_ARRAY)
		return json_element(value, strtoul(name, NULL, 10));
	return json_member(value, name);
}

const struct json *test_json(
    struct arena *arena, const struct test_reply *reply, const char *path)
{
	struct bytes text = { reply->body, reply->body_len };
	const struct json *value;
	struct err err = { 0 };

	if (!reply->body || !json_parse(arena, text, &value, &err))
		return NULL;
	while (value && *path) {
		size_t len = strcspn(path, ".");

		value = step(value, arena_textn(arena, path, len));
		path += len;
		path += *path == '.';
	}
	return value;
}

const char *test_text(
    struct arena *arena, const struct test_reply *reply, const char *path)
{
	return json_string(test_json(arena, reply, path));
}

int64_t test_number(
    struct arena *arena, const struct test_reply *reply, const char *path)
{
	int64_t number;

	return json_whole(test_json(arena, reply, path), &number) ? number : -1;
}
