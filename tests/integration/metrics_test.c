/* What daemons show after messages went in both directions. */
#include <math.h>

#include <criterion/criterion.h>

#include "tests/lib/test_db.h"
#include "tests/lib/test_trust.h"

enum { SOON_MS = 10000 };

static const char *const measured[] = { "metrics_listen=127.0.0.1:0", NULL };
static const char *const limited[] = { "metrics_listen=127.0.0.1:0",
	"rate_limits=on", NULL };

static struct world *nova, *orbit;

static struct world *node_new(const char *host)
{
	struct world *world = world_new(host, NULL, limited);

	test_daemon_stop(world->outboxd);
	world->outboxd = test_outboxd(world->node, measured);
	return world;
}

static void begin(void)
{
	test_db_needed();
	nova = node_new("nova.localhost");
	orbit = node_new("orbit.localhost");
}

static void end(void)
{
	world_free(&nova);
	world_free(&orbit);
}

TestSuite(metrics_pages, .init = begin, .fini = end, .timeout = 120);

static int page_port(const struct test_daemon *daemon)
{
	FILE *file = fopen(daemon->log, "re");
	const char *port;
	char *line = NULL;
	size_t room = 0;
	int found = 0;

	while (file && getline(&line, &room, file) >= 0)
		if ((strstr(line, "event=metrics.listening") ||
			strstr(line, "event=frontd.metrics")) &&
		    (port = strstr(line, "port=")) != NULL)
			found = (int)strtol(port + 5, NULL, 10);
	free(line);
	if (file)
		fclose(file);
	return found;
}

/* A sample's value; NAN when the page lacks it. */
static double sample(
    struct world *world, const struct test_daemon *daemon, const char *name)
{
	struct test_reply page =
	    test_get(world->arena, page_port(daemon), "/metrics", NULL);
	const char *line = strstr(
	    page.body, arena_printf(world->arena, "\npostrider_%s ", name));

	return line ? strtod(strchr(line, ' '), NULL) : NAN;
}

/* ---- a message from one node's admin to the other's ---- */

static const char *admin_id(struct world *world)
{
	return arena_printf(world->arena, "%" PRId64,
	    test_db_number(world->node->database,
		"SELECT id AS n FROM users WHERE username = 'admin'"));
}

static void say(struct world *from, struct world *to)
{
	struct arena *arena = from->arena;
	struct test_reply reply =
	    test_post(arena, from->node->port, "/api/dm", from->token,
		arena_printf(arena,
		    "{\"homeUserId\":\"%s\",\"homeInstance\":\"%s\"}",
		    admin_id(to), to->node->origin));

	cr_assert(reply.status == 201 || reply.status == 200, "%d %s",
	    reply.status, reply.body);
	reply = test_post(arena, from->node->port,
	    arena_printf(
		arena, "/api/dm/%s/messages", test_text(arena, &reply, "id")),
	    from->token, "{\"content\":\"good morning\"}");
	cr_assert_eq(reply.status, 201, "%d %s", reply.status, reply.body);
	cr_assert(test_db_until(from->node->database,
	    "SELECT NOT EXISTS (SELECT FROM federation_outbox) AS b", SOON_MS));
}

/* ---- what is shown ---- */

static const char *const of_every_daemon[] = { "db_up", "listener_up",
	"worker_queue_seconds_count" };
static const char *const of_frontd[] = {
	"relay_events_total{type=\"create\",outcome=\"accepted\"}",
	"signature_checks_total{result=\"good\"}",
	"signature_checks_total{result=\"bad\"}",
	"auth_failures_total{reason=\"password\"}",
	"auth_failures_total{reason=\"token\"}",
	"auth_failures_total{reason=\"signature\"}",
	"rate_limited_total{scope=\"route\"}",
};
static const char *const of_outboxd[] = {
	"delivery_attempts_total{outcome=\"accepted\"}",
	"delivery_wait_seconds_count",
	"delivery_total_seconds_count",
	"delivery_total_seconds_sum",
};

static void expect_shown(struct world *world, const struct test_daemon *daemon,
    const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		cr_expect(sample(world, daemon, names[i]) > 0, "%s of %s",
		    names[i], daemon->program);
}

static void expect_daemons(struct world *world)
{
	const struct test_daemon *const daemons[] = { world->frontd,
		world->outboxd };

	for (size_t i = 0; i < COUNT(daemons); i++) {
		expect_shown(
		    world, daemons[i], of_every_daemon, COUNT(of_every_daemon));
		cr_expect_eq(sample(world, daemons[i], "errors_total"), 0);
	}
	expect_shown(world, world->frontd, of_frontd, COUNT(of_frontd));
	expect_shown(world, world->outboxd, of_outboxd, COUNT(of_outboxd));
}

/* Fifteen log-ins are served in two minutes. */
static void misbehave(struct world *world, const char *origin)
{
	for (int i = 0; i < 16; i++)
		test_post(world->arena, world->node->port, "/api/auth/login",
		    NULL,
		    "{\"username\":\"admin\",\"password\":\"not this one\"}");
	test_get(world->arena, world->node->port, "/api/users/@me", "nobody");
	cr_expect_eq(world_relay(world, origin, "invented").status, 401);
}

Test(metrics_pages, both_daemons_show_messages_that_went_both_ways)
{
	cr_assert_eq(world_initiate(nova, orbit->node->origin).status, 200);
	say(nova, orbit);
	say(orbit, nova);
	misbehave(nova, orbit->node->origin);
	misbehave(orbit, nova->node->origin);
	expect_daemons(nova);
	expect_daemons(orbit);
	expect_shown(nova, nova->outboxd,
	    (const char *const[]){
		"asks_total{kind=\"accept\",outcome=\"answered\"}",
		"ask_duration_seconds_count{kind=\"accept\"}" },
	    2);
}

/* ---- the listening connection ---- */

static bool is_up(void *arg)
{
	struct world *world = arg;

	return sample(world, world->outboxd, "listener_up") > 0;
}

static bool came_back(void *arg)
{
	struct world *world = arg;

	return sample(world, world->outboxd, "listener_reconnects_total") > 0;
}

/* The same name as in ops.workers and application_name. */
Test(metrics_pages, a_daemon_says_its_name)
{
	struct test_reply page;
	const char *named;

	cr_assert(test_until(is_up, nova, SOON_MS));
	page =
	    test_get(nova->arena, page_port(nova->outboxd), "/metrics", NULL);
	named = test_db_text(nova->arena, nova->node->database,
	    "SELECT 'postrider_build_info{daemon=\"outboxd\",instance=\"' ||"
	    " instance || '\",version=\"' || version || '\",schema=\"' ||"
	    " schema || '\"} 1' AS t FROM ops.workers WHERE daemon = 'outboxd'"
	    " AND alive");
	cr_expect_not_null(strstr(page.body, named), "%s", named);
}

Test(metrics_pages, a_lost_listener_is_counted_when_it_comes_back)
{
	cr_assert(test_until(is_up, nova, SOON_MS));
	cr_expect_eq(
	    sample(nova, nova->outboxd, "listener_reconnects_total"), 0);
	world_sql(nova,
	    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
	    "datname = current_database() AND query LIKE '%%LISTEN%%' AND "
	    "pid <> pg_backend_pid()");
	cr_assert(test_until(came_back, nova, SOON_MS));
	cr_expect(is_up(nova));
}
