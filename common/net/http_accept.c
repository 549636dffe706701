#include "common/net/http_conn.h"

#include <errno.h>
#include <search.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/net/addr.h"

enum { PAUSE_MS = 100, COMPLAIN_MS = 10000, ACCEPTS_MAX = 64 };

/* Connections of one address (IPv6: of its /64). */
struct http_place {
	char key[INET6_ADDRSTRLEN + 4];
	int64_t count;
};

static const char busy_answer[] = "HTTP/1.1 503 Service Unavailable\r\n"
				  "Content-Length: 0\r\n"
				  "Connection: close\r\n\r\n";
static const char many_answer[] = "HTTP/1.1 429 Too Many Requests\r\n"
				  "Content-Length: 0\r\n"
				  "Connection: close\r\n\r\n";

static void *zeroed(size_t size)
{
	void *memory = calloc(1, size);

	if (memory == NULL)
		abort();
	return memory;
}

/* ---- connections of an address ---- */

static int place_order(const void *a, const void *b)
{
	const struct http_place *one = a, *other = b;

	return strcmp(one->key, other->key);
}

static struct http_place *place_find(
    struct http_server *server, const char *key)
{
	struct http_place *place = zeroed(sizeof(*place));
	struct http_place **found;

	snprintf(place->key, sizeof(place->key), "%s", key);
	found = tsearch(place, &server->places, place_order);
	if (found == NULL)
		abort();
	if (*found != place)
		free(place);
	return *found;
}

/* False: there are enough of this address. */
static bool place_enter(struct http_conn *conn)
{
	struct http_server *server = conn->server;
	struct arena *arena;
	struct http_place *place;

	if (strcmp(conn->address, "unix") == 0 ||
	    addr_in_list(conn->address, server->def.trusted_proxies))
		return true;
	arena = arena_new();
	place = place_find(server, addr_limit_key(arena, conn->address));
	arena_free(&arena);
	conn->place = place;
	place->count++;
	return place->count <= server->limits.connections_per_address_max;
}

void http_place_leave(struct http_conn *conn)
{
	struct http_place *place = conn->place;

	conn->place = NULL;
	if (place == NULL || --place->count > 0)
		return;
	tdelete(place, &conn->server->places, place_order);
	free(place);
}

/* ---- accepting ---- */

static size_t connections(const struct http_server *server)
{
	size_t total = 0;

	for (int state = 0; state < CONN_DEAD; state++)
		total += server->counts[state];
	return total;
}

/* Room for one more, if need be by closing who has been idle longest. */
static bool make_room(struct http_server *server)
{
	struct http_conn *idle = TAILQ_FIRST(&server->conns[CONN_IDLE]);

	if ((int64_t)connections(server) < server->limits.connections_max)
		return true;
	if (idle != NULL)
		conn_close(idle);
	return idle != NULL;
}

static void refuse(struct http_server *server, int fd, const char *answer)
{
	if (server->tls == NULL &&
	    send(fd, answer, strlen(answer), MSG_NOSIGNAL) > 0)
		shutdown(fd, SHUT_WR);
}

static void admit(
    struct http_server *server, int fd, const struct sockaddr *from)
{
	struct http_conn *conn = zeroed(sizeof(*conn));
	struct arena *arena = arena_new();

	conn->server = server;
	snprintf(
	    conn->address, sizeof(conn->address), "%s", addr_text(arena, from));
	arena_free(&arena);
	conn->state = CONN_DEAD;
	TAILQ_INSERT_TAIL(&server->conns[CONN_DEAD], conn, link);
	server->counts[CONN_DEAD]++;
	if (!place_enter(conn)) {
		http_place_leave(conn);
		refuse(server, fd, many_answer);
		close(fd);
		return;
	}
	http_io_init(&conn->io, fd, server->tls);
	conn_start(conn);
}

/* Out of descriptors or memory: the socket stays readable, so look away. */
static void accept_failed(struct http_server *server)
{
	int64_t now = clock_steady_ms();

	if (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR)
		return;
	if (now >= server->complain_ms) {
		log_warn("http.accept", F("err", v_text(strerror(errno))));
		server->complain_ms = now + COMPLAIN_MS;
	}
	server->resume_ms = now + PAUSE_MS;
	http_accept_pause(server, true);
}

static void acceptable(evutil_socket_t fd, short what UNUSED, void *arg)
{
	struct http_listener *listener = arg;
	struct http_server *server = listener->server;

	http_tick_begin(server);
	for (int i = 0; i < ACCEPTS_MAX && !server->paused; i++) {
		struct sockaddr_storage from = { .ss_family = AF_UNSPEC };
		socklen_t len = sizeof(from);
		int client = accept4(fd, (struct sockaddr *)&from, &len,
		    SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (client < 0) {
			accept_failed(server);
			return;
		}
		if (make_room(server)) {
			admit(server, client, (struct sockaddr *)&from);
			continue;
		}
		refuse(server, client, busy_answer);
		close(client);
	}
}

void http_accept_pause(struct http_server *server, bool pause)
{
	struct http_listener *listener;

	server->paused = pause;
	TAILQ_FOREACH(listener, &server->listeners, link)
	if (pause)
		event_del(&listener->acceptable);
	else
		event_add(&listener->acceptable, NULL);
}

void http_accept_start(struct http_server *server, int fd)
{
	struct http_listener *listener = zeroed(sizeof(*listener));

	listener->server = server;
	listener->fd = fd;
	event_assign(&listener->acceptable, loop_base(server->loop), fd,
	    EV_READ | EV_PERSIST, acceptable, listener);
	event_add(&listener->acceptable, NULL);
	TAILQ_INSERT_TAIL(&server->listeners, listener, link);
}

void http_accept_stop(struct http_server *server)
{
	struct http_listener *listener;

	while ((listener = TAILQ_FIRST(&server->listeners)) != NULL) {
		TAILQ_REMOVE(&server->listeners, listener, link);
		event_del(&listener->acceptable);
		close(listener->fd);
		free(listener);
	}
}
