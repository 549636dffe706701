#include "tests/bench/relay_sink.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"

enum { CONNECTIONS_MAX = 512, REQUEST_MAX = 12 << 20, PIECE = 1 << 16 };

struct connection {
	int socket;
	struct buf in;
};

struct relay_sink {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t done;
	int listener;
	int port;
	struct connection connections[CONNECTIONS_MAX];
	size_t count;
	int64_t expected;
	int64_t got;
	int64_t first_us;
	int64_t last_us;
};

static void count_events(struct relay_sink *sink, int64_t events)
{
	pthread_mutex_lock(&sink->lock);
	sink->last_us = clock_steady_us();
	if (sink->got == 0)
		sink->first_us = sink->last_us;
	sink->got += events;
	if (sink->got >= sink->expected)
		pthread_cond_signal(&sink->done);
	pthread_mutex_unlock(&sink->lock);
}

static void answer(struct relay_sink *sink, int fd, const char *body)
{
	static const char name[] = "\"messageId\":\"";
	struct buf out;
	struct buf head;
	int64_t events = 0;

	buf_init(&out, NULL, REQUEST_MAX);
	buf_init(&head, NULL, 1 << 10);
	buf_text(&out, "{\"accepted\":[");
	for (const char *p = body; (p = strstr(p, name)); events++) {
		p += sizeof(name) - 1;
		buf_printf(&out, "%s\"%.*s\"", events ? "," : "",
		    (int)strcspn(p, "\""), p);
	}
	buf_text(&out, "],\"rejected\":[],\"maxUploadSize\":1000}");
	buf_printf(&head,
	    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
	    "Content-Length: %zu\r\n\r\n",
	    out.len);
	count_events(sink, events);
	if (send(fd, head.data, head.len, MSG_MORE | MSG_NOSIGNAL) < 0 ||
	    send(fd, out.data, out.len, MSG_NOSIGNAL) < 0)
		perror("relay_sink");
	buf_done(&out);
	buf_done(&head);
}

/* Is a whole request there? Then it is answered and dropped. */
static bool request(struct relay_sink *sink, struct connection *conn)
{
	struct buf *in = &conn->in;
	const char *end = in->len ? strstr(in->data, "\r\n\r\n") : NULL;
	const char *length;
	size_t whole;

	if (!end)
		return false;
	length = strcasestr(in->data, "\r\ncontent-length:");
	whole = (size_t)(end - in->data) + 4 +
	    (length ? strtoul(length + 17, NULL, 10) : 0);
	if (in->len < whole)
		return false;
	answer(sink, conn->socket, end + 4);
	buf_drop(in, whole);
	return true;
}

static bool receive(struct relay_sink *sink, struct connection *conn)
{
	char piece[PIECE];
	ssize_t got = recv(conn->socket, piece, sizeof(piece), 0);

	if (got <= 0)
		return false;
	buf_add(&conn->in, piece, (size_t)got);
	while (request(sink, conn))
		;
	return true;
}

static void add(struct relay_sink *sink)
{
	int fd = accept(sink->listener, NULL, NULL);
	int on = 1;

	if (fd < 0 || sink->count == CONNECTIONS_MAX) {
		close(fd);
		return;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	sink->connections[sink->count].socket = fd;
	buf_init(&sink->connections[sink->count].in, NULL, REQUEST_MAX);
	sink->count++;
}

static void drop(struct relay_sink *sink, size_t place)
{
	struct connection *conn = &sink->connections[place];

	close(conn->socket);
	buf_done(&conn->in);
	*conn = sink->connections[--sink->count];
}

static void *serve(void *arg)
{
	struct relay_sink *sink = arg;
	struct pollfd polls[CONNECTIONS_MAX + 1];

	for (;;) {
		polls[0] = (struct pollfd){ sink->listener, POLLIN, 0 };
		for (size_t i = 0; i < sink->count; i++)
			polls[i + 1] =
			    (struct pollfd){ sink->connections[i].socket,
				    POLLIN, 0 };
		if (poll(polls, sink->count + 1, -1) < 0 ||
		    polls[0].revents & ~POLLIN)
			return NULL;
		for (size_t i = sink->count; i > 0; i--)
			if (polls[i].revents &&
			    !receive(sink, &sink->connections[i - 1]))
				drop(sink, i - 1);
		if (polls[0].revents & POLLIN)
			add(sink);
	}
}

struct relay_sink *relay_sink_new(void)
{
	struct relay_sink *sink = calloc(1, sizeof(*sink));
	struct sockaddr_in name = { .sin_family = AF_INET };
	socklen_t len = sizeof(name);

	if (!sink)
		abort();
	name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	sink->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(sink->listener, (struct sockaddr *)&name, len) != 0 ||
	    listen(sink->listener, SOMAXCONN) != 0 ||
	    getsockname(sink->listener, (struct sockaddr *)&name, &len) != 0)
		abort();
	sink->port = ntohs(name.sin_port);
	pthread_mutex_init(&sink->lock, NULL);
	pthread_cond_init(&sink->done, NULL);
	if (pthread_create(&sink->thread, NULL, serve, sink) != 0)
		abort();
	return sink;
}

void relay_sink_free(struct relay_sink **sink)
{
	shutdown((*sink)->listener, SHUT_RDWR);
	pthread_join((*sink)->thread, NULL);
	while ((*sink)->count > 0)
		drop(*sink, 0);
	close((*sink)->listener);
	free(*sink);
	*sink = NULL;
}

int relay_sink_port(const struct relay_sink *sink)
{
	return sink->port;
}

void relay_sink_reset(struct relay_sink *sink, int64_t expected)
{
	pthread_mutex_lock(&sink->lock);
	sink->got = 0;
	sink->expected = expected;
	pthread_mutex_unlock(&sink->lock);
}

double relay_sink_rate(struct relay_sink *sink)
{
	double rate;

	pthread_mutex_lock(&sink->lock);
	while (sink->got < sink->expected)
		pthread_cond_wait(&sink->done, &sink->lock);
	rate =
	    (double)sink->got * 1e6 / (double)(sink->last_us - sink->first_us);
	pthread_mutex_unlock(&sink->lock);
	return rate;
}

int64_t relay_sink_last_us(struct relay_sink *sink)
{
	int64_t last;

	pthread_mutex_lock(&sink->lock);
	while (sink->got < sink->expected)
		pthread_cond_wait(&sink->done, &sink->lock);
	last = sink->last_us;
	pthread_mutex_unlock(&sink->lock);
	return last;
}
