/* Requests that wait for a peer's answer; the test answers as outboxd would. */
#include <signal.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "common/base/clock.h"
#include "tests/lib/test_db.h"
#include "tests/lib/test_http.h"
#include "tests/lib/test_node.h"

static struct test_node *node;
static struct test_daemon *frontd;
static struct arena *arena;
static struct test_person admin;

/* One worker: whoever held it would stop everybody. */
static void begin(void)
{
	static const char *const settings[] = { "workers=1", NULL };

	test_db_needed();
	arena = arena_new();
	node = test_node_new("nova.localhost");
	frontd = test_frontd(node, settings);
	admin = test_person(node, node->port, "admin");
}

static void end(void)
{
	test_node_free(&node);
	if (arena)
		arena_free(&arena);
}

TestSuite(park, .init = begin, .fini = end, .timeout = 300);

/* An initiate that now waits for the peer. */
static int initiate(const char *origin)
{
	const char *body =
	    arena_printf(arena, "{\"remoteOrigin\":\"%s\"}", origin);
	const char *request = arena_printf(arena,
	    "POST /api/federation/peer/initiate HTTP/1.1\r\nHost: x\r\n"
	    "Authorization: Bearer %s\r\nContent-Type: application/json\r\n"
	    "Content-Length: %zu\r\n\r\n%s",
	    admin.token, strlen(body), body);
	int fd = test_http_connect(node->port);

	cr_assert(fd >= 0 && test_http_write(fd, request, strlen(request)));
	cr_assert(test_db_until(node->database,
	    arena_printf(arena,
		"SELECT count(*) = 1 AS b FROM s2s_requests "
		"WHERE origin = '%s'",
		origin),
	    5000));
	return fd;
}

static void answer(const char *origin, bool signal)
{
	test_db_script(node->database,
	    arena_printf(arena,
		"UPDATE s2s_requests SET claimed_at = now(), "
		"answered_at = now(), outcome = 'answered', status = 200, "
		"answer = '{\"accepted\":true}' WHERE origin = '%s'; %s",
		origin,
		signal ? "SELECT pg_notify('postrider_reply', id::text) "
			 "FROM s2s_requests"
		       : ""));
}

static int64_t answered_after_ms(bool signal)
{
	static const char origin[] = "http://luna.localhost:9";
	int fd = initiate(origin);
	int64_t began_ms = clock_steady_ms();
	struct test_reply reply;

	answer(origin, signal);
	reply = test_http_read(arena, fd);
	close(fd);
	cr_expect_eq(reply.status, 200, "%d %s", reply.status, reply.body);
	cr_expect_str_eq(test_text(arena, &reply, "peer.origin"), origin);
	return clock_steady_ms() - began_ms;
}

Test(park, a_signal_brings_the_answer_at_once)
{
	cr_expect_lt(answered_after_ms(true), test_patience_ms(500));
}

Test(park, a_lost_signal_costs_about_a_second)
{
	cr_expect_lt(answered_after_ms(false), test_patience_ms(2500));
}

Test(park, waiting_requests_hold_no_worker)
{
	enum { WAITING = 5 };
	int fds[WAITING];

	for (int i = 0; i < WAITING; i++)
		fds[i] = initiate(
		    arena_printf(arena, "http://peer%d.localhost:9", i));
	for (int i = 0; i < WAITING; i++)
		cr_expect_eq(
		    test_get(arena, node->port, "/api/users/@me", admin.token)
			.status,
		    200);
	for (int i = 0; i < WAITING; i++) {
		struct test_reply reply;

		answer(
		    arena_printf(arena, "http://peer%d.localhost:9", i), true);
		reply = test_http_read(arena, fds[i]);
		cr_expect_eq(reply.status, 200, "%d", i);
		close(fds[i]);
	}
}

Test(park, without_an_answer_the_deadline_says_504)
{
	int fd = initiate("http://luna.localhost:9");
	struct test_reply reply = test_http_read(arena, fd);

	close(fd);
	cr_expect_eq(reply.status, 504, "%d %s", reply.status, reply.body);
	cr_expect_str_eq(test_text(arena, &reply, "error"),
	    "Remote instance did not respond within 10 seconds");
}

Test(park, who_hangs_up_while_waiting_costs_nothing)
{
	close(initiate("http://luna.localhost:9"));
	answer("http://luna.localhost:9", true);
	cr_expect_eq(
	    test_get(arena, node->port, "/api/users/@me", admin.token).status,
	    200);
	cr_expect_eq(test_daemon_stop(frontd), 0);
}

Test(park, a_stop_waits_for_the_answer_within_its_grace)
{
	int fd = initiate("http://luna.localhost:9");
	struct test_reply reply;

	kill(frontd->pid, SIGTERM);
	cr_expect(test_daemon_says(frontd, "STOPPING=1", 5000));
	answer("http://luna.localhost:9", true);
	reply = test_http_read(arena, fd);
	close(fd);
	cr_expect_eq(reply.status, 200, "%d %s", reply.status, reply.body);
	cr_expect_eq(test_daemon_ended(frontd, 10000), 0);
}

Test(park, a_stop_without_an_answer_says_503_after_its_grace)
{
	int fd = initiate("http://luna.localhost:9");
	struct test_reply reply;

	kill(frontd->pid, SIGTERM);
	reply = test_http_read(arena, fd);
	close(fd);
	cr_expect(reply.status == 503 || reply.status == 0, "%d", reply.status);
	cr_expect_eq(test_daemon_ended(frontd, 10000), 0);
}
