/* Accounts and sessions, as clients see them. */
#include <sys/wait.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "common/base/clock.h"
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

TestSuite(auth, .init = begin, .fini = end, .timeout = 300);

static struct test_reply post(const char *path, const char *json)
{
	return test_post(arena, node->port, path, NULL, json);
}

static struct test_reply sign_up(const char *json)
{
	return post("/api/auth/register", json);
}

static struct test_reply log_in(const char *name, const char *password)
{
	return post("/api/auth/login",
	    arena_printf(arena, "{\"username\":\"%s\",\"password\":\"%s\"}",
		name, password));
}

static struct test_reply me(const char *token)
{
	return test_get(arena, node->port, "/api/users/@me", token);
}

/* ---- sign up ---- */

Test(auth, the_first_account_is_administrator_and_the_second_is_not)
{
	struct test_reply reply =
	    sign_up("{\"username\":\" Alice \",\"password\":\"correct-horse\","
		    "\"displayName\":\"  \",\"avatarColor\":\"teal\"}");
	const char *token = test_text(arena, &reply, "token");
	const char *id = test_text(arena, &reply, "user.id");

	cr_assert_eq(reply.status, 201, "%s", reply.body);
	cr_expect_str_eq(test_text(arena, &reply, "user.username"), "alice");
	cr_expect_str_eq(test_text(arena, &reply, "user.avatarColor"), "teal");
	cr_expect_eq(
	    json_type(test_json(arena, &reply, "user.displayName")), JSON_NULL);
	cr_expect_eq(
	    json_count(test_json(arena, &reply, "user.replicatedInstances")),
	    0);
	cr_expect_not_null(strstr(reply.body, "\"isAdmin\":true"));
	cr_expect_not_null(strstr(reply.body, "\"showActivity\":true"));
	reply = me(token);
	cr_expect_eq(reply.status, 200);
	cr_expect_str_eq(test_text(arena, &reply, "id"), id);
	reply =
	    sign_up("{\"username\":\"bob\",\"password\":\"correct-horse\"}");
	cr_expect_eq(reply.status, 201);
	cr_expect_not_null(strstr(reply.body, "\"isAdmin\":false"));
}

struct refusal {
	const char *json;
	int status;
	const char *text; /* part of the error */
};

static const struct refusal sign_up_refusals[] = {
	{ "{\"password\":\"correct-horse\"}", 400, "username" },
	{ "{\"username\":\"alice\"}", 400, "password" },
	{ "{\"username\":5,\"password\":\"correct-horse\"}", 400, "username" },
	{ "{\"username\":\"al\",\"password\":\"correct-horse\"}", 400, "3 to" },
	{ "{\"username\":\"a b c\",\"password\":\"correct-horse\"}", 400,
	    "3 to" },
	{ "{\"username\":\"al\\u0000ice\",\"password\":\"correct-horse\"}", 400,
	    "username" },
	{ "{\"username\":\"\\ud800abc\",\"password\":\"correct-horse\"}", 400,
	    "username" },
	{ "{\"username\":\"alice\",\"password\":\"1234567\"}", 400,
	    "at least 8" },
	{ "{\"username\":\"alice\",\"password\":\"correct-horse\","
	  "\"homeInstance\":\"other.example\"}",
	    400, "name@domain" },
	{ "{\"username\":\"alice@other.example\","
	  "\"password\":\"correct-horse\",\"homeInstance\":\"a/b\"}",
	    400, "home instance" },
	{ "{\"username\":\"alice@nova.localhost\","
	  "\"password\":\"correct-horse\","
	  "\"homeInstance\":\"nova.localhost\"}",
	    400, "home instance" },
	{ "{\"username\":\"alice\",\"password\":\"correct-horse\","
	  "\"displayName\":\"123456789012345678901234567890123\"}",
	    400, "displayName" },
	{ "{\"username\":\"taken\",\"password\":\"correct-horse\"}", 409,
	    "already taken" },
	{ "{\"username\":\" TAKEN \",\"password\":\"correct-horse\"}", 409,
	    "already taken" },
};

Test(auth, bad_sign_ups_are_refused_with_a_reason)
{
	test_person(node, node->port, "taken");
	for (size_t i = 0; i < COUNT(sign_up_refusals); i++) {
		const struct refusal *c = &sign_up_refusals[i];
		struct test_reply reply = sign_up(c->json);
		const char *text = test_text(arena, &reply, "error");

		cr_expect_eq(reply.status, c->status, "case %zu: %d %s", i,
		    reply.status, reply.body);
		cr_expect(text && strstr(text, c->text), "case %zu: %s", i,
		    reply.body);
	}
}

/* "ä" eight times is eight units, four emoji are eight units. */
Test(auth, password_length_counts_units_as_clients_do)
{
	struct test_reply reply =
	    sign_up("{\"username\":\"alice\",\"password\":\"\xf0\x9f\x98\x80"
		    "\xf0\x9f\x98\x80\xf0\x9f\x98\x80\xf0\x9f\x98\x80\"}");

	cr_expect_eq(reply.status, 201, "%s", reply.body);
	reply = sign_up("{\"username\":\"bob\",\"password\":\"\xc3\xa4\xc3\xa4"
			"\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\"}");
	cr_expect_eq(reply.status, 400);
}

Test(auth, closed_registration_says_so_after_the_formats)
{
	struct test_reply reply;

	test_db_script(node->database,
	    "UPDATE instance_settings SET registration_open = false");
	reply = sign_up("{\"username\":\"alice\",\"password\":\"short\"}");
	cr_expect_eq(reply.status, 400);
	reply =
	    sign_up("{\"username\":\"alice\",\"password\":\"correct-horse\"}");
	cr_expect_eq(reply.status, 403);
	cr_expect_str_eq(test_text(arena, &reply, "error"),
	    "Registration is currently closed");
	reply = test_get(
	    arena, node->port, "/api/auth/check-username?username=alice", NULL);
	cr_expect_eq(reply.status, 403);
	cr_expect_eq(json_type(test_json(arena, &reply, "error")), JSON_ABSENT);
}

Test(auth, a_stub_becomes_an_account_once)
{
	static const char json[] =
	    "{\"username\":\"carol@other.example\",\"password\":"
	    "\"correct-horse\",\"homeInstance\":\"Other.Example\","
	    "\"homeUserId\":\"777\"}";
	struct test_reply reply;

	test_db_script(node->database,
	    "INSERT INTO users (username, password_hash, home_instance, "
	    "home_user_id) VALUES ('777@other.example', "
	    "'!federation-replicated', 'other.example', '777')");
	reply = log_in("777@other.example", "!federation-replicated");
	cr_expect_eq(reply.status, 401, "a stub never logs in");
	reply = sign_up(json);
	cr_expect_eq(reply.status, 200, "%s", reply.body);
	cr_expect_str_eq(
	    test_text(arena, &reply, "user.username"), "carol@other.example");
	cr_expect_str_eq(
	    test_text(arena, &reply, "user.homeInstance"), "other.example");
	cr_expect_eq(
	    log_in("carol@other.example", "correct-horse").status, 200);
	cr_expect_eq(sign_up(json).status, 409);
	cr_expect_eq(test_db_number(node->database,
			 "SELECT count(*) AS n FROM users WHERE is_admin"),
	    0, "replicated accounts never administer");
}

struct name_case {
	const char *query;
	int status;
	bool available;
	bool reason;
};

static const struct name_case names[] = {
	{ "?username=free_1", 200, true, false },
	{ "?username=%20FREE_1%20", 200, true, false },
	{ "?username=taken", 200, false, false },
	{ "?username=a", 200, false, true },
	{ "?username=a%00b", 400, false, true },
	{ "?username=", 400, false, true },
	{ "", 400, false, true },
};

Test(auth, check_username_tells_free_from_taken_and_ill_formed)
{
	test_person(node, node->port, "taken");
	for (size_t i = 0; i < COUNT(names); i++) {
		struct test_reply reply = test_get(arena, node->port,
		    arena_printf(
			arena, "/api/auth/check-username%s", names[i].query),
		    NULL);

		cr_expect_eq(reply.status, names[i].status, "case %zu: %s", i,
		    reply.body);
		cr_expect_eq(strstr(reply.body, "\"available\":true") != NULL,
		    names[i].available, "case %zu", i);
		cr_expect_eq(test_text(arena, &reply, "reason") != NULL,
		    names[i].reason, "case %zu", i);
	}
}

/* ---- log in ---- */

Test(auth, log_in_gives_a_token_and_sets_online)
{
	struct test_person alice = test_person(node, node->port, "alice");
	struct test_reply reply = log_in(" ALICE ", TEST_PASSWORD);
	const char *token = test_text(arena, &reply, "token");

	cr_assert_eq(reply.status, 200, "%s", reply.body);
	cr_expect_str_eq(test_text(arena, &reply, "user.status"), "online");
	cr_expect_str_eq(test_text(arena, &reply, "user.id"), alice.id);
	cr_expect_str_neq(token, alice.token);
	cr_expect_eq(me(token).status, 200);
	cr_expect_eq(me(alice.token).status, 200, "both live");
}

Test(auth, every_wrong_log_in_looks_alike)
{
	struct test_reply wrong;
	struct test_reply unknown;

	test_person(node, node->port, "alice");
	wrong = log_in("alice", "wrong-horse");
	unknown = log_in("nobody", "wrong-horse");
	cr_expect_eq(wrong.status, 401);
	cr_expect_eq(unknown.status, 401);
	cr_expect_str_eq(wrong.body, unknown.body);
	test_db_script(node->database,
	    "UPDATE users SET is_deleted = true WHERE username = 'alice'");
	wrong = log_in("alice", TEST_PASSWORD);
	cr_expect_str_eq(wrong.body, unknown.body);
}

static const char *const bad_tokens[] = {
	"x",
	"1.2",
	"99999999999999999999999.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	"1.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	"-1.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	"",
};

Test(auth, a_token_dies_with_its_session_password_or_account)
{
	struct test_person alice = test_person(node, node->port, "alice");

	for (size_t i = 0; i < COUNT(bad_tokens); i++)
		cr_expect_eq(me(bad_tokens[i]).status, 401, "case %zu", i);
	cr_expect_eq(me(alice.token).status, 200);
	test_db_script(node->database,
	    "UPDATE users SET password_changed_at = now() + interval '1 h'");
	cr_expect_eq(me(alice.token).status, 401, "password changed");
	test_db_script(
	    node->database, "UPDATE users SET password_changed_at = NULL");
	cr_expect_eq(me(alice.token).status, 200);
	test_db_script(
	    node->database, "UPDATE sessions SET expires_at = now()");
	cr_expect_eq(me(alice.token).status, 401, "expired");
	cr_expect_eq(test_db_number(node->database,
			 "SELECT count(*) AS n FROM sessions WHERE "
			 "position(key_hash IN convert_to('x','UTF8')) > 0"),
	    0);
}

/* ---- floods (known fault 1.12) ---- */

static const char *long_password(void)
{
	char *text = arena_alloc(arena, 900 * 1024 + 1);

	memset(text, 'x', 900 * 1024);
	return text;
}

static pid_t log_in_in_background(int number)
{
	pid_t pid = fork();
	int status;

	if (pid != 0)
		return pid;
	status = log_in(number % 3 ? "alice" : "nobody", "wrong-horse").status;
	_exit(status == 401 || status == 429 || status == 503 ? 0 : 1);
}

static void begin_costly(void)
{
	static const char *const settings[] = { "password_memory=19MB",
		"password_ops=2", "password_slots=2",
		"connections_per_address_max=1000", "workers=8", NULL };

	begin_with(settings);
}

Test(auth_flood, parallel_log_ins_cost_bounded_memory, .init = begin_costly,
    .fini = end, .timeout = 300)
{
	enum { LOG_INS = 60 };
	pid_t pids[LOG_INS];
	int64_t before_kb;
	int64_t most_kb = 0;
	int bad = 0;

	test_person(node, node->port, "alice");
	before_kb = test_daemon_rss_kb(frontd);
	for (int i = 0; i < LOG_INS; i++)
		pids[i] = log_in_in_background(i);
	for (int i = 0; i < LOG_INS; i++) {
		int64_t now_kb = test_daemon_rss_kb(frontd);
		int status;

		most_kb = now_kb > most_kb ? now_kb : most_kb;
		waitpid(pids[i], &status, 0);
		bad += status != 0;
	}
	cr_expect_eq(bad, 0);
	cr_expect_lt(most_kb - before_kb, 60 * 1024,
	    "two hashes of 19 MB at once, not 60: %" PRId64 " kB",
	    most_kb - before_kb);
	cr_expect_eq(log_in("alice", TEST_PASSWORD).status, 200);
}

Test(auth_flood, an_over_long_password_is_refused_unhashed,
    .init = begin_costly, .fini = end, .timeout = 300)
{
	const char *password = long_password();
	int64_t began_ms;

	test_person(node, node->port, "alice");
	began_ms = clock_steady_ms();
	for (int i = 0; i < 20; i++)
		cr_expect_eq(log_in("alice", password).status, 401);
	cr_expect_lt(clock_steady_ms() - began_ms, test_patience_ms(5000));
	cr_expect_eq(
	    sign_up(arena_printf(arena,
			"{\"username\":\"bob\",\"password\":\"%s\"}", password))
		.status,
	    400);
}
