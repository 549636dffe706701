#include "tests/unit/http_site.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"

enum { PATIENCE_MS = 30000 };

/* ---- the server's side ---- */

static void reply_text(struct http_exchange *ex, int status, const char *text)
{
	struct http_reply reply = {
		.status = status,
		.content_type = "text/plain",
		.body = { text, strlen(text) },
	};

	http_reply(ex, &reply);
}

static const char *sum_text(struct http_exchange *ex)
{
	struct bytes body = http_body(ex);
	const unsigned char *data = body.data;
	uint64_t sum = 0;

	for (size_t i = 0; i < body.len; i++)
		sum += data[i];
	return arena_printf(http_arena(ex), "%zu %" PRIu64, body.len, sum);
}

static void sum_reply(struct site *site, struct http_exchange *ex)
{
	const char *text = sum_text(ex);

	atomic_store(&site->memory_max, memory_own());
	reply_text(ex, 200, text);
}

static void later_run(void *item, void *state UNUSED)
{
	struct http_exchange *ex = item;

	http_set_user(ex, (void *)(uintptr_t)sum_text(ex));
}

static void later_done(void *item)
{
	struct http_exchange *ex = item;

	reply_text(ex, 200, http_user(ex));
}

static void big_reply(struct http_exchange *ex)
{
	char *data = malloc(BIG);
	struct http_reply reply = { .status = 200, .body = { data, BIG } };

	memset(data, 'b', BIG);
	http_reply(ex, &reply);
	free(data);
}

static void close_reply(struct http_exchange *ex)
{
	struct http_reply reply = { .status = 200, .close = true };

	http_reply(ex, &reply);
}

static void echo_reply(struct http_exchange *ex)
{
	struct http_reply reply = { .status = 200, .body = http_body(ex) };

	http_reply(ex, &reply);
}

static void wild_reply(struct http_exchange *ex)
{
	struct http_header header = { "X-Wild", "a\r\nX-Forged: b" };
	struct http_reply reply = { .status = 204,
		.headers = &header,
		.header_count = 1,
		.body = { "no", 2 } };

	http_reply(ex, &reply);
}

static void on_request(struct http_exchange *ex, void *arg)
{
	struct site *site = arg;
	const struct http_head *head = http_head(ex);
	const char *path = head->path;

	atomic_fetch_add(&site->requests, 1);
	if (site->echo || strcmp(path, "/echo") == 0)
		echo_reply(ex);
	else if (strcmp(path, "/sum") == 0)
		sum_reply(site, ex);
	else if (strcmp(path, "/big") == 0)
		big_reply(ex);
	else if (strcmp(path, "/close") == 0)
		close_reply(ex);
	else if (strcmp(path, "/wild") == 0)
		wild_reply(ex);
	else if (strcmp(path, "/park") == 0)
		site->parked[atomic_fetch_add(&site->parked_count, 1)] = ex;
	else if (strcmp(path, "/later") != 0)
		reply_text(ex, 200,
		    arena_printf(http_arena(ex), "%s %s?%s from %s",
			head->method, path, head->query, http_client(ex)));
	else if (!work_submit(site->pool, later_run, later_done, ex))
		reply_text(ex, 503, "full");
}

static int64_t on_head(
    struct http_exchange *ex, struct http_reply *reply, void *arg UNUSED)
{
	const struct http_head *head = http_head(ex);
	const char *limit =
	    http_query_get(http_arena(ex), head->query, "limit");

	if (strcmp(head->path, "/denied") == 0) {
		reply->status = 403;
		reply->body = (struct bytes){ "denied", 6 };
		return -1;
	}
	return limit != NULL ? strtoll(limit, NULL, 10) : 1000;
}

static void on_error(
    struct arena *arena, int status, struct http_reply *reply, void *arg UNUSED)
{
	const char *text = arena_printf(arena, "{\"error\":%d}", status);

	reply->body = (struct bytes){ text, strlen(text) };
}

static void *serve(void *arg)
{
	struct site *site = arg;

	loop_run(site->loop);
	return NULL;
}

void site_init(struct site *site)
{
	*site = (struct site){ .limits = http_limits_default };
	site->def = (struct http_server_def){
		.on_head = on_head,
		.on_request = on_request,
		.on_error = on_error,
		.arg = site,
	};
}

void site_open(struct site *site, const char *address)
{
	struct work_def work = { .threads = 2, .queue_max = 1000 };
	struct err err = { .code = ERR_NONE };

	site->loop = loop_new();
	site->pool = work_pool_new(site->loop, &work);
	site->def.limits = &site->limits;
	site->server = http_server_new(site->loop, &site->def, &err);
	cr_assert_not_null(site->server, "%s", err.text);
	cr_assert(
	    http_server_listen(site->server, address, &err), "%s", err.text);
	site->port = http_server_port(site->server);
	pthread_create(&site->thread, NULL, serve, site);
}

static void stop(void *arg)
{
	struct site *site = arg;

	work_pool_free(&site->pool);
	http_server_free(&site->server);
	loop_stop(site->loop);
}

void site_close(struct site *site)
{
	loop_call(site->loop, stop, site);
	pthread_join(site->thread, NULL);
	loop_free(&site->loop);
}

/* Runs call(site) on the loop and waits for its end. */
static void ask(struct site *site, void (*call)(void *arg))
{
	atomic_store(&site->ask_done, false);
	loop_call(site->loop, call, site);
	while (!atomic_load(&site->ask_done))
		usleep(100);
}

static void release(void *arg)
{
	struct site *site = arg;
	int count = atomic_exchange(&site->parked_count, 0);

	for (int i = 0; i < count; i++)
		reply_text(site->parked[i], 200, "released");
	atomic_store(&site->ask_done, true);
}

void site_release(struct site *site)
{
	ask(site, release);
}

static void drain(void *arg)
{
	struct site *site = arg;

	http_server_drain(site->server);
	atomic_store(&site->ask_done, true);
}

void site_drain(struct site *site)
{
	ask(site, drain);
}

static void count_busy(void *arg)
{
	struct site *site = arg;

	atomic_store(&site->requests, (int)http_server_busy(site->server));
	atomic_store(&site->ask_done, true);
}

size_t site_busy(struct site *site)
{
	int requests = atomic_load(&site->requests);
	size_t busy;

	ask(site, count_busy);
	busy = (size_t)atomic_load(&site->requests);
	atomic_store(&site->requests, requests);
	return busy;
}

void site_await_parked(struct site *site, int count)
{
	int64_t end = clock_steady_ms() + PATIENCE_MS;

	while (atomic_load(&site->parked_count) < count) {
		cr_assert_lt(clock_steady_ms(), end, "nothing was parked");
		usleep(1000);
	}
}

long memory_own(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	long size = 0, resident = 0, shared = 0;

	cr_assert_not_null(file);
	cr_assert_eq(fscanf(file, "%ld %ld %ld", &size, &resident, &shared), 3);
	fclose(file);
	return (resident - shared) * sysconf(_SC_PAGESIZE);
}

/* ---- the client's side ---- */

int wire_connect(int port)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	cr_assert_geq(fd, 0);
	cr_assert_eq(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

void wire_send(int fd, const void *data, size_t len)
{
	const char *bytes = data;

	while (len > 0) {
		ssize_t done = send(fd, bytes, len, MSG_NOSIGNAL);

		if (done <= 0)
			return; /* the answer tells why */
		bytes += done;
		len -= (size_t)done;
	}
}

void wire_text(int fd, const char *text)
{
	wire_send(fd, text, strlen(text));
}

static ssize_t wire_read(int fd, void *data, size_t room)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

	cr_assert_eq(poll(&poll_fd, 1, PATIENCE_MS), 1, "nothing came");
	return recv(fd, data, room, 0);
}

static bool read_head(int fd, struct answer *answer)
{
	size_t len = 0;

	while (len < 4 || memcmp(answer->head + len - 4, "\r\n\r\n", 4) != 0) {
		cr_assert_lt(len, sizeof(answer->head) - 1);
		if (wire_read(fd, answer->head + len, 1) <= 0)
			return false;
		answer->head[++len] = '\0';
	}
	return true;
}

bool wire_answer(int fd, struct answer *answer, bool head_only)
{
	const char *length;
	size_t len = 0;

	*answer = (struct answer){ .status = 0 };
	if (!read_head(fd, answer))
		return false;
	cr_assert_eq(
	    strncmp(answer->head, "HTTP/1.1 ", 9), 0, "%s", answer->head);
	answer->status = (int)strtol(answer->head + 9, NULL, 10);
	length = strstr(answer->head, "Content-Length: ");
	if (length != NULL && !head_only)
		len = strtoul(length + 16, NULL, 10);
	answer->body = malloc(len + 1);
	while (answer->body_len < len) {
		ssize_t done = wire_read(fd, answer->body + answer->body_len,
		    len - answer->body_len);

		cr_assert_gt(done, 0, "the body was cut");
		answer->body_len += (size_t)done;
	}
	answer->body[len] = '\0';
	return true;
}

bool wire_ended(int fd)
{
	char byte;

	return wire_read(fd, &byte, 1) <= 0;
}

bool wire_silent(int fd, int ms)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

	return poll(&poll_fd, 1, ms) == 0;
}

void answer_done(struct answer *answer)
{
	free(answer->body);
	answer->body = NULL;
}

void wire_expect(int fd, const char *text, int status)
{
	struct answer answer;

	wire_text(fd, text);
	cr_assert(wire_answer(fd, &answer, false), "no answer");
	cr_assert_eq(
	    answer.status, status, "%d instead of %d", answer.status, status);
	answer_done(&answer);
}
