#include <criterion/criterion.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/client_rig.h"

struct visit {
	struct peer *peer;
	int fd;
	bool die_next; /* the next request finds nobody */
	bool close;
};

enum { HEAD_ROOM = 16384 };

struct behaviour {
	const char *path;
	void (*answer)(struct visit *visit, const char *head);
};

struct client_rig client_rig;

static void say_bytes(struct visit *visit, const char *text, size_t len)
{
	if (send(visit->fd, text, len, MSG_NOSIGNAL) != (ssize_t)len)
		visit->close = true;
}

static void say(struct visit *visit, const char *text)
{
	say_bytes(visit, text, strlen(text));
}

#define OK_HEAD "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"

static void answer_ok(struct visit *visit, const char *head UNUSED)
{
	say(visit, OK_HEAD "Content-Length: 5\r\n\r\nhello");
}

static void answer_die_next(struct visit *visit, const char *head)
{
	/* Two of them at once: each waits for the other. */
	while (strstr(head, "/die-next/pair") && visit->peer->requests < 2)
		poll(NULL, 0, 1);
	answer_ok(visit, head);
	visit->die_next = true;
}

static void answer_nothing(struct visit *visit, const char *head UNUSED)
{
	visit->close = true;
}

static void answer_cut(struct visit *visit, const char *head UNUSED)
{
	say(visit, OK_HEAD "Content-Length: 100\r\n\r\nhello");
	visit->close = true;
}

static void answer_cut_chunk(struct visit *visit, const char *head UNUSED)
{
	say(visit, OK_HEAD "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
	visit->close = true;
}

static void answer_half(struct visit *visit, const char *head UNUSED)
{
	say(visit, "HTTP/1.1 20");
	visit->close = true;
}

static void answer_half_head(struct visit *visit, const char *head UNUSED)
{
	say(visit, "HTTP/1.1 200 OK\r\nContent-Type: text/pl");
	visit->close = true;
}

static void answer_no_end(struct visit *visit, const char *head UNUSED)
{
	say(visit, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n");
	visit->close = true;
}

static void answer_old(struct visit *visit, const char *head UNUSED)
{
	say(visit, "just text");
	visit->close = true;
}

static void answer_interim_only(struct visit *visit, const char *head UNUSED)
{
	say(visit, "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n");
	visit->close = true;
}

static void answer_interim(struct visit *visit, const char *head)
{
	say(visit, "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n");
	answer_ok(visit, head);
}

static void answer_endless(struct visit *visit, const char *head UNUSED)
{
	static const char chunk[] = "400\r\n";
	char data[1026];

	memset(data, 'x', sizeof(data));
	memcpy(data + 1024, "\r\n", 2);
	say(visit, OK_HEAD "Transfer-Encoding: chunked\r\n\r\n");
	while (!visit->close) {
		say(visit, chunk);
		say_bytes(visit, data, sizeof(data));
	}
}

static void answer_endless_head(struct visit *visit, const char *head UNUSED)
{
	say(visit, OK_HEAD);
	while (!visit->close)
		say(visit,
		    "X-More: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n");
}

static void answer_slow(struct visit *visit, const char *head UNUSED)
{
	say(visit, OK_HEAD "Content-Length: 1000\r\n\r\n");
	while (!visit->close) {
		say(visit, "x");
		poll(NULL, 0, 20);
	}
}

static void answer_silent(struct visit *visit, const char *head UNUSED)
{
	char c;

	visit->close = recv(visit->fd, &c, 1, 0) <= 0;
}

static void answer_huge(struct visit *visit, const char *head UNUSED)
{
	say(visit, OK_HEAD "Content-Length: 1000000000\r\n\r\nhello");
	answer_silent(visit, head);
}

static void answer_redirect(struct visit *visit, const char *head UNUSED)
{
	say(visit,
	    "HTTP/1.1 302 Found\r\nLocation: /ok\r\n"
	    "Content-Length: 0\r\n\r\n");
}

static void answer_html(struct visit *visit, const char *head UNUSED)
{
	say(visit,
	    "HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\n"
	    "Content-Length: 6\r\n\r\n<html>");
}

static void answer_empty(struct visit *visit, const char *head UNUSED)
{
	say(visit, "HTTP/1.1 204 No Content\r\n\r\n");
}

/* "/retry/TEXT": _ stands for a space. */
static void answer_retry(struct visit *visit, const char *head)
{
	char line[256] = "HTTP/1.1 429 Slow\r\nContent-Length: 0\r\n";
	size_t len = strlen(line);
	const char *text = strstr(head, "/retry/") + 7;
	size_t value_len = strcspn(text, " ");

	len += (size_t)snprintf(line + len, sizeof(line) - len,
	    "Retry-After: %.*s\r\n\r\n", (int)value_len, text);
	for (char *c = line; *c; c++)
		if (*c == '_')
			*c = ' ';
	say_bytes(visit, line, len);
}

static void answer_echo(struct visit *visit, const char *head)
{
	char line[128];

	snprintf(line, sizeof(line), OK_HEAD "Content-Length: %zu\r\n\r\n",
	    strlen(head));
	say(visit, line);
	say(visit, head);
}

/* clang-format off */
static const struct behaviour behaviours[] = {
	{ "/ok",           answer_ok },
	{ "/die-next",     answer_die_next },
	{ "/nothing",      answer_nothing },
	{ "/cut-chunk",    answer_cut_chunk },
	{ "/cut",          answer_cut },
	{ "/half-head",    answer_half_head },
	{ "/half",         answer_half },
	{ "/no-end",       answer_no_end },
	{ "/old",          answer_old },
	{ "/interim-only", answer_interim_only },
	{ "/interim",      answer_interim },
	{ "/endless-head", answer_endless_head },
	{ "/endless",      answer_endless },
	{ "/slow",         answer_slow },
	{ "/silent",       answer_silent },
	{ "/huge",         answer_huge },
	{ "/redirect",     answer_redirect },
	{ "/html",         answer_html },
	{ "/empty",        answer_empty },
	{ "/retry/",       answer_retry },
	{ "/echo",         answer_echo },
};
/* clang-format on */

/* The head, and as much of the body as Content-Length says. */
static bool read_request(struct visit *visit, char *head)
{
	size_t len = 0;
	const char *end = NULL, *field;
	long body;

	while (!end) {
		ssize_t n = recv(visit->fd, head + len, HEAD_ROOM - 1 - len, 0);

		if (n > 0 && visit->die_next)
			visit->peer->deaths++;
		if (n <= 0 || visit->die_next)
			return false;
		len += (size_t)n;
		head[len] = '\0';
		end = strstr(head, "\r\n\r\n");
	}
	field = strcasestr(head, "content-length:");
	body = field ? strtol(field + 15, NULL, 10) : 0;
	body -= (long)(len - (size_t)(end + 4 - head));
	while (body > 0) {
		char part[4096];
		ssize_t n = recv(visit->fd, part, sizeof(part), 0);

		if (n <= 0)
			return false;
		body -= n;
	}
	visit->peer->requests++;
	return true;
}

static void *serve(void *arg)
{
	struct visit *visit = arg;
	char head[HEAD_ROOM];

	while (!visit->close && read_request(visit, head)) {
		const char *path = strchr(head, ' ') + 1;

		for (size_t i = 0; i < COUNT(behaviours); i++) {
			const struct behaviour *b = &behaviours[i];

			if (strncmp(path, b->path, strlen(b->path)) == 0) {
				b->answer(visit, head);
				break;
			}
		}
	}
	close(visit->fd);
	free(visit);
	return NULL;
}

static void *accept_all(void *arg)
{
	struct peer *p = arg;
	pthread_t thread;

	for (;;) {
		struct visit *visit = calloc(1, sizeof(*visit));

		visit->peer = p;
		visit->fd = accept(p->fd, NULL, NULL);
		p->connections++;
		pthread_create(&thread, NULL, serve, visit);
		pthread_detach(thread);
	}
	return NULL;
}

static void peer_start(struct peer *peer)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(addr);
	pthread_t thread;

	peer->fd = socket(AF_INET, SOCK_STREAM, 0);
	cr_assert_eq(bind(peer->fd, (struct sockaddr *)&addr, len), 0);
	cr_assert_eq(listen(peer->fd, 64), 0);
	getsockname(peer->fd, (struct sockaddr *)&addr, &len);
	peer->port = ntohs(addr.sin_port);
	pthread_create(&thread, NULL, accept_all, peer);
	pthread_detach(thread);
}

const struct client_def client_rig_def = {
	.allow_private_addresses = true,
	.user_agent = "postrider-test/1",
	.connections_per_host_max = 8,
};

void client_rig_begin(void)
{
	peer_start(&client_rig.peer);
	client_rig.loop = loop_new();
	client_rig.client = client_new(client_rig.loop, &client_rig_def);
}

void client_rig_end(void)
{
	client_free(&client_rig.client);
	cr_expect_null(client_rig.client);
	loop_free(&client_rig.loop);
}

void client_rig_done(void *arg, const struct client_result *result)
{
	struct client_got *got = arg;
	size_t len = result->body.len;

	got->calls++;
	got->result = *result;
	len = len < sizeof(got->body) - 1 ? len : sizeof(got->body) - 1;
	if (len)
		memcpy(got->body, result->body.data, len);
	got->body[len] = '\0';
	snprintf(got->type, sizeof(got->type), "%s",
	    result->content_type ? result->content_type : "");
	snprintf(got->location, sizeof(got->location), "%s",
	    result->location ? result->location : "");
	cr_expect_not_null(result->text);
	loop_stop(client_rig.loop);
}

const char *client_rig_url(const char *path)
{
	static char url[512];

	snprintf(url, sizeof(url), "http://127.0.0.1:%d%s",
	    client_rig.peer.port, path);
	return url;
}

struct client_request client_rig_get(const char *url)
{
	return (struct client_request){ .method = "GET",
		.url = url,
		.timeout_ms = 5000,
		.answer_max = 65536 };
}

void client_rig_run(
    const struct client_request *request, struct client_got *got)
{
	size_t others = client_in_flight(client_rig.client);

	*got = (struct client_got){ 0 };
	client_send(client_rig.client, request, client_rig_done, got);
	cr_expect_eq(got->calls, 0, "done is never called within client_send");
	cr_expect_eq(client_in_flight(client_rig.client), others + 1);
	loop_run(client_rig.loop);
	cr_expect_eq(got->calls, 1);
	cr_expect_eq(client_in_flight(client_rig.client), others);
}

void client_rig_fetch(const char *path, struct client_got *got)
{
	struct client_request request = client_rig_get(client_rig_url(path));

	client_rig_run(&request, got);
}
