/*
 * The HTTP server over real loopback sockets: order, keeping, bodies.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/unit/http_site.h"

#define HOST "Host: localhost\r\n"
#define GET(path) "GET " path " HTTP/1.1\r\n" HOST "\r\n"
#define POST(path) "POST " path " HTTP/1.1\r\n" HOST

static struct site site;

static void begin(void)
{
	site_init(&site);
	site_open(&site, "127.0.0.1:0");
}

static void end(void)
{
	site_close(&site);
}

TestSuite(http, .init = begin, .fini = end, .timeout = 300);

static void expect_body(int fd, const char *body)
{
	struct answer answer;

	cr_assert(wire_answer(fd, &answer, false));
	cr_expect_eq(answer.status, 200);
	cr_expect_str_eq(answer.body, body);
	answer_done(&answer);
}

Test(http, pipelined_requests_are_answered_in_order)
{
	int fd = wire_connect(site.port);

	wire_text(fd,
	    GET("/park") GET("/b?x=1")
		POST("/echo") "Content-Length: 3\r\n\r\nabc" GET("/later")
		    GET("/e"));
	site_await_parked(&site, 1);
	cr_expect(wire_silent(fd, 50), "a later answer overtook");
	cr_expect_eq(atomic_load(&site.requests), 1);
	site_release(&site);
	expect_body(fd, "released");
	expect_body(fd, "GET /b?x=1 from 127.0.0.1");
	expect_body(fd, "abc");
	expect_body(fd, "0 0");
	expect_body(fd, "GET /e? from 127.0.0.1");
	close(fd);
}

Test(http, requests_cut_anywhere_are_put_together)
{
	static const char text[] = POST(
	    "/echo") "Transfer-Encoding: "
		     "chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n"
		     "0\r\nX: y\r\n\r\n" POST(
			 "/echo") "Content-Length: 4\r\n\r\nfghi" GET("/later");
	int fd = wire_connect(site.port);

	for (size_t step = 1; step < 12; step += 5) {
		for (size_t at = 0; at < sizeof(text) - 1; at += step) {
			size_t left = sizeof(text) - 1 - at;

			wire_send(fd, text + at, left < step ? left : step);
		}
		expect_body(fd, "abcde");
		expect_body(fd, "fghi");
		expect_body(fd, "0 0");
	}
	close(fd);
}

Test(http, connection_is_kept_as_version_and_client_ask)
{
	static const struct {
		const char *request, *header;
		bool kept;
	} rows[] = {
		{ GET("/a"), NULL, true },
		{ "GET / HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n",
		    "Connection: close\r\n", false },
		{ "GET / HTTP/1.0\r\n\r\n", "Connection: close\r\n", false },
		{ "GET / HTTP/1.0\r\n\r\n" GET("/ignored"),
		    "Connection: close\r\n", false },
		{ "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
		    "Connection: keep-alive\r\n", true },
		{ GET("/close"), "Connection: close\r\n", false },
		{ GET("/denied"), NULL, true },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		int fd = wire_connect(site.port);
		struct answer answer;

		wire_text(fd, rows[i].request);
		cr_assert(wire_answer(fd, &answer, false));
		if (rows[i].header != NULL)
			cr_expect_not_null(
			    strstr(answer.head, rows[i].header), "row %zu", i);
		else
			cr_expect_null(
			    strstr(answer.head, "Connection"), "row %zu", i);
		cr_expect_not_null(strstr(answer.head, "\r\nDate: "));
		answer_done(&answer);
		if (rows[i].kept)
			wire_expect(fd, GET("/again"), 200);
		else
			cr_expect(wire_ended(fd), "row %zu", i);
		close(fd);
	}
}

Test(http, head_has_the_length_but_no_body)
{
	int fd = wire_connect(site.port);
	struct answer answer;

	wire_text(fd, "HEAD /x HTTP/1.1\r\n" HOST "\r\n");
	cr_assert(wire_answer(fd, &answer, true));
	cr_expect_not_null(strstr(answer.head, "Content-Length: 23\r\n"));
	answer_done(&answer);
	wire_expect(fd, GET("/x"), 200);
	close(fd);
}

Test(http, an_answer_without_content_has_none_and_headers_stay_lines)
{
	int fd = wire_connect(site.port);
	struct answer answer;

	wire_text(fd, GET("/wild"));
	cr_assert(wire_answer(fd, &answer, false));
	cr_expect_eq(answer.status, 204);
	cr_expect_null(strstr(answer.head, "Content-"));
	cr_expect_not_null(strstr(answer.head, "X-Wild: a  X-Forged: b\r\n"));
	answer_done(&answer);
	wire_expect(fd, GET("/x"), 200);
	close(fd);
}

/* A request, and whether its answer must come without its body. */
Test(http, errors_are_answered_and_the_connection_closed)
{
	static const struct {
		const char *request;
		int status;
	} rows[] = {
		{ "nonsense\r\n\r\n", 400 },
		{ "GET / HTTP/1.1\r\n\r\n", 400 },
		{ "BREW / HTTP/1.1\r\n" HOST "\r\n", 501 },
		{ POST("/echo") "Content-Length: 1001\r\n\r\n", 413 },
		{ POST("/echo?limit=0") "Content-Length: 1\r\n\r\n", 413 },
		{ POST("/echo?limit=2") "Transfer-Encoding: chunked\r\n\r\n"
					"1\r\na\r\n2\r\n",
		    0 },
		{ POST("/echo?limit=2") "Transfer-Encoding: chunked\r\n\r\n"
					"1\r\na\r\n2\r\nb",
		    0 },
		{ POST("/echo?limit=2") "Transfer-Encoding: chunked\r\n\r\n"
					"1\r\na\r\n2\r\nbc",
		    413 },
		{ POST("/echo") "Transfer-Encoding: chunked\r\n\r\nx", 400 },
		{ POST("/echo") "Content-Encoding: gzip\r\n"
				"Content-Length: 9\r\n\r\n",
		    415 },
		{ POST("/denied") "Content-Length: 1001\r\n\r\n", 403 },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		int fd = wire_connect(site.port);
		struct answer answer;

		wire_text(fd, rows[i].request);
		if (rows[i].status == 0) {
			cr_expect(wire_silent(fd, 20), "row %zu", i);
			close(fd);
			continue;
		}
		cr_assert(wire_answer(fd, &answer, false), "row %zu", i);
		cr_expect_eq(answer.status, rows[i].status, "row %zu: %d", i,
		    answer.status);
		cr_expect_gt(answer.body_len, 0);
		answer_done(&answer);
		cr_expect(wire_ended(fd), "row %zu", i);
		close(fd);
	}
	cr_expect_eq(atomic_load(&site.requests), 0);
}

Test(http, a_hidden_request_in_a_refused_body_is_never_served)
{
	int fd = wire_connect(site.port);

	wire_expect(fd,
	    POST("/echo") "Transfer-Encoding: gzip, chunked\r\n"
			  "Content-Length: 4\r\n\r\n" GET("/smuggled"),
	    400);
	cr_expect(wire_ended(fd));
	cr_expect_eq(atomic_load(&site.requests), 0);
	close(fd);
}

Test(http, who_sends_too_much_can_still_read_the_answer)
{
	static char data[65536];
	int fd = wire_connect(site.port);

	wire_text(fd, POST("/echo") "Content-Length: 8000000\r\n\r\n");
	for (int i = 0; i < 8000000 / 65536; i++)
		wire_send(fd, data, sizeof(data));
	wire_expect(fd, "", 413);
	close(fd);
}

Test(http, expectation_is_met_before_the_body)
{
	static const struct {
		const char *request;
		int status;
	} rows[] = {
		{ POST("/echo") "Expect: 100-continue\r\n"
				"Content-Length: 3\r\n\r\n",
		    100 },
		{ POST("/echo") "Expect: 100-continue\r\n"
				"Content-Length: 3000\r\n\r\n",
		    413 },
		{ POST("/denied") "Expect: 100-continue\r\n"
				  "Content-Length: 3\r\n\r\n",
		    403 },
		{ POST("/echo") "Expect: the-unexpected\r\n"
				"Content-Length: 3\r\n\r\n",
		    417 },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		int fd = wire_connect(site.port);

		wire_expect(fd, rows[i].request, rows[i].status);
		if (rows[i].status == 100) {
			wire_text(fd, "abc");
			expect_body(fd, "abc");
		} else {
			cr_expect(wire_ended(fd), "row %zu", i);
		}
		close(fd);
	}
}

Test(http, a_body_sent_with_its_expectation_gets_one_answer)
{
	int fd = wire_connect(site.port);

	wire_text(fd,
	    POST("/echo") "Expect: 100-continue\r\n"
			  "Content-Length: 3\r\n\r\nabc");
	expect_body(fd, "abc");
	close(fd);
}

/* Sends size bytes of 'a' in all, framed or not. */
static void send_large(int fd, size_t size, bool chunked)
{
	enum { PIECE = 50000 };
	static char data[8 + PIECE + 2];

	memcpy(data, "00c350\r\n", 8);
	memset(data + 8, 'a', PIECE);
	memcpy(data + 8 + PIECE, "\r\n", 2);
	for (size_t sent = 0; sent < size; sent += PIECE)
		if (chunked)
			wire_send(fd, data, sizeof(data));
		else
			wire_send(fd, data + 8, PIECE);
	if (chunked)
		wire_text(fd, "0\r\n\r\n");
}

Test(http, a_body_of_100_MB_passes_without_being_held_in_memory)
{
	static const char *const framing[] = {
		"Content-Length: 100000000\r\n\r\n",
		"Transfer-Encoding: chunked\r\n\r\n",
	};
	int fd = wire_connect(site.port);
	long before;

	wire_text(
	    fd, POST("/sum?limit=1000000") "Content-Length: 300000\r\n\r\n");
	send_large(fd, 300000, false);
	expect_body(fd, "300000 29100000");
	before = memory_own();
	for (size_t i = 0; i < COUNT(framing); i++) {
		wire_text(fd, POST("/sum?limit=100000000"));
		wire_text(fd, framing[i]);
		send_large(fd, 100000000, i == 1);
		expect_body(fd, "100000000 9700000000");
		/* Pages that the kernel or a sanitizer keeps are no body. */
		cr_expect_lt(atomic_load(&site.memory_max) - before, 30000000,
		    "%ld", atomic_load(&site.memory_max) - before);
	}
	close(fd);
}

Test(http, a_large_answer_reaches_a_slow_reader_whole)
{
	int fd = wire_connect(site.port);
	struct answer answer;

	wire_text(fd, GET("/big") GET("/after"));
	cr_expect_not(wire_silent(fd, 1000));
	wire_expect(wire_connect(site.port), GET("/other"), 200);
	cr_assert(wire_answer(fd, &answer, false));
	cr_expect_eq(answer.body_len, BIG);
	cr_expect_eq(strspn(answer.body, "b"), BIG);
	answer_done(&answer);
	expect_body(fd, "GET /after? from 127.0.0.1");
	close(fd);
}

static void vanish(int fd)
{
	struct linger reset = { .l_onoff = 1, .l_linger = 0 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	close(fd);
}

Test(http, an_answer_for_a_client_that_is_gone_is_dropped)
{
	static const char *const requests[] = { "", "GE", GET("/park"),
		GET("/park") "GET /",
		POST("/echo") "Content-Length: 9\r\n\r\nab", GET("/big") };

	for (size_t i = 0; i < COUNT(requests); i++) {
		int polite = wire_connect(site.port);
		int rude = wire_connect(site.port);

		wire_text(polite, requests[i]);
		wire_text(rude, requests[i]);
		if (strstr(requests[i], "/park"))
			site_await_parked(&site, 2);
		close(polite);
		vanish(rude);
		site_release(&site);
	}
	wire_expect(wire_connect(site.port), GET("/x"), 200);
}

/* Many at once, most of whom hang up at some point of their request. */
Test(http, workers_and_hang_ups_do_not_meet)
{
	static const char text[] =
	    POST("/later") "Content-Length: 5\r\n\r\nabcde" GET("/later")
		POST("/later") "Content-Length: 1\r\n\r\nz";
	enum { CLIENTS = 16, ROUNDS = 100 };
	int fds[CLIENTS];

	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < CLIENTS; i++) {
			size_t len = (size_t)(round * 37 + i * 53);

			fds[i] = wire_connect(site.port);
			wire_send(fds[i], text, 1 + len % (sizeof(text) - 1));
		}
		for (int i = 0; i < CLIENTS; i++)
			if (i % 2 == 0)
				vanish(fds[i]);
			else
				close(fds[i]);
	}
	wire_expect(wire_connect(site.port), GET("/later"), 200);
}

Test(http, a_client_that_only_closed_its_side_gets_its_answer)
{
	int fd = wire_connect(site.port);

	wire_text(fd, GET("/park"));
	site_await_parked(&site, 1);
	shutdown(fd, SHUT_WR);
	site_release(&site);
	expect_body(fd, "released");
	cr_expect(wire_ended(fd));
	close(fd);
}

Test(http, drain_finishes_what_has_begun_and_takes_nothing_new)
{
	int idle = wire_connect(site.port);
	int half = wire_connect(site.port);
	int parked = wire_connect(site.port);
	struct answer answer;

	wire_expect(idle, GET("/x"), 200);
	wire_expect(half, GET("/x"), 200);
	wire_text(half, "GET / HT");
	wire_text(parked, GET("/park") GET("/more"));
	site_await_parked(&site, 1);
	site_drain(&site);
	cr_expect(wire_ended(idle));
	cr_expect(wire_ended(half));
	cr_expect_eq(site_busy(&site), 1);
	site_release(&site);
	cr_assert(wire_answer(parked, &answer, false));
	cr_expect_str_eq(answer.body, "released");
	cr_expect_not_null(strstr(answer.head, "Connection: close"));
	answer_done(&answer);
	cr_expect(wire_ended(parked));
	close(parked);
	while (site_busy(&site) > 0)
		usleep(1000);
}
