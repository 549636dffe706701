#include <criterion/criterion.h>

#include "tests/unit/client_rig.h"

TestSuite(client_guard, .init = client_rig_begin, .fini = client_rig_end,
    .timeout = 300);

Test(client_guard, a_request_says_what_it_was_told_and_nothing_else)
{
	static char body[1500000];
	static const struct http_header headers[] = {
		{ "Content-Type", "application/json" },
		{ "X-Federation-Origin", "https://nova.test" },
		{ "X-Empty", "" },
	};
	struct client_request request =
	    client_rig_get(client_rig_url("/echo/a/../b?c=%2f#f"));
	struct client_got got;

	memset(body, 'b', sizeof(body));
	request.method = "POST";
	request.headers = headers;
	request.header_count = COUNT(headers);
	request.body = (struct bytes){ body, sizeof(body) };
	client_rig_run(&request, &got);
	cr_expect_eq(got.result.outcome, CLIENT_ANSWERED);
	cr_expect(strstr(got.body,
		      "POST /echo/a/../b?c=%2f HTTP/1.1\r\n"
		      "Host: 127.0.0.1:") == got.body);
	cr_expect(strstr(got.body, "\r\nContent-Type: application/json\r\n"));
	cr_expect(
	    strstr(got.body, "\r\nX-Federation-Origin: https://nova.test\r\n"));
	cr_expect(strstr(got.body, "\r\nX-Empty:\r\n"));
	cr_expect(strstr(got.body, "\r\nContent-Length: 1500000\r\n"));
	cr_expect(strstr(got.body, "\r\nUser-Agent: postrider-test/1\r\n"));
	cr_expect_null(strcasestr(got.body, "\r\nExpect"));
	cr_expect_null(strcasestr(got.body, "\r\nAccept-Encoding"));
	cr_expect_leq(got.result.took_ms, 900, "nothing waits for a 100");
}

Test(client_guard, methods_are_sent_as_named)
{
	static const char *const methods[] = { "GET", "DELETE", "PATCH", "PUT",
		"POST" };

	for (size_t i = 0; i < COUNT(methods); i++) {
		struct client_request request =
		    client_rig_get(client_rig_url("/echo"));
		struct client_got got;

		request.method = methods[i];
		client_rig_run(&request, &got);
		cr_expect_eq(strncmp(got.body, methods[i], strlen(methods[i])),
		    0, "%s", got.body);
		cr_expect_null(strcasestr(got.body, "\r\nContent-Type"));
	}
}

Test(client_guard, what_would_break_a_head_is_never_sent)
{
	static const struct http_header bad[] = {
		{ "X-A", "b\r\nX-C: d" },
		{ "X-A", "b\nc" },
		{ "X-A: b\r\nX-C", "d" },
		{ "X A", "b" },
		{ "", "b" },
		{ "Expect", "100-continue" },
	};
	struct client_request request = client_rig_get(client_rig_url("/ok"));
	struct client_got got;

	request.header_count = 1;
	for (size_t i = 0; i < COUNT(bad); i++) {
		request.headers = &bad[i];
		client_rig_run(&request, &got);
		cr_expect_eq(
		    got.result.outcome, CLIENT_NO_CONNECTION, "case %zu", i);
		cr_expect_not(got.result.sent);
	}
	request.header_count = 0;
	request.method = "GET / HTTP/1.1\r\nX:";
	client_rig_run(&request, &got);
	cr_expect_eq(got.result.outcome, CLIENT_NO_CONNECTION);
	cr_expect_eq(client_rig.peer.requests, 0);
}

Test(client_guard, a_localhost_name_is_this_machine)
{
	char url[128] = "";
	struct client_request request = client_rig_get(url);
	struct client_got got;

	snprintf(url, sizeof(url), "http://nova.localhost:%d/echo",
	    client_rig.peer.port);
	client_rig_run(&request, &got);
	cr_expect_eq(
	    got.result.outcome, CLIENT_ANSWERED, "%s", got.result.text);
	cr_expect(strstr(got.body, "\r\nHost: nova.localhost:"));
}

/* A client that may only reach public addresses. */
static void guard(const char *resolve)
{
	struct client_def def = client_rig_def;

	client_free(&client_rig.client);
	def.allow_private_addresses = false;
	def.resolve = resolve;
	client_rig.client = client_new(client_rig.loop, &def);
}

Test(client_guard, an_address_that_is_not_public_is_never_connected_to)
{
	static const char *const urls[] = {
		"https://127.0.0.1:%d/ok",
		"https://localhost:%d/ok",
		"https://nova.localhost:%d/ok",
		"https://[::1]:%d/ok",
		"https://[::ffff:127.0.0.1]:%d/ok",
		"https://[::ffff:7f00:1]:%d/ok",
		"https://[::]:%d/ok",
		"https://0.0.0.0:%d/ok",
		"https://127.1:%d/ok",
		"https://2130706433:%d/ok",
		"https://0x7f.1:%d/ok",
		"https://10.0.0.1:%d/ok",
		"https://169.254.169.254:%d/ok",
		"https://[fe80::1]:%d/ok",
		"https://[fc00::1]:%d/ok",
		"https://[64:ff9b::7f00:1]:%d/ok",
		"https://[2002:7f00:1::]:%d/ok",
	};
	char url[128] = "";
	struct client_got got;

	guard(NULL);
	for (size_t i = 0; i < COUNT(urls); i++) {
		struct client_request request = client_rig_get(url);

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(url, sizeof(url), urls[i], client_rig.peer.port);
#pragma GCC diagnostic pop
		client_rig_run(&request, &got);
		cr_expect_eq(got.result.outcome, CLIENT_REFUSED_ADDRESS,
		    "%s: %d, %s", url, (int)got.result.outcome,
		    got.result.text);
		cr_expect_not(got.result.sent);
	}
	cr_expect_eq(client_rig.peer.connections, 0);
}

Test(client_guard, a_pinned_name_passes_the_same_guard)
{
	static const char *const addresses[] = { "127.0.0.1",
		"[::ffff:127.0.0.1]", "[::ffff:10.0.0.1]", "[::1]",
		"192.168.1.1" };
	char url[128] = "", resolve[256];
	struct client_got got;

	for (size_t i = 0; i < COUNT(addresses); i++) {
		struct client_request request = client_rig_get(url);

		snprintf(resolve, sizeof(resolve),
		    "orbit.test:1:127.0.0.1, nova.test:%d:%s",
		    client_rig.peer.port, addresses[i]);
		guard(resolve);
		snprintf(url, sizeof(url), "https://nova.test:%d/ok",
		    client_rig.peer.port);
		client_rig_run(&request, &got);
		cr_expect_eq(got.result.outcome, CLIENT_REFUSED_ADDRESS,
		    "%s: %d, %s", addresses[i], (int)got.result.outcome,
		    got.result.text);
	}
	cr_expect_eq(client_rig.peer.connections, 0);
}

Test(client_guard, a_pinned_name_is_reached_where_private_addresses_may_be)
{
	char url[128] = "", resolve[256];
	struct client_request request = client_rig_get(url);
	struct client_def def = client_rig_def;
	struct client_got got;

	snprintf(resolve, sizeof(resolve),
	    "orbit.test:1:127.0.0.9 , nova.test:%d:127.0.0.1",
	    client_rig.peer.port);
	client_free(&client_rig.client);
	def.resolve = resolve;
	client_rig.client = client_new(client_rig.loop, &def);
	snprintf(
	    url, sizeof(url), "http://NOVA.test:%d/echo", client_rig.peer.port);
	client_rig_run(&request, &got);
	cr_expect_eq(
	    got.result.outcome, CLIENT_ANSWERED, "%s", got.result.text);
	cr_expect(strstr(got.body, "\r\nHost: nova.test:"));
}

Test(client_guard, plain_http_leaves_this_machine_for_nobody)
{
	static const char *const urls[] = { "http://nova.test/ok",
		"http://8.8.8.8/ok", "http://nova.localhost/ok",
		"http://127.0.0.1/ok" };
	struct client_got got;

	guard("nova.test:80:127.0.0.1");
	for (size_t i = 0; i < COUNT(urls); i++) {
		struct client_request request = client_rig_get(urls[i]);

		client_rig_run(&request, &got);
		cr_expect_eq(
		    got.result.outcome, CLIENT_REFUSED_ADDRESS, "%s", urls[i]);
		cr_expect_not(got.result.sent);
	}
}

Test(client_guard, what_is_no_url_is_refused_later_like_all_else)
{
	static const char *const urls[] = { "", "/ok", "ftp://127.0.0.1/",
		"file:///etc/passwd", "http://u:p@127.0.0.1/",
		"http://127.0.0.1\\@nova.test/" };
	struct client_got got;

	for (size_t i = 0; i < COUNT(urls); i++) {
		struct client_request request = client_rig_get(urls[i]);

		client_rig_run(&request, &got);
		cr_expect_eq(
		    got.result.outcome, CLIENT_REFUSED_ADDRESS, "%s", urls[i]);
	}
}
