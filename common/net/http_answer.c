#include "common/net/http_conn.h"

#include <time.h>

#include "common/base/clock.h"

enum { OUT_MAX = 1 << 30, TLS_TOGETHER_MAX = 16384 };

static const struct {
	int status;
	const char *reason;
} reasons[] = {
	/* clang-format off */
	{ 100, "Continue" },
	{ 101, "Switching Protocols" },
	{ 200, "OK" },
	{ 201, "Created" },
	{ 202, "Accepted" },
	{ 204, "No Content" },
	{ 206, "Partial Content" },
	{ 301, "Moved Permanently" },
	{ 302, "Found" },
	{ 303, "See Other" },
	{ 304, "Not Modified" },
	{ 307, "Temporary Redirect" },
	{ 308, "Permanent Redirect" },
	{ 400, "Bad Request" },
	{ 401, "Unauthorized" },
	{ 403, "Forbidden" },
	{ 404, "Not Found" },
	{ 405, "Method Not Allowed" },
	{ 406, "Not Acceptable" },
	{ 408, "Request Timeout" },
	{ 409, "Conflict" },
	{ 410, "Gone" },
	{ 411, "Length Required" },
	{ 412, "Precondition Failed" },
	{ 413, "Content Too Large" },
	{ 414, "URI Too Long" },
	{ 415, "Unsupported Media Type" },
	{ 416, "Range Not Satisfiable" },
	{ 417, "Expectation Failed" },
	{ 422, "Unprocessable Content" },
	{ 426, "Upgrade Required" },
	{ 428, "Precondition Required" },
	{ 429, "Too Many Requests" },
	{ 431, "Request Header Fields Too Large" },
	{ 500, "Internal Server Error" },
	{ 501, "Not Implemented" },
	{ 502, "Bad Gateway" },
	{ 503, "Service Unavailable" },
	{ 504, "Gateway Timeout" },
	{ 505, "HTTP Version Not Supported" },
	{ 507, "Insufficient Storage" },
	/* clang-format on */
};

const char *http_reason(int status)
{
	for (size_t i = 0; i < COUNT(reasons); i++)
		if (reasons[i].status == status)
			return reasons[i].reason;
	return "Unknown";
}

/* ---- the text of an answer ---- */

static const char *date_now(struct http_server *server)
{
	int64_t now = clock_wall_ms() / 1000;
	time_t seconds = (time_t)now;
	struct tm tm;

	if (now != server->date_s) {
		gmtime_r(&seconds, &tm);
		strftime(server->date, sizeof(server->date),
		    "%a, %d %b %Y %H:%M:%S GMT", &tm);
		server->date_s = now;
	}
	return server->date;
}

static void put_header(struct buf *out, const char *name, const char *value)
{
	buf_text(out, name);
	buf_text(out, ": ");
	/* Whatever a handler put in: one header stays one line. */
	for (; *value != '\0'; value++) {
		unsigned char c = (unsigned char)*value;

		buf_char(
		    out, (c < 0x20 && c != '\t') || c == 0x7f ? ' ' : *value);
	}
	buf_text(out, "\r\n");
}

static bool has_no_content(int status)
{
	return status < 200 || status == 204 || status == 304;
}

static void put_content(struct buf *out, const struct http_reply *reply)
{
	if (has_no_content(reply->status))
		return;
	put_header(out, "Content-Type",
	    reply->content_type != NULL ? reply->content_type
					: "application/json; charset=utf-8");
	buf_text(out, "Content-Length: ");
	buf_int(out, (int64_t)reply->body.len);
	buf_text(out, "\r\n");
}

static void put_connection(const struct http_conn *conn, struct buf *out)
{
	if (conn->close)
		buf_text(out, "Connection: close\r\n");
	else if (conn->ex != NULL && conn->ex->head.minor == 0)
		buf_text(out, "Connection: keep-alive\r\n");
}

static void put_reply(struct http_conn *conn, const struct http_reply *reply)
{
	struct buf *out = &conn->server->text;

	buf_clear(out);
	buf_text(out, "HTTP/1.1 ");
	buf_int(out, reply->status);
	buf_char(out, ' ');
	buf_text(out, http_reason(reply->status));
	buf_text(out, "\r\nDate: ");
	buf_text(out, date_now(conn->server));
	buf_text(out, "\r\n");
	put_content(out, reply);
	put_connection(conn, out);
	for (size_t i = 0; i < reply->header_count; i++)
		put_header(
		    out, reply->headers[i].name, reply->headers[i].value);
	buf_text(out, "\r\n");
}

/* ---- writing ---- */

static void out_keep(struct http_conn *conn, struct bytes data, size_t from)
{
	if (from >= data.len)
		return;
	if (conn->out.data == NULL)
		buf_init(&conn->out, NULL, OUT_MAX);
	buf_add(&conn->out, (const char *)data.data + from, data.len - from);
}

static void out_forget(struct http_conn *conn)
{
	buf_done(&conn->out);
	conn->written = 0;
	event_del(&conn->writable);
}

static bool conn_flush(struct http_conn *conn)
{
	if (conn->out.len == 0)
		return true;
	while (conn->written < conn->out.len) {
		ssize_t done =
		    http_io_write(&conn->io, conn->out.data + conn->written,
			conn->out.len - conn->written);

		if (done == HTTP_IO_ERROR) {
			conn_close(conn);
			return false;
		}
		if (done == HTTP_IO_AGAIN) {
			event_add(&conn->writable, NULL);
			return false;
		}
		conn->written += (size_t)done;
		if (conn->state == CONN_ANSWER)
			conn_state_set(conn, CONN_ANSWER);
	}
	out_forget(conn);
	return true;
}

void conn_queue(struct http_conn *conn, const char *text)
{
	out_keep(conn, (struct bytes){ text, strlen(text) }, 0);
	conn_flush(conn);
}

/* Straight to the kernel; only what it does not take is copied. */
static bool write_direct(
    struct http_conn *conn, struct bytes head, struct bytes body)
{
	ssize_t done = 0;
	size_t taken;

	if (conn->out.len == 0)
		done = http_io_write_two(&conn->io, head, body);
	if (done == HTTP_IO_ERROR) {
		conn_close(conn);
		return false;
	}
	taken = done > 0 ? (size_t)done : 0;
	out_keep(conn, head, taken);
	out_keep(conn, body, taken > head.len ? taken - head.len : 0);
	return conn_flush(conn);
}

static void conn_answered(struct http_conn *conn)
{
	if (!conn->close) {
		conn_state_set(conn, CONN_IDLE);
		return;
	}
	http_io_finish(&conn->io);
	conn_state_set(conn, CONN_LINGER);
}

void conn_write(struct http_conn *conn)
{
	if (conn_flush(conn) && conn->state == CONN_ANSWER)
		conn_answered(conn);
}

void conn_answer(struct http_conn *conn, const struct http_reply *reply)
{
	struct http_server *server = conn->server;
	const struct http_exchange *ex = conn->ex;
	bool head_only = ex != NULL && ex->head.method != NULL &&
	    strcmp(ex->head.method, "HEAD") == 0;
	struct bytes body = reply->body;

	conn->close = conn->close || reply->close || server->draining ||
	    conn->requests >= server->limits.requests_per_connection_max ||
	    ex == NULL || !ex->head.keep_alive;
	put_reply(conn, reply);
	if (head_only || has_no_content(reply->status))
		body.len = 0;
	if (conn->io.ssl != NULL && body.len <= TLS_TOGETHER_MAX) {
		buf_add(&server->text, body.data, body.len);
		body.len = 0;
	}
	conn->ex = NULL;
	conn_state_set(conn, CONN_ANSWER);
	if (write_direct(conn, buf_bytes(&server->text), body))
		conn_answered(conn);
}

void conn_fail(struct http_conn *conn, int status)
{
	struct http_server *server = conn->server;
	struct http_exchange *ex = conn->ex;
	struct http_reply reply = { .status = status, .close = true };

	if (server->def.on_error != NULL)
		server->def.on_error(
		    ex->arena, status, &reply, server->def.arg);
	conn->close = true;
	conn_answer(conn, &reply);
	exchange_end(server, ex);
}
