/* The HTTP layer of frontd: shapes, limits, hostile input, outages. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "tests/lib/test_db.h"
#include "tests/lib/test_http.h"
#include "tests/lib/test_node.h"

static struct test_node *node;
static struct test_daemon *frontd;
static struct arena *arena;

static void begin_with(const char *const *settings)
{
	test_db_needed();
	arena = arena_new();
	node = test_node_new("nova.localhost");
	frontd = test_frontd(node, settings);
}

static void begin(void)
{
	begin_with(NULL);
}

static void end(void)
{
	test_node_free(&node);
	if (arena)
		arena_free(&arena);
}

TestSuite(http_api, .init = begin, .fini = end, .timeout = 120);

static struct test_reply send_to(
    const char *method, const char *path, const char *type, const char *body)
{
	return test_http(arena, node->port,
	    &(struct test_request){ .method = method,
		.path = path,
		.content_type = type,
		.body = body });
}

/* ---- shapes of the HTTP layer, as recorded ---- */

struct shape_case {
	const char *method;
	const char *path;
	const char *type;
	const char *body;
	int status;
	const char *answer; /* whole body; NULL: not compared */
};

static const struct shape_case shapes[] = {
	{ "GET", "/api/nothing", "", NULL, 404,
	    "{\"statusCode\":404,\"error\":\"Not Found\","
	    "\"message\":\"Route GET:/api/nothing not found\"}" },
	{ "PUT", "/api/auth/login", NULL, "{}", 405,
	    "{\"statusCode\":405,\"error\":\"Method Not Allowed\","
	    "\"message\":\"Route PUT:/api/auth/login not found\"}" },
	{ "POST", "/api/auth/login", "application/x-www-form-urlencoded", "{}",
	    415,
	    "{\"statusCode\":415,\"code\":\"FST_ERR_CTP_INVALID_MEDIA_TYPE\","
	    "\"error\":\"Unsupported Media Type\",\"message\":\"Unsupported "
	    "Media Type: application/x-www-form-urlencoded\"}" },
	{ "POST", "/api/auth/login", "", "{\"a\":1}", 415,
	    "{\"statusCode\":415,\"code\":\"FST_ERR_CTP_INVALID_MEDIA_TYPE\","
	    "\"error\":\"Unsupported Media Type\",\"message\":\"Unsupported "
	    "Media Type: undefined\"}" },
	{ "POST", "/api/auth/login", "application/json", NULL, 400,
	    "{\"statusCode\":400,\"code\":\"FST_ERR_CTP_EMPTY_JSON_BODY\","
	    "\"error\":\"Bad Request\",\"message\":\"Body cannot be empty "
	    "when content-type is set to 'application/json'\"}" },
	{ "POST", "/api/auth/login", "", NULL, 400,
	    "{\"error\":\"username is required\",\"statusCode\":400}" },
	{ "POST", "/api/auth/login", "application/json; charset=utf-8", "{}",
	    400, "{\"error\":\"username is required\",\"statusCode\":400}" },
	{ "POST", "/api/auth/login", NULL, "[]", 400,
	    "{\"error\":\"body must be a JSON object\",\"statusCode\":400}" },
	{ "GET", "/api/users/@me", "", NULL, 401,
	    "{\"error\":\"Missing or invalid authorization header\","
	    "\"statusCode\":401}" },
};

Test(http_api, refusals_have_the_documented_shapes)
{
	for (size_t i = 0; i < COUNT(shapes); i++) {
		const struct shape_case *c = &shapes[i];
		struct test_reply reply =
		    send_to(c->method, c->path, c->type, c->body);

		cr_expect_eq(reply.status, c->status, "case %zu: %d %s", i,
		    reply.status, reply.body);
		cr_expect_str_eq(reply.body, c->answer, "case %zu", i);
		cr_expect_str_eq(test_header(arena, &reply, "content-type"),
		    "application/json; charset=utf-8");
	}
}

/* ---- hostile JSON ---- */

static const char *repeated(const char *text, size_t count)
{
	struct buf buf;

	buf_init(&buf, arena, 64 * 1024 * 1024);
	for (size_t i = 0; i < count; i++)
		buf_text(&buf, text);
	return buf.data;
}

static void expect_bad_json(const char *what, const char *body)
{
	struct test_reply reply =
	    send_to("POST", "/api/auth/login", NULL, body);

	cr_expect_eq(reply.status, 400, "%s: %d", what, reply.status);
	cr_expect_eq(test_number(arena, &reply, "statusCode"), 400, "%s", what);
	cr_expect_str_eq(
	    test_text(arena, &reply, "error"), "Bad Request", "%s", what);
	cr_expect_not_null(test_text(arena, &reply, "message"), "%s", what);
}

Test(http_api, what_is_no_json_is_a_bad_request)
{
	expect_bad_json("cut", "{\"username\":");
	expect_bad_json("junk", "{\"username\":\"a\"} x");
	expect_bad_json("doubled",
	    "{\"username\":\"a\",\"username\":\"b\",\"password\":\"c\"}");
	expect_bad_json("proto", "{\"__proto__\":{\"a\":1}}");
	expect_bad_json("utf-8", "{\"username\":\"\xff\xfe\"}");
	expect_bad_json("deep", repeated("[", 5000));
	expect_bad_json("deep and closed",
	    arena_printf(
		arena, "%s%s", repeated("[", 5000), repeated("]", 5000)));
	cr_expect_eq(
	    test_get(arena, node->port, "/api/health", NULL).status, 200);
}

Test(http_api, a_body_above_the_limit_is_refused_declared_or_chunked)
{
	const char *limit = repeated("x", 1024 * 1024);
	struct test_reply reply = send_to(
	    "POST", "/api/auth/login", NULL, arena_printf(arena, "%sx", limit));
	const char *chunked;

	cr_expect_eq(reply.status, 413);
	cr_expect_str_eq(reply.body,
	    "{\"statusCode\":413,\"code\":\"FST_ERR_CTP_BODY_TOO_LARGE\","
	    "\"error\":\"Payload Too Large\","
	    "\"message\":\"Request body is too large\"}");
	reply = send_to("POST", "/api/auth/login", NULL, limit);
	cr_expect_eq(reply.status, 400, "as large as allowed");
	chunked = arena_printf(arena,
	    "POST /api/auth/login HTTP/1.1\r\nHost: x\r\n"
	    "Content-Type: application/json\r\n"
	    "Transfer-Encoding: chunked\r\n\r\n100001\r\n%sx\r\n0\r\n\r\n",
	    limit);
	reply = test_http_raw(arena, node->port, chunked, strlen(chunked));
	cr_expect_eq(reply.status, 413, "chunked: %d", reply.status);
}

/* One connection, four requests, each with its own route and answer. */
Test(http_api, requests_of_one_connection_do_not_mix)
{
	static const char requests[] =
	    "GET /api/nothing HTTP/1.1\r\nHost: x\r\n\r\n"
	    "GET /api/users/@me HTTP/1.1\r\nHost: x\r\n\r\n"
	    "POST /api/auth/login HTTP/1.1\r\nHost: x\r\n"
	    "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
	    "GET /api/health HTTP/1.1\r\nHost: x\r\n"
	    "Connection: close\r\n\r\n";
	static const char *const wanted[] = { "HTTP/1.1 404", "HTTP/1.1 401",
		"HTTP/1.1 400", "HTTP/1.1 200" };
	int fd = test_http_connect(node->port);
	struct buf in;
	char chunk[4096];
	const char *at;
	ssize_t got;

	buf_init(&in, arena, 1 << 20);
	cr_assert(test_http_write(fd, requests, strlen(requests)));
	while ((got = read(fd, chunk, sizeof(chunk))) > 0)
		buf_add(&in, chunk, (size_t)got);
	close(fd);
	at = in.data;
	for (size_t i = 0; at && i < COUNT(wanted); i++) {
		at = strstr(at, "HTTP/1.1 ");
		cr_expect(at && strncmp(at, wanted[i], 12) == 0, "%zu", i);
		at = at ? at + 1 : NULL;
	}
}

/* ---- CORS ---- */

Test(http_api, other_pages_may_call_with_credentials)
{
	struct test_reply reply = test_http(arena, node->port,
	    &(struct test_request){ .method = "OPTIONS",
		.path = "/api/auth/login",
		.headers = "Origin: https://other.example\r\n"
			   "Access-Control-Request-Method: POST\r\n" });

	cr_expect_eq(reply.status, 204);
	cr_expect_str_eq(
	    test_header(arena, &reply, "access-control-allow-origin"),
	    "https://other.example");
	cr_expect_str_eq(
	    test_header(arena, &reply, "access-control-allow-credentials"),
	    "true");
	cr_expect_not_null(
	    strstr(test_header(arena, &reply, "access-control-allow-methods"),
		"PATCH"));
	reply = test_http(arena, node->port,
	    &(struct test_request){ .method = "GET",
		.path = "/api/users/@me",
		.headers = "Origin: https://other.example\r\n" });
	cr_expect_eq(reply.status, 401);
	cr_expect_str_eq(
	    test_header(arena, &reply, "access-control-allow-origin"),
	    "https://other.example");
}

/* ---- facts ---- */

Test(http_api, health_and_info_need_no_account)
{
	struct test_reply reply =
	    test_get(arena, node->port, "/api/health", NULL);

	cr_expect_eq(reply.status, 200);
	cr_expect_str_eq(test_text(arena, &reply, "status"), "ok");
	cr_expect_gt(test_number(arena, &reply, "timestamp"), 1700000000000);
	reply = test_get(arena, node->port, "/api/instance/info", NULL);
	cr_expect_eq(reply.status, 200);
	cr_expect_str_eq(test_text(arena, &reply, "name"), "Postrider");
	cr_expect_not_null(test_text(arena, &reply, "version"));
	cr_expect_eq(
	    json_type(test_json(arena, &reply, "registrationOpen")), JSON_BOOL);
}

static void begin_measured(void)
{
	static const char *const settings[] = { "metrics_listen=127.0.0.1:0",
		NULL };

	begin_with(settings);
}

static int metrics_port(void)
{
	FILE *file = fopen(frontd->log, "re");
	char *line = NULL;
	size_t room = 0;
	int port = 0;

	while (file && getline(&line, &room, file) >= 0)
		if (strstr(line, "event=frontd.metrics"))
			port = (int)strtol(strstr(line, "port=") + 5, NULL, 10);
	free(line);
	if (file)
		fclose(file);
	return port;
}

/* Samples that are there more than once; Prometheus refuses such a page. */
static size_t lines_twice(const char *page)
{
	size_t twice = 0;

	while ((page = strchr(page, '\n')) != NULL) {
		size_t len = strcspn(++page, " \n");
		const char *name =
		    arena_printf(arena, "\n%.*s ", (int)len, page);

		twice += *page != '#' && len && strstr(page, name);
	}
	return twice;
}

Test(http_api_metrics, requests_are_counted_by_route_and_status,
    .init = begin_measured, .fini = end, .timeout = 60)
{
	struct test_reply reply;

	for (int i = 0; i < 3; i++)
		test_get(arena, node->port, "/api/users/@me", NULL);
	test_get(arena, node->port, "/api/nothing", NULL);
	reply = test_get(arena, metrics_port(), "/metrics", NULL);
	cr_assert_eq(reply.status, 200);
	cr_expect_not_null(strstr(reply.body,
	    "postrider_http_requests_total{method=\"GET\","
	    "route=\"/api/users/@me\"} 3\n"));
	cr_expect_not_null(strstr(
	    reply.body, "postrider_http_responses_total{code=\"401\"} 3\n"));
	cr_expect_not_null(strstr(reply.body,
	    "postrider_http_rejected_total{reason="
	    "\"unknown_route\"} 1\n"));
	cr_expect_eq(lines_twice(reply.body), 0);
	cr_expect_not_null(
	    strstr(reply.body, "postrider_http_requests_in_flight 0\n"));
	reply = test_get(arena, metrics_port(), "/api/health", NULL);
	cr_expect_eq(reply.status, 404, "only metrics here");
}

/* ---- the log ---- */

static int count_in_log(const char *text)
{
	FILE *file = fopen(frontd->log, "re");
	char *line = NULL;
	size_t room = 0;
	int count = 0;

	while (file && getline(&line, &room, file) >= 0)
		count += strstr(line, text) != NULL;
	free(line);
	if (file)
		fclose(file);
	return count;
}

static const char *const forgeries[] = {
	"/api/%0alevel=error%20event=forged",
	"/api/%1b%5b31m",
	"/api/%e2%80%a8event=forged",
};

Test(http_api, no_request_forges_a_line_in_the_log)
{
	for (size_t i = 0; i < COUNT(forgeries); i++)
		cr_expect_eq(
		    test_get(arena, node->port, forgeries[i], NULL).status,
		    404);
	cr_expect(test_daemon_logged(frontd, "code=404", 2000));
	cr_expect_eq(count_in_log("\x1b"), 0);
	cr_expect_eq(count_in_log("\xe2\x80\xa8"), 0);
	for (int i = 0; i < 2; i++)
		cr_expect_eq(test_get(arena, node->port,
				 i ? "/api/users/@me" : "/api/x", NULL)
				 .status,
		    i ? 401 : 404);
	cr_expect_eq(count_in_log("level=error"),
	    count_in_log("\\nlevel=error"), "only inside a value");
}

Test(http_api, a_flood_of_refusals_is_summed_up)
{
	for (int i = 0; i < 300; i++)
		test_get(arena, node->port, "/api/nothing", NULL);
	cr_expect_leq(count_in_log("event=http.refused "), 21);
	cr_expect(test_daemon_logged(frontd, "event=http.refused_more", 15000));
}

/* ---- outages ---- */

static bool answers_again(void *arg)
{
	(void)arg;
	return test_get(arena, node->port, "/api/instance/info", NULL).status ==
	    200;
}

static const char *database_name(void)
{
	static const char *name;

	if (!name)
		name = test_db_text(
		    arena, node->database, "SELECT current_database() AS t");
	return name;
}

/* Ends every session of the node's database, from another one. */
static int64_t sessions_cut(void)
{
	return test_db_number(getenv("POSTRIDER_TEST_DB"),
	    arena_printf(arena,
		"SELECT count(pg_terminate_backend(pid)) AS n "
		"FROM pg_stat_activity WHERE datname = '%s'",
		database_name()));
}

Test(http_api, cut_connections_cost_an_answer_at_most)
{
	cr_assert(answers_again(NULL));
	for (int i = 0; i < 5; i++) {
		int status;

		cr_expect_gt(sessions_cut(), 0);
		status = test_get(arena, node->port, "/api/instance/info", NULL)
			     .status;
		cr_expect(status == 200 || status == 503, "%d", status);
		cr_expect(test_until(answers_again, NULL, 10000));
	}
	cr_expect_eq(count_in_log("level=error"), 0);
}

static void database_allow(bool allow)
{
	test_db_script(getenv("POSTRIDER_TEST_DB"),
	    arena_printf(arena,
		"ALTER DATABASE \"%s\" WITH ALLOW_CONNECTIONS %s",
		database_name(), allow ? "true" : "false"));
}

static pid_t load_begin(void)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	for (;;)
		test_get(arena, node->port, "/api/instance/info", NULL);
}

Test(http_api, without_a_database_it_says_503_and_recovers_by_itself)
{
	pid_t load;
	struct test_reply reply;

	cr_assert_not_null(database_name());
	load = load_begin();
	database_allow(false);
	sessions_cut();
	kill(load, SIGKILL);
	waitpid(load, NULL, 0);
	reply = test_get(arena, node->port, "/api/instance/info", NULL);
	cr_expect_eq(reply.status, 503);
	cr_expect_str_eq(reply.body,
	    "{\"error\":\"Server is busy, try again shortly\","
	    "\"statusCode\":503}");
	cr_expect_not_null(test_header(arena, &reply, "retry-after"));
	database_allow(true);
	cr_expect(test_until(answers_again, NULL, 15000));
}

Test(http_api_start, a_start_without_a_database_waits_and_says_so, .init = NULL,
    .fini = end, .timeout = 60)
{
	static const char *const settings[] = {
		"database=host=/nonexistent user=postgres", NULL
	};

	test_db_needed();
	arena = arena_new();
	node = test_node_new("nova.localhost");
	frontd = test_frontd_start_only(node, settings);
	cr_expect(
	    test_daemon_says(frontd, "STATUS=waiting for the database", 10000));
	cr_expect_not(test_daemon_says(frontd, "READY=1", 1000));
	cr_expect_eq(test_daemon_ended(frontd, 200), -1000, "still there");
}

Test(http_api_start, a_schema_that_does_not_fit_ends_the_start_with_one_line,
    .fini = end, .timeout = 60)
{
	char *empty;
	const char *settings[2] = { NULL, NULL };

	test_db_needed();
	arena = arena_new();
	empty = test_db_create_empty();
	node = test_node_new("nova.localhost");
	settings[0] = arena_printf(arena, "database=%s", empty);
	frontd = test_frontd_start_only(node, settings);
	cr_expect_gt(test_daemon_ended(frontd, 15000), 0);
	cr_expect_eq(count_in_log("level=error"), 1);
	cr_expect_eq(count_in_log("this program needs"), 1);
	test_db_drop(&empty);
}

/* Stops or continues the sessions of the node's database, not the server. */
static void sessions_signal(int number)
{
	char *pids = arena_text(arena,
	    test_db_text(arena, getenv("POSTRIDER_TEST_DB"),
		arena_printf(arena,
		    "SELECT coalesce(string_agg(pid::text, ' '), '') AS t "
		    "FROM pg_stat_activity WHERE datname = '%s'",
		    database_name())));

	for (char *p = pids; *p; p += *p == ' ')
		kill((pid_t)strtol(p, &p, 10), number);
}

static void begin_watched(void)
{
	setenv("WATCHDOG_USEC", "1500000", 1);
	begin_with(NULL);
}

Test(http_api_watchdog, a_database_that_does_not_answer_kills_nobody,
    .init = begin_watched, .fini = end, .timeout = 90)
{
	static const char head[] = "GET /api/instance/info HTTP/1.1\r\n"
				   "Host: x\r\n\r\n";
	struct test_reply reply;
	int fd;

	cr_assert_not_null(database_name());
	cr_assert(answers_again(NULL));
	sessions_signal(SIGSTOP);
	fd = test_http_connect(node->port);
	cr_assert(test_http_write(fd, head, strlen(head)));
	cr_expect(test_daemon_says(
	    frontd, "STATUS=the database does not answer", 30000));
	/* Longer than an answer counts as proof. */
	for (int i = 0; i < 50; i++)
		cr_expect(test_daemon_says(frontd, "WATCHDOG=1", 1500));
	sessions_signal(SIGCONT);
	reply = test_http_read(arena, fd);
	close(fd);
	cr_expect_eq(reply.status, 200);
	cr_expect(test_daemon_says(frontd, "STATUS=serving", 10000));
}

Test(http_api, sigterm_answers_what_is_in_flight)
{
	struct test_reply reply;
	int fd = test_http_connect(node->port);
	static const char head[] = "GET /api/instance/info HTTP/1.1\r\n"
				   "Host: x\r\n\r\n";

	cr_assert(test_http_write(fd, head, strlen(head)));
	reply = test_http_read(arena, fd);
	cr_expect_eq(reply.status, 200);
	cr_expect_eq(test_daemon_stop(frontd), 0);
	close(fd);
	test_daemon_again(frontd);
	cr_expect(test_until(answers_again, NULL, 5000));
}
