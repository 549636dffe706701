#include "tests/lib/test_db.h"
#include "tests/lib/test_peer.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"

enum { REQUEST_MAX = 12 << 20, TURN_MS = 5 };

struct test_peer {
	struct arena *arena;
	pthread_mutex_t lock;
	pthread_t acceptor;
	const char *origin;
	test_peer_script *script;
	void *arg;
	struct test_peer_request *requests;
	size_t count;
	size_t room;
	int listener;
	int port;
	int connections;
	bool ending;
};

struct connection {
	struct test_peer *peer;
	int socket;
};

static bool is_ending(struct test_peer *peer)
{
	bool ending;

	pthread_mutex_lock(&peer->lock);
	ending = peer->ending;
	pthread_mutex_unlock(&peer->lock);
	return ending;
}

/* Waits for bytes; false at the end of the connection or of the peer. */
static bool readable(struct test_peer *peer, int fd)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

	while (!is_ending(peer))
		if (poll(&poll_fd, 1, TURN_MS) > 0)
			return true;
	return false;
}

static bool receive(struct connection *conn, struct buf *in, size_t want)
{
	char piece[16384];

	while (want ? in->len < want : !strstr(in->data, "\r\n\r\n")) {
		ssize_t got = readable(conn->peer, conn->socket)
		    ? recv(conn->socket, piece, sizeof(piece), 0)
		    : 0;

		if (got <= 0)
			return false;
		buf_add(in, piece, (size_t)got);
	}
	return buf_ok(in);
}

static const char *word(struct arena *arena, const char **at)
{
	size_t len = strcspn(*at, " \r\n");
	const char *text = arena_textn(arena, *at, len);

	*at += len + ((*at)[len] == ' ');
	return text;
}

/* The next request of a connection, kept for good. */
static bool request_read(
    struct connection *conn, struct buf *in, struct test_peer_request *request)
{
	struct test_peer *peer = conn->peer;
	const char *length;
	const char *line;
	size_t head;
	size_t body;

	if (!receive(conn, in, 0))
		return false;
	head = (size_t)(strstr(in->data, "\r\n\r\n") - in->data) + 4;
	length = strcasestr(in->data, "\r\ncontent-length:");
	body = length && length < in->data + head
	    ? strtoul(length + strlen("\r\ncontent-length:"), NULL, 10)
	    : 0;
	if (!receive(conn, in, head + body))
		return false;
	pthread_mutex_lock(&peer->lock);
	line = in->data;
	request->method = word(peer->arena, &line);
	request->path = word(peer->arena, &line);
	request->head = arena_textn(peer->arena, in->data, head);
	request->body.data = arena_textn(peer->arena, in->data + head, body);
	request->body.len = body;
	request->at_ms = clock_steady_ms();
	pthread_mutex_unlock(&peer->lock);
	buf_drop(in, head + body);
	return true;
}

static void put_ids(
    struct json_out *json, const struct json *events, const char *reason)
{
	for (size_t i = 0; i < json_count(events); i++) {
		const char *id = json_string(
		    json_member(json_element(events, i), "messageId"));

		if (reason) {
			json_open(json, NULL);
			json_put_text(json, "messageId", id);
			json_put_text(json, "reason", reason);
			json_close(json);
		} else {
			json_put_text(json, NULL, id);
		}
	}
}

const char *test_peer_verdict(
    struct arena *arena, struct bytes body, const char *reason)
{
	const struct json *batch = NULL;
	const struct json *events;
	struct err err = { 0 };
	struct buf out;
	struct json_out json = { .buf = &out };

	buf_init(&out, arena, 1 << 20);
	if (!json_parse(arena, body, &batch, &err))
		return "{}";
	events = json_member(batch, "events");
	json_open(&json, NULL);
	json_open_list(&json, "accepted");
	if (!reason)
		put_ids(&json, events, NULL);
	json_close_list(&json);
	json_open_list(&json, "rejected");
	if (reason)
		put_ids(&json, events, reason);
	json_close_list(&json);
	json_put_int(&json, "maxUploadSize", 104857600);
	json_close(&json);
	return out.data;
}

static struct test_peer_answer default_answer(
    struct arena *arena, const struct test_peer_request *request)
{
	struct test_peer_answer answer = { .status = 200 };

	if (!strcmp(request->path, "/api/federation/relay"))
		answer.body = test_peer_verdict(arena, request->body, NULL);
	else if (!strcmp(request->path, "/api/federation/peer/accept"))
		answer.body = "{\"accepted\":true}";
	else
		answer.body = "{\"name\":\"test\",\"version\":\"1.0.0\","
			      "\"registrationOpen\":true}";
	return answer;
}

static struct test_peer_answer decide(
    struct test_peer *peer, const struct test_peer_request *request)
{
	struct test_peer_answer answer;

	pthread_mutex_lock(&peer->lock);
	if (peer->count == peer->room) {
		size_t room = peer->room ? peer->room * 2 : 64;
		struct test_peer_request *more =
		    arena_array(peer->arena, room, sizeof(*more));

		if (peer->count)
			memcpy(
			    more, peer->requests, peer->count * sizeof(*more));
		peer->requests = more;
		peer->room = room;
	}
	answer = default_answer(peer->arena, request);
	if (peer->script)
		peer->script(peer->arg, peer->arena, request, &answer);
	peer->requests[peer->count++] = *request;
	pthread_mutex_unlock(&peer->lock);
	return answer;
}

static void hold(struct test_peer *peer, int ms)
{
	int64_t until = clock_steady_ms() + ms;
	struct timespec turn = { .tv_nsec = TURN_MS * 1000000L };

	while (clock_steady_ms() < until && !is_ending(peer))
		nanosleep(&turn, NULL);
}

/* Until nobody takes any more of it. */
static void pour(struct connection *conn, const struct test_peer_answer *answer)
{
	char head[256];
	char piece[4096];

	memset(piece, 'x', sizeof(piece));
	snprintf(
	    head, sizeof(head), "HTTP/1.1 %d Test\r\n\r\n", answer->status);
	if (send(conn->socket, head, strlen(head), MSG_NOSIGNAL) < 0)
		return;
	while (!is_ending(conn->peer))
		if (send(conn->socket, piece, sizeof(piece), MSG_NOSIGNAL) < 0)
			return;
}

/* False: the connection is to be closed. */
static bool respond(
    struct connection *conn, const struct test_peer_answer *answer)
{
	struct arena *arena;
	struct buf out;
	ssize_t sent = 0;

	hold(conn->peer, answer->hold_ms);
	if (answer->endless) {
		pour(conn, answer);
		return false;
	}
	arena = arena_new();
	buf_init(&out, arena, REQUEST_MAX);
	buf_printf(&out,
	    "HTTP/1.1 %d Test\r\n"
	    "Content-Type: %s\r\n"
	    "%sContent-Length: %zu\r\n\r\n",
	    answer->status,
	    answer->content_type ? answer->content_type
				 : "application/json; charset=utf-8",
	    answer->headers ? answer->headers : "",
	    answer->body ? strlen(answer->body) : 0);
	buf_text(&out, answer->body ? answer->body : "");
	if (answer->status)
		sent = send(conn->socket, out.data,
		    answer->cut ? out.len - 5 : out.len, MSG_NOSIGNAL);
	arena_free(&arena);
	return sent > 0 && !answer->cut;
}

static void *serve(void *arg)
{
	struct connection *conn = arg;
	struct test_peer *peer = conn->peer;
	struct arena *arena = arena_new();
	struct test_peer_request request;
	struct test_peer_answer answer;
	struct buf in;

	buf_init(&in, arena, REQUEST_MAX);
	buf_text(&in, "");
	while (request_read(conn, &in, &request)) {
		answer = decide(peer, &request);
		if (!respond(conn, &answer))
			break;
	}
	close(conn->socket);
	free(conn);
	arena_free(&arena);
	pthread_mutex_lock(&peer->lock);
	peer->connections--;
	pthread_mutex_unlock(&peer->lock);
	return NULL;
}

static void *accept_all_connections(void *arg)
{
	struct test_peer *peer = arg;

	while (readable(peer, peer->listener)) {
		struct connection *conn = malloc(sizeof(*conn));
		pthread_t thread;

		assert(conn);
		conn->peer = peer;
		conn->socket =
		    accept4(peer->listener, NULL, NULL, SOCK_CLOEXEC);
		pthread_mutex_lock(&peer->lock);
		peer->connections++;
		pthread_mutex_unlock(&peer->lock);
		assert(!pthread_create(&thread, NULL, serve, conn));
		pthread_detach(thread);
	}
	return NULL;
}

struct test_peer *test_peer_new(
    const char *host, test_peer_script *script, void *arg)
{
	struct arena *arena = arena_new();
	struct test_peer *peer = ARENA_NEW(arena, struct test_peer);
	struct sockaddr_in addr = { .sin_family = AF_INET };
	socklen_t len = sizeof(addr);

	peer->arena = arena;
	peer->script = script;
	peer->arg = arg;
	pthread_mutex_init(&peer->lock, NULL);
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	peer->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert(!bind(peer->listener, (struct sockaddr *)&addr, len));
	assert(!listen(peer->listener, 64));
	assert(!getsockname(peer->listener, (struct sockaddr *)&addr, &len));
	peer->port = ntohs(addr.sin_port);
	peer->origin = arena_printf(arena, "http://%s:%d", host, peer->port);
	assert(!pthread_create(
	    &peer->acceptor, NULL, accept_all_connections, peer));
	return peer;
}

void test_peer_free(struct test_peer **peer_var)
{
	struct test_peer *peer = *peer_var;
	struct timespec turn = { .tv_nsec = TURN_MS * 1000000L };
	int left = 1;

	if (!peer)
		return;
	pthread_mutex_lock(&peer->lock);
	peer->ending = true;
	pthread_mutex_unlock(&peer->lock);
	pthread_join(peer->acceptor, NULL);
	close(peer->listener);
	while (left) {
		pthread_mutex_lock(&peer->lock);
		left = peer->connections;
		pthread_mutex_unlock(&peer->lock);
		nanosleep(&turn, NULL);
	}
	pthread_mutex_destroy(&peer->lock);
	*peer_var = NULL;
	arena_free(&(struct arena *){ peer->arena });
}

const char *test_peer_origin(const struct test_peer *peer)
{
	return peer->origin;
}

int test_peer_port(const struct test_peer *peer)
{
	return peer->port;
}

size_t test_peer_count(struct test_peer *peer, const char *path)
{
	size_t count = 0;

	pthread_mutex_lock(&peer->lock);
	for (size_t i = 0; i < peer->count; i++)
		count += !path || !strcmp(peer->requests[i].path, path);
	pthread_mutex_unlock(&peer->lock);
	return count;
}

bool test_peer_got(
    struct test_peer *peer, const char *path, size_t count, int ms)
{
	int64_t until = clock_steady_ms() + test_patience_ms(ms);
	struct timespec turn = { .tv_nsec = 1000000L };

	while (test_peer_count(peer, path) < count) {
		if (clock_steady_ms() > until)
			return false;
		nanosleep(&turn, NULL);
	}
	return true;
}

struct test_peer_request test_peer_nth(
    struct test_peer *peer, const char *path, size_t place)
{
	struct test_peer_request found = { 0 };

	pthread_mutex_lock(&peer->lock);
	for (size_t i = 0; i < peer->count && !found.method; i++)
		if ((!path || !strcmp(peer->requests[i].path, path)) &&
		    place-- == 0)
			found = peer->requests[i];
	pthread_mutex_unlock(&peer->lock);
	assert(found.method);
	return found;
}

const char *test_peer_header(struct arena *arena,
    const struct test_peer_request *request, const char *name)
{
	const char *line = strchr(request->head, '\n');
	size_t len = strlen(name);

	for (; line && line[1]; line = strchr(line + 1, '\n')) {
		const char *value = line + 1 + len;

		if (strncasecmp(line + 1, name, len) || *value != ':')
			continue;
		value += 1 + strspn(value + 1, " \t");
		return arena_textn(arena, value, strcspn(value, "\r\n"));
	}
	return NULL;
}
