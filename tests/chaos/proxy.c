#include "tests/chaos/proxy.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/base/clock.h"

enum { MESSAGE_MAX = 16 << 20, TURN_MS = 20, BEHIND_MS = 20000 };

enum fault {
	FAULT_NONE,
	FAULT_DROP,
	FAULT_DELAY,
	FAULT_CUT,
	FAULT_HALF,
	FAULT_TWICE,
	FAULT_STALL,
	FAULT_COUNT
};

struct proxy {
	struct arena *arena; /* under the lock */
	pthread_mutex_t lock;
	pthread_t acceptor;
	const char *origin;
	struct dice dice;
	struct proxy_line *lines;
	size_t count;
	size_t room;
	struct proxy_counts counts;
	int listener;
	int behind;
	int permille;
	int connections;
	bool logs;
	bool ending;
};

struct pass {
	struct proxy *proxy;
	struct arena *arena; /* of one request */
	int socket;
	struct buf in;
	struct bytes request;
	struct bytes body;
	const struct json *events;
};

/* ---- sockets ---- */

static bool is_ending(struct proxy *proxy)
{
	bool ending;

	pthread_mutex_lock(&proxy->lock);
	ending = proxy->ending;
	pthread_mutex_unlock(&proxy->lock);
	return ending;
}

static bool readable(struct proxy *proxy, int fd, int ms)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	int64_t until = clock_steady_ms() + ms;

	while (!is_ending(proxy) && (ms == 0 || clock_steady_ms() < until))
		if (poll(&ready, 1, TURN_MS) > 0)
			return true;
	return false;
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

static bool fill(
    struct proxy *proxy, int fd, struct buf *in, size_t want, int ms)
{
	char piece[16384];

	while (want ? in->len < want : !strstr(in->data, "\r\n\r\n")) {
		ssize_t got = readable(proxy, fd, ms)
		    ? recv(fd, piece, sizeof(piece), 0)
		    : 0;

		if (got <= 0)
			return false;
		buf_add(in, piece, (size_t)got);
	}
	return buf_ok(in);
}

/* One message with its head: how long it is; 0: the connection ended. */
static size_t message_read(
    struct proxy *proxy, int fd, struct buf *in, size_t *head, int ms)
{
	const char *length;
	size_t body = 0;

	if (!fill(proxy, fd, in, 0, ms))
		return 0;
	*head = (size_t)(strstr(in->data, "\r\n\r\n") - in->data) + 4;
	length = strcasestr(in->data, "\r\ncontent-length:");
	if (length && length < in->data + *head)
		body =
		    strtoul(length + strlen("\r\ncontent-length:"), NULL, 10);
	return fill(proxy, fd, in, *head + body, ms) ? *head + body : 0;
}

static int connect_behind(const struct proxy *proxy)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)proxy->behind),
		.sin_addr = { htonl(INADDR_LOOPBACK) },
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0)
		return fd;
	close(fd);
	return -1;
}

/* Is the sender still there to hear an answer? */
static bool is_waiting(int fd)
{
	struct pollfd gone = { .fd = fd, .events = POLLRDHUP };

	return poll(&gone, 1, 0) == 0;
}

/* ---- the log ---- */

static void line_add(struct proxy *proxy, const struct proxy_line *line)
{
	struct arena *arena = proxy->arena;

	if (proxy->count == proxy->room) {
		size_t room = proxy->room ? proxy->room * 2 : 1024;
		struct proxy_line *more =
		    arena_array(arena, room, sizeof(*more));

		if (proxy->count)
			memcpy(
			    more, proxy->lines, proxy->count * sizeof(*more));
		proxy->lines = more;
		proxy->room = room;
	}
	proxy->lines[proxy->count++] = (struct proxy_line){
		.kind = line->kind,
		.event_type = arena_text(arena, line->event_type),
		.entity = arena_text(arena, line->entity),
		.content =
		    line->content ? arena_text(arena, line->content) : NULL,
		.reason = line->reason ? arena_text(arena, line->reason) : NULL,
	};
}

static struct proxy_line line_of(const struct json *event, enum line_kind kind)
{
	const struct json *message = json_member(event, "message");
	const char *type = json_string(json_member(event, "eventType"));
	const char *entity = json_string(json_member(event, "messageId"));

	return (struct proxy_line){
		.kind = kind,
		.event_type = type ? type : "",
		.entity = entity ? entity : "",
		.content = json_string(json_member(message, "content")),
	};
}

static void log_presented(struct pass *pass)
{
	struct proxy *proxy = pass->proxy;
	const struct json *root;
	struct err err = { 0 };

	pass->events = NULL;
	if (!json_parse(pass->arena, pass->body, &root, &err))
		return;
	pass->events = json_member(root, "events");
	pthread_mutex_lock(&proxy->lock);
	for (size_t i = 0; proxy->logs && i < json_count(pass->events); i++) {
		struct proxy_line line =
		    line_of(json_element(pass->events, i), LINE_PRESENTED);

		line_add(proxy, &line);
	}
	pthread_mutex_unlock(&proxy->lock);
}

static void log_fate(struct pass *pass, const char *id, const char *reason)
{
	for (size_t i = 0; id && i < json_count(pass->events); i++) {
		struct proxy_line line = line_of(json_element(pass->events, i),
		    reason ? LINE_REFUSED : LINE_ACCEPTED);

		if (strcmp(line.entity, id) != 0)
			continue;
		line.reason = reason;
		line_add(pass->proxy, &line);
		return;
	}
}

static void log_answer(struct pass *pass, struct bytes body)
{
	const struct json *root;
	const struct json *list;
	struct err err = { 0 };

	if (!json_parse(pass->arena, body, &root, &err))
		return;
	pthread_mutex_lock(&pass->proxy->lock);
	list = json_member(root, "accepted");
	for (size_t i = 0; pass->proxy->logs && i < json_count(list); i++)
		log_fate(pass, json_string(json_element(list, i)), NULL);
	list = json_member(root, "rejected");
	for (size_t i = 0; pass->proxy->logs && i < json_count(list); i++) {
		const struct json *line = json_element(list, i);
		const char *why = json_string(json_member(line, "reason"));

		log_fate(pass, json_string(json_member(line, "messageId")),
		    why ? why : "");
	}
	pthread_mutex_unlock(&pass->proxy->lock);
}

/* ---- a request ---- */

static enum fault fault_draw(struct proxy *proxy, bool relay, int *ms)
{
	enum fault fault = FAULT_NONE;

	pthread_mutex_lock(&proxy->lock);
	proxy->counts.requests++;
	if (relay && dice_below(&proxy->dice, 1000) < proxy->permille) {
		fault = (enum fault)dice_between(
		    &proxy->dice, FAULT_DROP, FAULT_COUNT - 1);
		proxy->counts.faults++;
	}
	*ms =
	    dice_between(&proxy->dice, 20, fault == FAULT_STALL ? 6000 : 1500);
	pthread_mutex_unlock(&proxy->lock);
	return fault;
}

static void hold(struct proxy *proxy, int ms)
{
	int64_t until = clock_steady_ms() + ms;

	while (clock_steady_ms() < until && !is_ending(proxy))
		pause_ms(TURN_MS);
}

/* Brings it to the node; the answer's bytes, or none. */
static struct bytes deliver(struct pass *pass, size_t *head)
{
	int fd = connect_behind(pass->proxy);
	struct buf answer;
	size_t len = 0;

	buf_init(&answer, pass->arena, MESSAGE_MAX);
	buf_text(&answer, "");
	if (fd >= 0 && send_all(fd, pass->request))
		len = message_read(pass->proxy, fd, &answer, head, BEHIND_MS);
	if (fd >= 0)
		close(fd);
	return (struct bytes){ answer.data, len };
}

/* False: the connection is to be closed. */
static bool pass_on(struct pass *pass, bool relay)
{
	size_t head = 0;
	size_t unused;
	struct bytes answer;
	int ms;
	enum fault fault = fault_draw(pass->proxy, relay, &ms);

	if (fault == FAULT_DROP)
		return false;
	if (fault == FAULT_DELAY || fault == FAULT_STALL)
		hold(pass->proxy, ms);
	if (fault == FAULT_STALL)
		return false;
	answer = deliver(pass, &head);
	if (fault == FAULT_TWICE)
		deliver(pass, &unused);
	if (fault == FAULT_CUT || answer.len == 0)
		return false;
	if (fault == FAULT_HALF)
		return send_all(pass->socket,
			   (struct bytes){ answer.data, answer.len / 2 }) &&
		    false;
	if (relay && is_waiting(pass->socket))
		log_answer(pass,
		    (struct bytes){
			(const char *)answer.data + head, answer.len - head });
	return send_all(pass->socket, answer);
}

static bool request_next(struct pass *pass)
{
	size_t head = 0;
	size_t len =
	    message_read(pass->proxy, pass->socket, &pass->in, &head, 0);
	bool relay;
	bool goes_on;

	if (len == 0)
		return false;
	pass->request.data = arena_textn(pass->arena, pass->in.data, len);
	pass->request.len = len;
	pass->body = (struct bytes){ (const char *)pass->request.data + head,
		len - head };
	buf_drop(&pass->in, len);
	relay = strncmp(pass->request.data, "POST /api/federation/relay ",
		    strlen("POST /api/federation/relay ")) == 0;
	if (relay)
		log_presented(pass);
	goes_on = pass_on(pass, relay);
	arena_reset(pass->arena);
	return goes_on;
}

static void *serve(void *arg)
{
	struct pass *pass = arg;
	struct proxy *proxy = pass->proxy;

	pass->arena = arena_new();
	buf_init(&pass->in, NULL, MESSAGE_MAX);
	buf_text(&pass->in, "");
	while (request_next(pass))
		continue;
	close(pass->socket);
	buf_done(&pass->in);
	arena_free(&pass->arena);
	free(pass);
	pthread_mutex_lock(&proxy->lock);
	proxy->connections--;
	pthread_mutex_unlock(&proxy->lock);
	return NULL;
}

static void *accept_all(void *arg)
{
	struct proxy *proxy = arg;

	while (readable(proxy, proxy->listener, 0)) {
		struct pass *pass = calloc(1, sizeof(*pass));
		pthread_t thread;
		int on = 1;

		assert(pass);
		pass->proxy = proxy;
		pass->socket =
		    accept4(proxy->listener, NULL, NULL, SOCK_CLOEXEC);
		setsockopt(
		    pass->socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		pthread_mutex_lock(&proxy->lock);
		proxy->connections++;
		pthread_mutex_unlock(&proxy->lock);
		if (pthread_create(&thread, NULL, serve, pass))
			abort();
		pthread_detach(thread);
	}
	return NULL;
}

/* ---- */

struct proxy *proxy_new(const char *host, int behind, uint64_t seed)
{
	struct proxy *proxy = calloc(1, sizeof(*proxy));
	struct sockaddr_in addr = { .sin_family = AF_INET };
	socklen_t len = sizeof(addr);

	assert(proxy);
	proxy->arena = arena_new();
	proxy->behind = behind;
	proxy->dice.state = seed;
	proxy->logs = true;
	pthread_mutex_init(&proxy->lock, NULL);
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	proxy->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(proxy->listener, (struct sockaddr *)&addr, len) ||
	    listen(proxy->listener, SOMAXCONN) ||
	    getsockname(proxy->listener, (struct sockaddr *)&addr, &len))
		abort();
	proxy->origin = arena_printf(
	    proxy->arena, "http://%s:%d", host, ntohs(addr.sin_port));
	if (pthread_create(&proxy->acceptor, NULL, accept_all, proxy))
		abort();
	return proxy;
}

void proxy_free(struct proxy **proxy_var)
{
	struct proxy *proxy = *proxy_var;
	int left = 1;

	if (!proxy)
		return;
	pthread_mutex_lock(&proxy->lock);
	proxy->ending = true;
	pthread_mutex_unlock(&proxy->lock);
	pthread_join(proxy->acceptor, NULL);
	close(proxy->listener);
	while (left) {
		pthread_mutex_lock(&proxy->lock);
		left = proxy->connections;
		pthread_mutex_unlock(&proxy->lock);
		pause_ms(left ? TURN_MS : 0);
	}
	pthread_mutex_destroy(&proxy->lock);
	arena_free(&proxy->arena);
	free(proxy);
	*proxy_var = NULL;
}

const char *proxy_origin(const struct proxy *proxy)
{
	return proxy->origin;
}

void proxy_set_faults(struct proxy *proxy, int permille)
{
	pthread_mutex_lock(&proxy->lock);
	proxy->permille = permille;
	pthread_mutex_unlock(&proxy->lock);
}

void proxy_set_log(struct proxy *proxy, bool on)
{
	pthread_mutex_lock(&proxy->lock);
	proxy->logs = on;
	pthread_mutex_unlock(&proxy->lock);
}

struct proxy_counts proxy_counts(struct proxy *proxy)
{
	struct proxy_counts counts;

	pthread_mutex_lock(&proxy->lock);
	counts = proxy->counts;
	pthread_mutex_unlock(&proxy->lock);
	return counts;
}

struct rows proxy_lines(struct proxy *proxy, struct arena *arena)
{
	struct rows rows = { 0 };

	pthread_mutex_lock(&proxy->lock);
	rows.count = proxy->count;
	rows.items =
	    arena_array(arena, rows.count + 1, sizeof(struct proxy_line));
	if (rows.count)
		memcpy(rows.items, proxy->lines,
		    rows.count * sizeof(struct proxy_line));
	pthread_mutex_unlock(&proxy->lock);
	return rows;
}
