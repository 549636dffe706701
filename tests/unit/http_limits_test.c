/*
 * What a slow, greedy or hostile client can take from the HTTP server.
 */
#include <criterion/criterion.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "tests/unit/http_site.h"

#define HOST "Host: localhost\r\n"
#define GET(path) "GET " path " HTTP/1.1\r\n" HOST "\r\n"

static struct site site;

static void begin(void)
{
	site_init(&site);
	site.limits = (struct http_limits){
		.head_deadline_ms = 10000,
		.idle_deadline_ms = 60000,
		.body_deadline_ms = 30000,
		.body_rate_bytes = 100,
		.write_deadline_ms = 20000,
		.spool_above_bytes = 1000,
		.connections_max = 100,
		.connections_per_address_max = 50,
		.requests_per_connection_max = 5,
	};
}

static void end(void)
{
	site_close(&site);
}

TestSuite(http_limits, .init = begin, .fini = end, .timeout = 300);

/* A connection on which the server has seen text after a whole request. */
static int connect_and_begin(const char *text)
{
	int fd = wire_connect(site.port);
	char both[512];

	snprintf(both, sizeof(both), "%s%s", GET("/x"), text);
	wire_expect(fd, both, 200);
	site_busy(&site); /* its turn of the loop is over */
	return fd;
}

Test(http_limits, a_slow_head_is_cut_at_its_total_deadline)
{
	int fd;

	site_open(&site, "127.0.0.1:0");
	fd = connect_and_begin("GET / HT");
	for (int i = 0; i < 4; i++) {
		clock_shift_ms(1500);
		wire_text(fd, "T");
		cr_expect(wire_silent(fd, 150), "cut after %d ms", i * 1500);
	}
	clock_shift_ms(4100);
	wire_expect(fd, "", 408);
	cr_expect(wire_ended(fd));
	close(fd);
}

Test(http_limits, a_connection_without_a_byte_is_closed_silently)
{
	int fd;

	site_open(&site, "127.0.0.1:0");
	fd = wire_connect(site.port);
	connect_and_begin("");
	clock_shift_ms(6000);
	cr_expect(wire_silent(fd, 150));
	clock_shift_ms(4100);
	cr_expect(wire_ended(fd));
	close(fd);
}

Test(http_limits, an_idle_connection_is_closed_later)
{
	int fd;

	site_open(&site, "127.0.0.1:0");
	fd = connect_and_begin("");
	clock_shift_ms(50000);
	cr_expect(wire_silent(fd, 150));
	clock_shift_ms(10100);
	cr_expect(wire_ended(fd));
	close(fd);
}

/* 30 s for the body and a second more for every 100 bytes that came. */
Test(http_limits, a_body_below_the_minimum_rate_is_cut)
{
	static const char begin_body[] =
	    "POST /echo HTTP/1.1\r\n" HOST
	    "Expect: 100-continue\r\nContent-Length: 1000\r\n\r\n";
	static char data[500];
	int fd;

	site_open(&site, "127.0.0.1:0");
	memset(data, 'a', sizeof(data));
	fd = wire_connect(site.port);
	wire_expect(fd, begin_body, 100);
	site_busy(&site);
	for (int i = 0; i < 3; i++) {
		clock_shift_ms(10000);
		wire_send(fd, data, 100);
		cr_expect(wire_silent(fd, 150), "cut after %d s", i * 10);
	}
	clock_shift_ms(3100);
	wire_expect(fd, "", 408);
	cr_expect(wire_ended(fd));
	close(fd);
}

Test(http_limits, who_does_not_read_is_cut)
{
	int fd;
	char byte;

	site_open(&site, "127.0.0.1:0");
	fd = wire_connect(site.port);
	wire_text(fd, GET("/big"));
	cr_assert_eq(recv(fd, &byte, 1, 0), 1);
	cr_expect_eq(site_busy(&site), 1);
	clock_shift_ms(20100);
	while (site_busy(&site) > 0)
		usleep(1000);
	wire_expect(wire_connect(site.port), GET("/x"), 200);
	close(fd);
}

Test(http_limits, others_are_served_while_many_are_slow)
{
	int64_t began;

	site_open(&site, "127.0.0.1:0");
	for (int i = 0; i < 45; i++)
		connect_and_begin("GET / HTTP/1.1\r\nX: ");
	began = clock_steady_ms();
	wire_expect(wire_connect(site.port), GET("/x"), 200);
	cr_expect_lt(clock_steady_ms() - began, 1000);
}

Test(http_limits, a_connection_serves_so_many_requests)
{
	struct answer answer;
	int fd;

	site_open(&site, "127.0.0.1:0");
	fd = wire_connect(site.port);
	for (int i = 0; i < 5; i++) {
		wire_text(fd, GET("/x"));
		cr_assert(wire_answer(fd, &answer, false));
		cr_expect_eq(
		    strstr(answer.head, "Connection: close") != NULL, i == 4);
		answer_done(&answer);
	}
	cr_expect(wire_ended(fd));
	close(fd);
}

static bool is_served(void)
{
	int fd = wire_connect(site.port);
	struct answer answer;
	bool served;

	wire_text(fd, GET("/x"));
	served = wire_answer(fd, &answer, false) && answer.status == 200;
	answer_done(&answer);
	close(fd);
	return served;
}

Test(http_limits, one_address_has_so_many_connections)
{
	int fds[50];
	int more;

	site_open(&site, "127.0.0.1:0");
	for (int i = 0; i < 50; i++)
		fds[i] = connect_and_begin("");
	more = wire_connect(site.port);
	wire_expect(more, "", 429);
	cr_expect(wire_ended(more));
	close(more);
	wire_expect(fds[0], GET("/x"), 200);
	close(fds[1]);
	while (!is_served())
		;
}

Test(http_limits, a_trusted_proxy_has_as_many_as_it_wants)
{
	site.def.trusted_proxies = "10.0.0.0/8, 127.0.0.1";
	site_open(&site, "127.0.0.1:0");
	for (int i = 0; i < 60; i++)
		connect_and_begin("");
}

Test(http_limits, when_full_the_longest_idle_makes_room)
{
	int idle, first;

	site.limits.connections_max = 3;
	site_open(&site, "127.0.0.1:0");
	first = wire_connect(site.port);
	wire_text(first, GET("/park"));
	site_await_parked(&site, 1);
	idle = connect_and_begin("");
	connect_and_begin("");
	wire_expect(wire_connect(site.port), GET("/x"), 200);
	cr_expect(wire_ended(idle));
	site_release(&site);
	wire_expect(first, "", 200);
}

Test(http_limits, when_full_of_work_the_next_is_told_so)
{
	int fd;

	site.limits.connections_max = 3;
	site_open(&site, "127.0.0.1:0");
	for (int i = 0; i < 3; i++)
		wire_text(wire_connect(site.port), GET("/park"));
	site_await_parked(&site, 3);
	fd = wire_connect(site.port);
	wire_expect(fd, "", 503);
	cr_expect(wire_ended(fd));
	site_release(&site);
	wire_expect(wire_connect(site.port), GET("/x"), 200);
}

/* ---- whose request it is ---- */

Test(http_limits, forwarded_addresses_count_only_from_trusted_proxies)
{
	static const struct {
		const char *trusted, *headers, *client;
	} rows[] = {
		{ NULL, "X-Forwarded-For: 9.9.9.9\r\n", "127.0.0.1" },
		{ "10.0.0.1", "X-Forwarded-For: 9.9.9.9\r\n", "127.0.0.1" },
		{ "127.0.0.1", "", "127.0.0.1" },
		{ "127.0.0.1", "X-Forwarded-For: 1.2.3.4, 9.9.9.9\r\n",
		    "9.9.9.9" },
		{ "127.0.0.1",
		    "X-Forwarded-For: 1.2.3.4\r\nX-Forwarded-For: 9.9.9.9\r\n",
		    "9.9.9.9" },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct answer answer;
		int fd;

		site.def.trusted_proxies = rows[i].trusted;
		site_open(&site, "127.0.0.1:0");
		fd = wire_connect(site.port);
		wire_text(fd, "GET / HTTP/1.1\r\n" HOST);
		wire_text(fd, rows[i].headers);
		wire_text(fd, "\r\n");
		cr_assert(wire_answer(fd, &answer, false));
		cr_expect_str_eq(strstr(answer.body, "from ") + 5,
		    rows[i].client, "row %zu", i);
		answer_done(&answer);
		close(fd);
		if (i + 1 < COUNT(rows))
			site_close(&site);
	}
}

/* ---- out of descriptors ---- */

static int64_t cpu_ms(void)
{
	struct timespec used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return used.tv_sec * 1000 + used.tv_nsec / 1000000;
}

static void descriptors_leave(int more)
{
	struct rlimit limit;
	int next = dup(0);

	close(next);
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = (rlim_t)(next + more);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static int lines_in(int fd)
{
	char text[4096];
	ssize_t len = pread(fd, text, sizeof(text), 0);
	int lines = 0;

	for (ssize_t i = 0; i < len; i++)
		lines += text[i] == '\n';
	return lines;
}

Test(http_limits, without_descriptors_accepting_rests_and_resumes)
{
	enum { WAITING = 8 };
	char path[] = "/tmp/http_limits_XXXXXX";
	int log = mkstemp(path);
	int fds[WAITING];
	int served;
	int64_t cpu;

	unlink(path);
	log_output_set(log);
	site_open(&site, "127.0.0.1:0");
	served = connect_and_begin("");
	for (int i = 0; i < WAITING; i++)
		fds[i] = dup(0);
	descriptors_leave(2);
	for (int i = 0; i < WAITING; i++) {
		close(fds[i]);
		fds[i] = wire_connect(site.port);
		wire_text(fds[i], GET("/x"));
	}
	cpu = cpu_ms();
	cr_expect(wire_silent(fds[WAITING - 1], 400));
	cr_expect_lt(cpu_ms() - cpu, 100, "the listener spins");
	wire_expect(served, GET("/x"), 200);
	cr_expect_eq(lines_in(log), 1);
	for (int i = 0; i < WAITING; i++) {
		wire_expect(fds[i], "", 200);
		close(fds[i]);
	}
	cr_expect_eq(lines_in(log), 1);
	log_output_set(2);
}
