/*
 * A server of another make: Fedify takes what we send, in both styles, and we
 * take what it sends; neither takes what was changed on its way.
 *
 * The library comes from the npm registry into the build directory, once.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/test_db.h"
#include "tests/lib/test_trust.h"

#define FEDIFY "@fedify/fedify@2.3.6"

enum { WAIT_MS = 60000 };

struct fedify {
	pid_t pid;
	int input;
	int port;
	const char *origin;
	const char *fred;
};

static struct world *world;
static struct fedify fedify;
static const char *alice;
static const char *alice_id;

/* ---- the library ---- */

/* The exit status of a program that writes into log. */
static int ran(const char *const *argv, const char *log)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		int out = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);

		dup2(out, 1);
		dup2(out, 2);
		execvp(argv[0], (char *const *)argv);
		_exit(127);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static const char *folder_of(struct arena *arena)
{
	const char *build = getenv("POSTRIDER_BUILD_DIR");

	return arena_printf(arena, "%s/fedify", build ? build : ".");
}

static bool is_installed(struct arena *arena, const char *folder)
{
	return access(arena_printf(arena, "%s/installed", folder), R_OK) == 0;
}

static void install(struct arena *arena, const char *folder)
{
	const char *const argv[] = { "npm", "install", "--no-audit",
		"--no-fund", "--no-save", "--prefix", folder, FEDIFY, NULL };
	const char *log = arena_printf(arena, "%s/log", folder);

	if (ran(argv, log) != 0)
		return;
	close(open(arena_printf(arena, "%s/installed", folder),
	    O_WRONLY | O_CREAT, 0600));
}

/* One of several test processes does it, the others wait. */
static bool library_is_there(struct arena *arena, const char *folder)
{
	FILE *package;
	int lock;

	mkdir(folder, 0700);
	lock = open(arena_printf(arena, "%s/lock", folder),
	    O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (lock < 0 || flock(lock, LOCK_EX) != 0)
		return false;
	if (!is_installed(arena, folder)) {
		package =
		    fopen(arena_printf(arena, "%s/package.json", folder), "w");
		cr_assert(package);
		fputs("{\"private\":true}\n", package);
		fclose(package);
		install(arena, folder);
	}
	close(lock);
	return is_installed(arena, folder);
}

/* ---- its server ---- */

static void fedify_start(struct arena *arena, const char *folder)
{
	const char *top = getenv("POSTRIDER_TOP");
	const char *script = arena_printf(
	    arena, "%s/tests/integration/fedify.mjs", top ? top : ".");
	char text[16] = "";
	int in[2];
	int out[2];

	cr_assert(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0);
	fedify.pid = fork();
	if (fedify.pid == 0) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		execlp("node", "node", script, folder, (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	fedify.input = in[1];
	if (read(out[0], text, sizeof(text) - 1) > 0)
		fedify.port = (int)strtol(text, NULL, 10);
	close(out[0]);
	cr_assert_gt(fedify.port, 0, "%s did not start", script);
	fedify.origin =
	    arena_printf(arena, "http://fedi.localhost:%d", fedify.port);
	fedify.fred = arena_printf(arena, "%s/users/fred", fedify.origin);
}

static void begin(void)
{
	struct test_reply reply;
	const char *folder;

	test_db_needed();
	if (system("npm --version >/dev/null 2>&1") != 0 ||
	    system("node --version >/dev/null 2>&1") != 0)
		cr_skip_test("npm or node is not installed");
	world = world_new("nova.localhost", NULL, NULL);
	folder = folder_of(world->arena);
	if (!library_is_there(world->arena, folder))
		cr_skip_test("npm could not install " FEDIFY);
	fedify_start(world->arena, folder);
	world_sql(world, "UPDATE instance_settings SET fediverse = true");
	reply = test_post(world->arena, world->node->port,
	    "/api/fediverse/actors", world->token, "{\"username\":\"alice\"}");
	cr_assert_eq(reply.status, 201, "%s", reply.body);
	alice = test_text(world->arena, &reply, "actor.url");
	alice_id = test_text(world->arena, &reply, "actor.id");
}

static void end(void)
{
	if (fedify.pid) {
		close(fedify.input);
		waitpid(fedify.pid, NULL, 0);
		fedify = (struct fedify){ .pid = 0 };
	}
	world_free(&world);
}

TestSuite(fedify, .init = begin, .fini = end, .timeout = 900);

static const char *control(const char *query)
{
	const struct test_request request = { .method = "GET",
		.path = arena_printf(world->arena, "/control/%s", query) };
	struct test_reply reply =
	    test_http(world->arena, fedify.port, &request);

	cr_assert_eq(reply.status, 200, "%s: %s", query, reply.body);
	return reply.body;
}

static void send(const char *style, const char *type)
{
	control(arena_printf(
	    world->arena, "send?to=%s&style=%s&type=%s", alice, style, type));
}

static int64_t number(const char *query)
{
	return test_db_number(world->node->database, query);
}

static bool until(const char *condition)
{
	return test_db_until(world->node->database,
	    arena_printf(world->arena,
		"SELECT count(*) = 1 AS b FROM fediverse_outbound_queue"
		" WHERE %s",
		condition),
	    WAIT_MS);
}

Test(fedify, what_it_sends_is_taken_in_both_styles)
{
	send("cavage", "Create");
	send("rfc9421", "Create");
	cr_expect_eq(number("SELECT count(*) AS n FROM fediverse_inbound"
			    " WHERE type = 'Create'"),
	    2);
	cr_expect_eq(number("SELECT count(*) AS n FROM fediverse_keys"
			    " WHERE pem IS NOT NULL"),
	    1);
}

Test(fedify, its_follow_is_accepted_and_it_believes_us)
{
	send("rfc9421", "Follow");
	cr_expect_eq(number("SELECT count(*) AS n FROM fediverse_followers"
			    " WHERE accepted_at IS NOT NULL"),
	    1);
	cr_assert(until("status = 'delivered'"));
	cr_expect(strstr(control("received"), "\"type\":\"Accept\""));
}

/* An activity of alice's for fred. */
static void enqueue(int id)
{
	world_sql(world,
	    "SELECT fediverse_enqueue('%s/activities/%d', '{\"@context\":"
	    "\"https://www.w3.org/ns/activitystreams\",\"id\":"
	    "\"%s/activities/%d\",\"type\":\"Create\",\"actor\":\"%s\","
	    "\"to\":[\"%s\"],\"object\":{\"type\":\"Note\",\"id\":"
	    "\"%s/notes/%d\",\"attributedTo\":\"%s\",\"content\":\"hello\"}}',"
	    " '%s/inbox', '%s')",
	    alice, id, alice, id, alice, fedify.fred, alice, id, alice,
	    fedify.fred, alice_id);
}

Test(fedify, what_we_send_is_taken_in_both_styles)
{
	static const char *const styles[] = { "cavage", "rfc9421" };

	for (int i = 0; i < (int)COUNT(styles); i++) {
		world_sql(world,
		    "UPDATE instance_settings SET fediverse_first_style = '%s';"
		    "DELETE FROM fediverse_domains",
		    styles[i]);
		enqueue(i);
		cr_assert(until(arena_printf(world->arena,
		    "activity_id LIKE '%%/%d' AND status = 'delivered'"
		    " AND attempts = 1",
		    i)));
		cr_expect(strstr(control("received"),
			      arena_printf(
				  world->arena, "\"style\":\"%s\"", styles[i])),
		    "%s", styles[i]);
	}
}

Test(fedify, a_changed_body_is_refused_there_and_here)
{
	static const char *const styles[] = { "cavage", "rfc9421" };

	for (size_t i = 0; i < COUNT(styles); i++)
		cr_expect_str_eq(
		    control(arena_printf(world->arena,
			"forge?to=%s/inbox&style=%s", alice, styles[i])),
		    "202 401", "%s", styles[i]);
	control("tamper");
	enqueue(1);
	cr_assert(until("attempts = 1 AND status <> 'delivered'"
			" AND last_error LIKE '%401%'"));
	cr_expect_str_eq(control("received"), "[]");
}
