#include <criterion/criterion.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "tests/unit/client_rig.h"

TestSuite(
    client, .init = client_rig_begin, .fini = client_rig_end, .timeout = 300);

Test(client, an_answer_arrives_whole)
{
	struct client_got got;

	client_rig_fetch("/ok", &got);
	cr_expect_eq(got.result.outcome, CLIENT_ANSWERED);
	cr_expect(got.result.sent);
	cr_expect_eq(got.result.status, 200);
	cr_expect_eq(got.result.body.len, 5);
	cr_expect_str_eq(got.body, "hello");
	cr_expect_str_eq(got.type, "application/json");
	cr_expect_eq(got.result.retry_after_ms, -1);
	cr_expect_geq(got.result.took_ms, 0);
}

struct outcome_case {
	const char *path;
	enum client_outcome outcome;
	int status;
};

/* clang-format off */
static const struct outcome_case outcome_cases[] = {
	{ "/html",         CLIENT_ANSWERED,  404 },
	{ "/empty",        CLIENT_ANSWERED,  204 },
	{ "/redirect",     CLIENT_ANSWERED,  302 },
	{ "/interim",      CLIENT_ANSWERED,  200 },
	{ "/interim-only", CLIENT_CUT,       0 },
	{ "/nothing",      CLIENT_CUT,       0 },
	{ "/cut",          CLIENT_CUT,       0 },
	{ "/cut-chunk",    CLIENT_CUT,       0 },
	{ "/half",         CLIENT_CUT,       0 },
	{ "/half-head",    CLIENT_CUT,       0 },
	{ "/no-end",       CLIENT_CUT,       0 },
	{ "/old",          CLIENT_CUT,       0 },
	{ "/endless",      CLIENT_TOO_LARGE, 0 },
	{ "/endless-head", CLIENT_TOO_LARGE, 0 },
	{ "/huge",         CLIENT_TOO_LARGE, 0 },
};
/* clang-format on */

Test(client, every_way_a_peer_may_answer_has_its_outcome)
{
	struct client_got got;

	for (size_t i = 0; i < COUNT(outcome_cases); i++) {
		const struct outcome_case *c = &outcome_cases[i];
		int before = client_rig.peer.requests;

		client_rig_fetch(c->path, &got);
		cr_expect_eq(got.result.outcome, c->outcome, "%s: %d, %s",
		    c->path, (int)got.result.outcome, got.result.text);
		cr_expect_eq(got.result.status, c->status, "%s", c->path);
		cr_expect(got.result.sent, "%s", c->path);
		cr_expect_eq(
		    client_rig.peer.requests, before + 1, "%s", c->path);
	}
}

Test(client, an_answer_may_be_as_large_as_allowed_and_no_larger)
{
	struct client_request request = client_rig_get(client_rig_url("/ok"));
	struct client_got got;

	request.answer_max = 5;
	client_rig_run(&request, &got);
	cr_expect_eq(got.result.outcome, CLIENT_ANSWERED);
	request.answer_max = 4;
	client_rig_run(&request, &got);
	cr_expect_eq(got.result.outcome, CLIENT_TOO_LARGE);
	request.answer_max = 0;
	client_rig_run(&request, &got);
	cr_expect_eq(got.result.outcome, CLIENT_TOO_LARGE);
	request = client_rig_get(client_rig_url("/empty"));
	request.answer_max = 0;
	client_rig_run(&request, &got);
	cr_expect_eq(got.result.outcome, CLIENT_ANSWERED);
}

/* What a server said counts, also when the rest does not come. */
Test(client, a_heads_status_and_location_are_told)
{
	static const struct {
		const char *path;
		int status;
		bool led;
	} cases[] = { { "/ok", 200, false }, { "/redirect", 302, true },
		{ "/endless", 200, false }, { "/cut", 200, false },
		{ "/half-head", 0, false }, { "/nothing", 0, false } };
	struct client_got got;

	for (size_t i = 0; i < COUNT(cases); i++) {
		client_rig_fetch(cases[i].path, &got);
		cr_expect_eq(got.result.head_status, cases[i].status, "%s",
		    cases[i].path);
		cr_expect_eq(
		    *got.location != '\0', cases[i].led, "%s", cases[i].path);
		cr_expect_not(got.result.unresolved);
	}
}

Test(client, a_name_that_leads_nowhere_is_told)
{
	struct client_request request =
	    client_rig_get("http://nobody.invalid/");
	struct client_got got;

	client_rig_run(&request, &got);
	cr_expect_eq(got.result.outcome, CLIENT_NO_CONNECTION);
	cr_expect(got.result.unresolved);
	cr_expect_not(got.result.sent);
}

Test(client, a_dripping_answer_ends_at_the_total_time)
{
	static const char *const paths[] = { "/slow", "/silent" };

	for (size_t i = 0; i < COUNT(paths); i++) {
		struct client_request request =
		    client_rig_get(client_rig_url(paths[i]));
		struct client_got got;

		request.timeout_ms = 300;
		client_rig_run(&request, &got);
		cr_expect_eq(
		    got.result.outcome, CLIENT_TIMEOUT, "%s", paths[i]);
		cr_expect(got.result.sent);
		cr_expect_geq(got.result.took_ms, 250);
		cr_expect_leq(got.result.took_ms, 3000);
	}
}

/* What drips is no stall: its end is the total time. */
Test(client, silence_ends_before_the_total_time)
{
	struct client_request request =
	    client_rig_get(client_rig_url("/silent"));
	struct client_got got;

	request.timeout_ms = 20000;
	request.stall_s = 1;
	client_rig_run(&request, &got);
	cr_expect_eq(got.result.outcome, CLIENT_TIMEOUT);
	cr_expect(got.result.sent);
	cr_expect_geq(got.result.took_ms, 900);
	cr_expect_leq(got.result.took_ms, 15000);
	request = client_rig_get(client_rig_url("/slow"));
	request.timeout_ms = 3500;
	request.stall_s = 1;
	client_rig_run(&request, &got);
	cr_expect_eq(got.result.outcome, CLIENT_TIMEOUT);
	cr_expect_geq(got.result.took_ms, 3400);
}

Test(client, connections_are_used_again)
{
	struct client_got got;

	for (int i = 0; i < 5; i++)
		client_rig_fetch("/ok", &got);
	cr_expect_eq(client_rig.peer.requests, 5);
	cr_expect_eq(client_rig.peer.connections, 1);
}

Test(client, a_reused_connection_that_died_costs_nothing)
{
	struct client_got got;

	client_rig_fetch("/die-next", &got);
	client_rig_fetch("/ok", &got);
	cr_expect_eq(
	    got.result.outcome, CLIENT_ANSWERED, "%s", got.result.text);
	cr_expect_eq(
	    client_rig.peer.deaths, 1, "the old connection saw the request");
	cr_expect_eq(client_rig.peer.connections, 2);
}

Test(client, a_body_is_sent_again_whole)
{
	static char body[200000];
	struct client_request request = client_rig_get(client_rig_url("/ok"));
	struct client_got got;

	memset(body, 'b', sizeof(body));
	request.method = "POST";
	request.body = (struct bytes){ body, sizeof(body) };
	client_rig_fetch("/die-next", &got);
	request.url = client_rig_url("/ok");
	client_rig_run(&request, &got);
	cr_expect_eq(
	    got.result.outcome, CLIENT_ANSWERED, "%s", got.result.text);
	cr_expect_eq(client_rig.peer.deaths, 1);
}

Test(client, only_a_fresh_connection_is_tried_the_second_time)
{
	struct client_request request =
	    client_rig_get(client_rig_url("/die-next/pair"));
	struct client_got first = { 0 }, second = { 0 };

	client_send(client_rig.client, &request, client_rig_done, &first);
	client_send(client_rig.client, &request, client_rig_done, &second);
	while (client_in_flight(client_rig.client))
		loop_run(client_rig.loop);
	cr_assert_eq(client_rig.peer.connections, 2);
	client_rig_fetch("/ok", &first);
	cr_expect_eq(
	    first.result.outcome, CLIENT_ANSWERED, "%s", first.result.text);
	cr_expect_eq(client_rig.peer.deaths, 1,
	    "the other old connection was not tried");
	cr_expect_eq(client_rig.peer.connections, 3);
}

Test(client, a_request_is_sent_twice_at_most)
{
	struct client_got got;

	client_rig_fetch("/die-next", &got);
	client_rig_fetch("/nothing", &got);
	cr_expect_eq(got.result.outcome, CLIENT_CUT);
	cr_expect(got.result.sent);
	cr_expect_eq(client_rig.peer.deaths, 1);
	cr_expect_eq(client_rig.peer.requests, 2);
	cr_expect_eq(client_rig.peer.connections, 2);
}

Test(client, a_second_sending_never_follows_part_of_an_answer)
{
	struct client_got got;

	client_rig_fetch("/ok", &got);
	client_rig_fetch("/half-head", &got);
	cr_expect_eq(got.result.outcome, CLIENT_CUT);
	cr_expect_eq(client_rig.peer.requests, 2);
	cr_expect_eq(client_rig.peer.connections, 1);
}

Test(client, nobody_listening_is_no_connection)
{
	struct client_request request;
	struct client_got got;
	char url[64];
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in addr = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(addr);

	/* Bound and not listening: nobody else gets this port. */
	cr_assert_eq(bind(fd, (struct sockaddr *)&addr, len), 0);
	getsockname(fd, (struct sockaddr *)&addr, &len);
	snprintf(
	    url, sizeof(url), "http://127.0.0.1:%d/", ntohs(addr.sin_port));
	request = client_rig_get(url);
	client_rig_run(&request, &got);
	cr_expect_eq(got.result.outcome, CLIENT_NO_CONNECTION);
	cr_expect_not(got.result.sent);

	/* Nobody who speaks TLS, either. */
	snprintf(url, sizeof(url), "https://127.0.0.1:%d/half",
	    client_rig.peer.port);
	request = client_rig_get(url);
	request.timeout_ms = 500;
	client_rig_run(&request, &got);
	cr_expect_neq(got.result.outcome, CLIENT_ANSWERED);
	cr_expect_not(got.result.sent);
	close(fd);
}

struct retry_case {
	const char *text;
	int64_t ms;
};

/* clang-format off */
static const struct retry_case retry_cases[] = {
	{ "0",                     0 },
	{ "1",                     1000 },
	{ "120",                   120000 },
	{ "172800",                172800000 },
	{ "172801",                172800000 },
	{ "99999999999999999999",  172800000 },
	{ "-1",                    -1 },
	{ "1.5",                   -1 },
	{ "soon",                  -1 },
	{ "Fri,_31_Dec_1999_23:59:59_GMT", 0 },
	{ "Wed,_01_Jan_2200_00:00:00_GMT", 172800000 },
};
/* clang-format on */

Test(client, retry_after_is_read_and_bounded)
{
	char path[128];
	struct client_got got;

	for (size_t i = 0; i < COUNT(retry_cases); i++) {
		snprintf(path, sizeof(path), "/retry/%s", retry_cases[i].text);
		client_rig_fetch(path, &got);
		cr_expect_eq(got.result.status, 429);
		cr_expect_eq(got.result.retry_after_ms, retry_cases[i].ms,
		    "%s: %" PRId64, retry_cases[i].text,
		    got.result.retry_after_ms);
	}
}

Test(client, retry_after_may_be_a_date_to_come)
{
	time_t then = (time_t)(clock_wall_ms() / 1000) + 600;
	char path[128];
	struct tm tm;
	struct client_got got;

	gmtime_r(&then, &tm);
	strftime(path, sizeof(path), "/retry/%a,_%d_%b_%Y_%H:%M:%S_GMT", &tm);
	client_rig_fetch(path, &got);
	cr_expect_gt(got.result.retry_after_ms, 590000);
	cr_expect_leq(got.result.retry_after_ms, 600000);
}

Test(client, an_abort_ends_a_call_at_once)
{
	struct client_request request =
	    client_rig_get(client_rig_url("/silent"));
	struct client_request refused = client_rig_get("not a url");
	struct client_got got = { 0 }, bad = { 0 };
	struct client_call *call;

	call = client_send(client_rig.client, &request, client_rig_done, &got);
	client_abort(call);
	cr_expect_eq(got.calls, 1);
	cr_expect_eq(got.result.outcome, CLIENT_ABORTED);
	cr_expect_not(got.result.sent);
	client_abort(
	    client_send(client_rig.client, &refused, client_rig_done, &bad));
	cr_expect_eq(bad.calls, 1);
	cr_expect_eq(bad.result.outcome, CLIENT_ABORTED);
	cr_expect_eq(client_in_flight(client_rig.client), 0);
	client_rig_fetch("/ok", &got);
	cr_expect_eq(got.result.outcome, CLIENT_ANSWERED);
}

struct abort_when_sent {
	struct loop_timer *timer;
	struct client_call *call;
};

static void abort_when_sent(void *arg)
{
	struct abort_when_sent *when = arg;

	if (client_rig.peer.requests)
		client_abort(when->call);
	else
		loop_timer_arm(when->timer, 1);
}

Test(client, an_abort_in_flight_says_that_it_was_sent)
{
	struct client_request request =
	    client_rig_get(client_rig_url("/silent"));
	struct abort_when_sent when;
	struct client_got got = { 0 };

	when.timer = loop_timer_new(client_rig.loop, abort_when_sent, &when);
	when.call =
	    client_send(client_rig.client, &request, client_rig_done, &got);
	loop_timer_arm(when.timer, 1);
	loop_run(client_rig.loop);
	cr_expect_eq(got.calls, 1);
	cr_expect_eq(got.result.outcome, CLIENT_ABORTED);
	cr_expect(got.result.sent);
	loop_timer_free(&when.timer);
}

Test(client, its_end_aborts_what_is_in_flight)
{
	struct client_request request =
	    client_rig_get(client_rig_url("/silent"));
	struct client_got got[3] = { 0 };

	for (size_t i = 0; i < COUNT(got); i++)
		client_send(
		    client_rig.client, &request, client_rig_done, &got[i]);
	client_rig_fetch("/ok", &got[2]);
	client_free(&client_rig.client);
	for (size_t i = 0; i < COUNT(got) - 1; i++) {
		cr_expect_eq(got[i].calls, 1);
		cr_expect_eq(got[i].result.outcome, CLIENT_ABORTED);
	}
}

static int chain_left;

static void on_link(void *arg, const struct client_result *result)
{
	struct client_call **other = arg;
	struct client_request request = client_rig_get(client_rig_url("/ok"));

	cr_expect_neq(result->outcome, CLIENT_NO_CONNECTION);
	if (*other) {
		struct client_call *victim = *other;

		*other = NULL;
		client_abort(victim);
	}
	if (--chain_left > 0)
		client_send(client_rig.client, &request, on_link, arg);
	else
		loop_stop(client_rig.loop);
}

Test(client, a_call_may_send_and_abort_from_its_end)
{
	struct client_request silent =
	    client_rig_get(client_rig_url("/silent"));
	struct client_request bad = client_rig_get("nonsense");
	struct client_call *victim;
	struct client_got got = { 0 };

	victim = client_send(client_rig.client, &silent, client_rig_done, &got);
	chain_left = 4;
	client_send(client_rig.client, &bad, on_link, &victim);
	while (chain_left)
		loop_run(client_rig.loop);
	cr_expect_eq(got.calls, 1);
	cr_expect_eq(got.result.outcome, CLIENT_ABORTED);
	cr_expect_eq(client_in_flight(client_rig.client), 0);
}

Test(client, many_at_once_share_few_connections)
{
	enum { CALLS = 100 };
	struct client_request request = client_rig_get(client_rig_url("/ok"));
	static struct client_got got[CALLS];

	for (int i = 0; i < CALLS; i++)
		client_send(
		    client_rig.client, &request, client_rig_done, &got[i]);
	while (client_in_flight(client_rig.client))
		loop_run(client_rig.loop);
	for (int i = 0; i < CALLS; i++) {
		cr_expect_eq(got[i].calls, 1);
		cr_expect_eq(got[i].result.outcome, CLIENT_ANSWERED);
	}
	cr_expect_leq(client_rig.peer.connections, 8);
}
