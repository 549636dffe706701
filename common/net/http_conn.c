#include "common/net/http_conn.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <strings.h>
#include <sys/socket.h>

#include "common/base/clock.h"
#include "common/net/addr.h"

enum {
	IN_MAX = 4 * HTTP_SCRATCH,
	READS_MAX = 4, /* a turn; others want to be served, too */
	BODY_MAX_DEFAULT = 1 << 20,
	LINGER_MS = 2000,
	LINGER_BYTES_MAX = 32 << 20
};

/* ---- exchanges ---- */

static struct http_exchange *exchange_new(struct http_conn *conn)
{
	struct http_server *server = conn->server;
	struct arena *arena =
	    server->spares > 0 ? server->spare[--server->spares] : arena_new();
	struct http_exchange *ex = ARENA_NEW(arena, struct http_exchange);

	ex->arena = arena;
	ex->conn = conn;
	ex->client = conn->address;
	http_spool_init(
	    &ex->body, server->def.spool_dir, server->limits.spool_above_bytes);
	return ex;
}

void exchange_end(struct http_server *server, struct http_exchange *ex)
{
	struct arena *arena = ex->arena;

	http_spool_done(&ex->body);
	if (server == NULL || server->spares == HTTP_SPARE_ARENAS) {
		arena_free(&arena);
		return;
	}
	arena_reset(arena);
	server->spare[server->spares++] = arena;
}

/* ---- states ---- */

static bool conn_reads(const struct http_conn *conn)
{
	return conn->state == CONN_IDLE || conn->state == CONN_HEAD ||
	    conn->state == CONN_BODY;
}

static int64_t state_deadline(
    const struct http_limits *limits, enum conn_state state)
{
	switch (state) {
	case CONN_IDLE:
		return limits->idle_deadline_ms;
	case CONN_HEAD:
		return limits->head_deadline_ms;
	case CONN_BODY:
		return limits->body_deadline_ms;
	case CONN_ANSWER:
		return limits->write_deadline_ms;
	case CONN_LINGER:
		return LINGER_MS;
	default:
		return 0;
	}
}

void conn_state_set(struct http_conn *conn, enum conn_state state)
{
	struct http_server *server = conn->server;
	int64_t wait = state_deadline(&server->limits, state);

	TAILQ_REMOVE(&server->conns[conn->state], conn, link);
	server->counts[conn->state]--;
	conn->state = state;
	TAILQ_INSERT_TAIL(&server->conns[state], conn, link);
	server->counts[state]++;
	conn->deadline_ms = wait > 0 ? clock_steady_ms() + wait : 0;
}

void conn_close(struct http_conn *conn)
{
	if (conn->state == CONN_DEAD)
		return;
	event_del(&conn->readable);
	event_del(&conn->writable);
	http_io_close(&conn->io);
	http_place_leave(conn);
	if (conn->ex != NULL && conn->state == CONN_HANDLED)
		conn->ex->conn = NULL;
	else if (conn->ex != NULL)
		exchange_end(conn->server, conn->ex);
	conn->ex = NULL;
	conn_state_set(conn, CONN_DEAD);
}

/* ---- a body ---- */

static void hand_over(struct http_conn *conn)
{
	struct http_server *server = conn->server;

	if (!http_spool_end(&conn->ex->body)) {
		conn_fail(conn, 503);
		return;
	}
	conn_state_set(conn, CONN_HANDLED);
	server->def.on_request(conn->ex, server->def.arg);
}

static bool take_piece(struct http_conn *conn, struct bytes piece)
{
	struct http_exchange *ex = conn->ex;
	const struct http_limits *limits = &conn->server->limits;

	if ((int64_t)piece.len > ex->body_max - ex->body.size) {
		conn_fail(conn, 413);
		return false;
	}
	if (!http_spool_add(&ex->body, piece.data, piece.len)) {
		conn_fail(conn, 503);
		return false;
	}
	conn->deadline_ms = conn->body_began_ms + limits->body_deadline_ms;
	if (limits->body_rate_bytes > 0)
		conn->deadline_ms +=
		    ex->body.size * 1000 / limits->body_rate_bytes;
	return true;
}

static size_t step_plain(struct http_conn *conn, const char *data, size_t len)
{
	struct http_exchange *ex = conn->ex;
	int64_t left = ex->head.content_length - ex->body.size;
	size_t take = (int64_t)len < left ? len : (size_t)left;

	if (!take_piece(conn, (struct bytes){ data, take }))
		return len;
	if ((int64_t)take == left)
		hand_over(conn);
	return take;
}

static size_t step_chunks(struct http_conn *conn, const char *data, size_t len)
{
	struct http_chunks *chunks = &conn->ex->chunks;
	enum http_parse found = HTTP_MORE;
	size_t total = 0;

	while (found == HTTP_MORE && total < len) {
		struct bytes piece;
		size_t used;

		found = http_parse_chunks(
		    chunks, data + total, len - total, &used, &piece);
		total += used;
		if (piece.len > 0 && !take_piece(conn, piece))
			return len;
	}
	if (found == HTTP_BAD) {
		conn_fail(conn, 400);
		return len;
	}
	if (found == HTTP_DONE)
		hand_over(conn);
	return total;
}

/* ---- a head ---- */

/* All X-Forwarded-For lines in their order; the last hop comes last. */
static const char *forwarded_for(const struct http_exchange *ex)
{
	const char *all = NULL;

	for (size_t i = 0; i < ex->head.header_count; i++) {
		const struct http_header *header = &ex->head.headers[i];

		if (strcmp(header->name, "x-forwarded-for") != 0)
			continue;
		all = all == NULL
		    ? header->value
		    : arena_printf(ex->arena, "%s, %s", all, header->value);
	}
	return all;
}

static bool body_is_encoded(const struct http_head *head)
{
	const char *encoding = http_head_get(head, "content-encoding");

	if (!head->has_body || http_head_count(head, "content-encoding") == 0)
		return false;
	return encoding == NULL || strcasecmp(encoding, "identity") != 0;
}

static void begin_body(struct http_conn *conn, bool more)
{
	conn_state_set(conn, CONN_BODY);
	conn->body_began_ms = clock_steady_ms();
	if (conn->ex->head.expect_continue && !more)
		conn_queue(conn, "HTTP/1.1 100 Continue\r\n\r\n");
}

static void head_complete(struct http_conn *conn, bool more)
{
	const struct http_server_def *def = &conn->server->def;
	struct http_exchange *ex = conn->ex;
	struct http_reply reply = { .status = 500 };

	conn->requests++;
	ex->client = addr_client(
	    ex->arena, conn->address, forwarded_for(ex), def->trusted_proxies);
	if (body_is_encoded(&ex->head)) {
		conn_fail(conn, 415);
		return;
	}
	ex->body_max = BODY_MAX_DEFAULT;
	if (def->on_head != NULL)
		ex->body_max = def->on_head(ex, &reply, def->arg);
	if (ex->body_max < 0) {
		reply.close = reply.close || ex->head.has_body;
		conn_answer(conn, &reply);
		exchange_end(conn->server, ex);
	} else if (ex->head.content_length > ex->body_max) {
		conn_fail(conn, 413);
	} else if (ex->head.has_body) {
		begin_body(conn, more);
	} else {
		hand_over(conn);
	}
}

static size_t step_head(struct http_conn *conn, const char *data, size_t len)
{
	struct http_exchange *ex = conn->ex;
	size_t used;
	int status;

	if (conn->state == CONN_IDLE) {
		ex = conn->ex = exchange_new(conn);
		conn_state_set(conn, CONN_HEAD);
	}
	switch (
	    http_parse_head(ex->arena, data, len, &ex->head, &used, &status)) {
	case HTTP_DONE:
		head_complete(conn, used < len);
		return used;
	case HTTP_BAD:
		conn_fail(conn, status);
		return len;
	default:
		return 0;
	}
}

/* ---- bytes come in ---- */

static size_t conn_use(struct http_conn *conn, const char *data, size_t len)
{
	size_t used = 0;
	size_t took = 1;

	while (took > 0 && used < len && conn_reads(conn)) {
		const char *rest = data + used;

		if (conn->state != CONN_BODY)
			took = step_head(conn, rest, len - used);
		else if (conn->ex->head.chunked)
			took = step_chunks(conn, rest, len - used);
		else
			took = step_plain(conn, rest, len - used);
		used += took;
	}
	return used;
}

/* What cannot be used yet is kept: half a head, or pipelined requests. */
static void conn_feed(struct http_conn *conn, const char *data, size_t len)
{
	struct buf *in = &conn->in;
	size_t used;

	conn->stepping = true;
	if (in->len > 0) {
		buf_add(in, data, len);
		used = conn_use(conn, in->data, in->len);
		buf_drop(in, used);
	} else {
		used = conn_use(conn, data, len);
		if (used < len) {
			buf_init(in, NULL, IN_MAX);
			buf_add(in, data + used, len - used);
		}
	}
	if (in->len == 0)
		buf_done(in);
	conn->stepping = false;
}

/* The answer is out; the client may read it before the reset comes. */
static void conn_linger(struct http_conn *conn)
{
	struct http_server *server = conn->server;
	ssize_t done =
	    recv(conn->io.fd, server->scratch, sizeof(server->scratch), 0);

	if (done < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	conn->dropped += done > 0 ? (size_t)done : 0;
	if (done <= 0 || conn->dropped > LINGER_BYTES_MAX)
		conn_close(conn);
}

/* One read; true: there may be more. */
static bool conn_read(struct http_conn *conn)
{
	struct http_server *server = conn->server;
	size_t room = sizeof(server->scratch);
	ssize_t done = http_io_read(&conn->io, server->scratch, room);

	if (done == HTTP_IO_AGAIN) {
		if (conn->io.read_wants_write)
			event_add(&conn->writable, NULL);
		return false;
	}
	if (done <= 0) {
		conn_close(conn);
		return false;
	}
	conn_feed(conn, server->scratch, (size_t)done);
	return (size_t)done == room ||
	    (conn->state != CONN_DEAD && http_io_pending(&conn->io));
}

static void conn_readable(
    evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct http_conn *conn = arg;

	if (conn->state == CONN_LINGER) {
		conn_linger(conn);
		return;
	}
	for (int i = 0; conn_reads(conn); i++) {
		if (i == READS_MAX) {
			event_active(&conn->readable, EV_READ, 0);
			return;
		}
		if (!conn_read(conn))
			return;
	}
	if (conn->state == CONN_HANDLED || conn->state == CONN_ANSWER) {
		event_del(&conn->readable);
		conn->reading = false;
	}
}

static void conn_writable(
    evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct http_conn *conn = arg;

	if (conn->out.len > 0)
		conn_write(conn);
	else if (conn->io.read_wants_write)
		conn_readable(conn->io.fd, EV_READ, conn);
	conn_go_on(conn);
}

void conn_go_on(struct http_conn *conn)
{
	if (conn->stepping)
		return;
	if (conn_reads(conn) && conn->in.len > 0)
		conn_feed(conn, "", 0);
	if (!conn_reads(conn) && conn->state != CONN_LINGER)
		return;
	if (!conn->reading)
		event_add(&conn->readable, NULL);
	conn->reading = true;
	if (conn_reads(conn) && http_io_pending(&conn->io))
		event_active(&conn->readable, EV_READ, 0);
}

void conn_start(struct http_conn *conn)
{
	struct event_base *base = loop_base(conn->server->loop);
	int one = 1;

	setsockopt(conn->io.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	event_assign(&conn->readable, base, conn->io.fd, EV_READ | EV_PERSIST,
	    conn_readable, conn);
	event_assign(
	    &conn->writable, base, conn->io.fd, EV_WRITE, conn_writable, conn);
	conn_state_set(conn, CONN_IDLE);
	conn->deadline_ms =
	    clock_steady_ms() + conn->server->limits.head_deadline_ms;
	conn_go_on(conn);
}

void conn_late(struct http_conn *conn)
{
	if (conn->state != CONN_HEAD && conn->state != CONN_BODY) {
		conn_close(conn);
		return;
	}
	conn_fail(conn, 408);
	conn_go_on(conn);
}
