#include "common/net/http_conn.h"

#include "common/base/clock.h"

enum { TICK_MS = 100, TEXT_MAX = 1 << 24 };

const struct http_limits http_limits_default = {
	.head_deadline_ms = 10000,
	.idle_deadline_ms = 60000,
	.body_deadline_ms = 30000,
	.body_rate_bytes = 4096,
	.write_deadline_ms = 30000,
	.spool_above_bytes = 262144,
	.connections_max = 8192,
	.connections_per_address_max = 256,
	.requests_per_connection_max = 10000,
};

/* ---- deadlines ---- */

static void reap(struct http_server *server)
{
	struct http_conns *dead = &server->conns[CONN_DEAD];
	struct http_conn *conn;

	while ((conn = TAILQ_FIRST(dead)) != NULL) {
		TAILQ_REMOVE(dead, conn, link);
		server->counts[CONN_DEAD]--;
		buf_done(&conn->in);
		buf_done(&conn->out);
		free(conn);
	}
}

static void cut_late(struct http_server *server, enum conn_state state)
{
	int64_t now = clock_steady_ms();
	struct http_conn *conn = TAILQ_FIRST(&server->conns[state]);

	while (conn != NULL) {
		struct http_conn *next = TAILQ_NEXT(conn, link);

		if (conn->deadline_ms != 0 && conn->deadline_ms <= now)
			conn_late(conn);
		conn = next;
	}
}

static bool has_any(const struct http_server *server)
{
	for (int state = 0; state < CONN_STATES; state++)
		if (server->counts[state] > 0)
			return true;
	return false;
}

static void tick(void *arg)
{
	struct http_server *server = arg;

	reap(server);
	for (int state = CONN_IDLE; state < CONN_DEAD; state++)
		cut_late(server, (enum conn_state)state);
	if (server->paused && clock_steady_ms() >= server->resume_ms)
		http_accept_pause(server, false);
	server->ticking = server->paused || has_any(server);
	if (server->ticking)
		loop_timer_arm(server->tick, TICK_MS);
}

void http_tick_begin(struct http_server *server)
{
	if (!server->ticking)
		loop_timer_arm(server->tick, TICK_MS);
	server->ticking = true;
}

/* ---- the server ---- */

struct http_server *http_server_new(
    struct loop *loop, const struct http_server_def *def, struct err *err)
{
	struct http_server *server;
	SSL_CTX *tls = NULL;

	if (def->tls_certificate != NULL) {
		tls = http_io_context(def->tls_certificate, def->tls_key, err);
		if (tls == NULL)
			return NULL;
	}
	server = calloc(1, sizeof(*server));
	if (server == NULL)
		abort();
	server->loop = loop;
	server->def = *def;
	server->limits =
	    def->limits != NULL ? *def->limits : http_limits_default;
	if (def->spool_dir == NULL)
		server->def.spool_dir = "/tmp";
	server->tls = tls;
	TAILQ_INIT(&server->listeners);
	for (int state = 0; state < CONN_STATES; state++)
		TAILQ_INIT(&server->conns[state]);
	buf_init(&server->text, NULL, TEXT_MAX);
	server->tick = loop_timer_new(loop, tick, server);
	return server;
}

bool http_server_listen(
    struct http_server *server, const char *address, struct err *err)
{
	int port = 0;
	int fd = http_listen_socket(address, &port, err);

	if (fd < 0)
		return false;
	server->port = port;
	http_accept_start(server, fd);
	return true;
}

int http_server_port(const struct http_server *server)
{
	return server->port;
}

static void close_all(struct http_server *server, enum conn_state state)
{
	struct http_conn *conn;

	while ((conn = TAILQ_FIRST(&server->conns[state])) != NULL)
		conn_close(conn);
}

void http_server_drain(struct http_server *server)
{
	server->draining = true;
	server->paused = false;
	http_accept_stop(server);
	close_all(server, CONN_IDLE);
	close_all(server, CONN_HEAD);
}

size_t http_server_busy(const struct http_server *server)
{
	size_t busy = 0;

	for (int state = CONN_BODY; state < CONN_DEAD; state++)
		busy += server->counts[state];
	return busy;
}

void http_server_free(struct http_server **server)
{
	struct http_server *old = *server;

	if (old == NULL)
		return;
	*server = NULL;
	http_accept_stop(old);
	for (int state = 0; state < CONN_DEAD; state++)
		close_all(old, (enum conn_state)state);
	reap(old);
	while (old->spares > 0)
		arena_free(&old->spare[--old->spares]);
	loop_timer_free(&old->tick);
	buf_done(&old->text);
	SSL_CTX_free(old->tls);
	free(old);
}

/* ---- an exchange ---- */

const struct http_head *http_head(const struct http_exchange *ex)
{
	return &ex->head;
}

struct bytes http_body(const struct http_exchange *ex)
{
	return http_spool_bytes(&ex->body);
}

const char *http_client(const struct http_exchange *ex)
{
	return ex->client;
}

struct arena *http_arena(struct http_exchange *ex)
{
	return ex->arena;
}

void http_set_user(struct http_exchange *ex, void *user)
{
	ex->user = user;
}

void *http_user(const struct http_exchange *ex)
{
	return ex->user;
}

void http_reply(struct http_exchange *ex, const struct http_reply *reply)
{
	struct http_conn *conn = ex->conn;

	if (conn == NULL) {
		exchange_end(NULL, ex);
		return;
	}
	assert(conn->state == CONN_HANDLED);
	conn_answer(conn, reply);
	exchange_end(conn->server, ex);
	conn_go_on(conn);
}
