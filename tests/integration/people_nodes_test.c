/* Friends, profiles and ends of identities between two real nodes. */
#include <signal.h>

#include <criterion/criterion.h>

#include "tests/lib/test_db.h"
#include "tests/lib/test_trust.h"

enum { WAIT_MS = 20000 };

static struct world *nova, *orbit;
static struct test_person alice, bob;

static void begin(void)
{
	static const char *const settings[] = { "rate_limits=off", NULL };

	test_db_needed();
	nova = world_new("nova.localhost", NULL, settings);
	orbit = world_new("orbit.localhost", NULL, settings);
	cr_assert_eq(world_initiate(nova, orbit->node->origin).status, 200);
	alice = test_person(nova->node, nova->node->port, "alice");
	bob = test_person(orbit->node, orbit->node->port, "bob");
}

static void end(void)
{
	world_free(&nova);
	world_free(&orbit);
}

TestSuite(people_nodes, .init = begin, .fini = end, .timeout = 300);

static struct test_reply call(struct world *world,
    const struct test_person *who, const char *method, const char *path,
    const char *json)
{
	struct test_request request = {
		.method = method,
		.path = path,
		.token = who->token,
		.body = json,
	};

	return test_http(world->arena, world->node->port, &request);
}

static void must(struct world *world, const struct test_person *who,
    const char *method, const char *path, const char *json)
{
	struct test_reply reply = call(world, who, method, path, json);

	cr_assert(reply.status == 200 || reply.status == 201, "%s %s: %d %s",
	    method, path, reply.status, reply.body);
}

static void ask(struct world *from, const struct test_person *who,
    struct world *to, const struct test_person *other)
{
	must(from, who, "POST", "/api/social/requests",
	    arena_printf(from->arena,
		"{\"homeUserId\":\"%s\",\"homeInstance\":\"%s\"}", other->id,
		to->node->origin));
}

static bool becomes(struct world *world, const char *condition)
{
	return test_db_until(world->node->database,
	    arena_printf(world->arena, "SELECT (%s) AS b", condition), WAIT_MS);
}

/* Whatever was owed has been taken. */
static void settle(void)
{
	cr_assert(becomes(nova, "NOT EXISTS (SELECT FROM federation_outbox)"));
	cr_assert(becomes(orbit, "NOT EXISTS (SELECT FROM federation_outbox)"));
	cr_assert(becomes(nova, "NOT EXISTS (SELECT FROM federation_outbox)"));
}

/* friends, pending requests and, last, what was dead on the way. */
static const char *state(struct world *world)
{
	return test_db_text(world->arena, world->node->database,
	    "SELECT (SELECT count(*) FROM friends) || ' ' ||"
	    " (SELECT count(*) FROM friend_requests WHERE status = 'pending')"
	    " || ' ' || (SELECT count(*) FROM dead_letters) AS t");
}

static void expect_both(const char *want)
{
	cr_expect_str_eq(state(nova), want);
	cr_expect_str_eq(state(orbit), want);
}

static const char *pending_path(struct world *world)
{
	return arena_printf(world->arena, "/api/social/requests/%s",
	    test_db_text(world->arena, world->node->database,
		"SELECT id::text AS t FROM friend_requests"
		" WHERE status = 'pending'"));
}

#define PENDING "EXISTS (SELECT FROM friend_requests WHERE status = 'pending')"
#define FRIENDS "EXISTS (SELECT FROM friends)"

static void befriend(void)
{
	ask(nova, &alice, orbit, &bob);
	cr_assert(becomes(orbit, PENDING));
	must(orbit, &bob, "PATCH", pending_path(orbit),
	    "{\"status\":\"accepted\"}");
	cr_assert(becomes(nova, FRIENDS));
	settle();
	expect_both("1 0 0");
}

Test(people_nodes, a_friendship_begins_and_ends_on_both)
{
	struct test_reply reply;

	befriend();
	reply = call(nova, &alice, "GET", "/api/social/friends", NULL);
	cr_expect_str_eq(
	    test_text(nova->arena, &reply, "0.displayName"), "bob");
	must(orbit, &bob, "DELETE",
	    arena_printf(orbit->arena, "/api/social/friends/%s",
		test_db_text(orbit->arena, orbit->node->database,
		    "SELECT id::text AS t FROM users"
		    " WHERE home_instance IS NOT NULL")),
	    NULL);
	settle();
	expect_both("0 0 0");
	/* And again, from the other side. */
	ask(orbit, &bob, nova, &alice);
	cr_assert(becomes(nova, PENDING));
	must(nova, &alice, "PATCH", pending_path(nova),
	    "{\"status\":\"accepted\"}");
	settle();
	expect_both("1 0 0");
}

static int64_t told_of_accounts(struct world *world, const char *name)
{
	return test_db_number(world->node->database,
	    arena_printf(world->arena,
		"SELECT count(*) AS n FROM users WHERE home_instance IS NOT"
		" NULL AND replicated_instances"
		" @> '[{\"username\": \"%s\"}]'",
		name));
}

/* Before anybody writes: who asks and who accepts, and nobody who declines. */
Test(people_nodes, friends_hear_where_else_somebody_has_accounts)
{
	static const char elsewhere[] =
	    "{\"replicatedInstances\":[{\"origin\":\"https://sol.test\","
	    "\"username\":\"%s\"}]}";

	must(nova, &alice, "PATCH", "/api/users/@me",
	    arena_printf(nova->arena, elsewhere, "alice at sol"));
	must(orbit, &bob, "PATCH", "/api/users/@me",
	    arena_printf(orbit->arena, elsewhere, "bob at sol"));
	ask(nova, &alice, orbit, &bob);
	cr_assert(becomes(orbit, PENDING));
	must(orbit, &bob, "PATCH", pending_path(orbit),
	    "{\"status\":\"declined\"}");
	settle();
	cr_expect_eq(told_of_accounts(orbit, "alice at sol"), 1);
	cr_expect_eq(told_of_accounts(nova, "bob at sol"), 0);
	befriend();
	settle();
	cr_expect_eq(told_of_accounts(nova, "bob at sol"), 1);
}

Test(people_nodes, declined_and_withdrawn_requests_are_over_on_both)
{
	ask(nova, &alice, orbit, &bob);
	cr_assert(becomes(orbit, PENDING));
	must(orbit, &bob, "PATCH", pending_path(orbit),
	    "{\"status\":\"declined\"}");
	settle();
	expect_both("0 0 0");
	ask(nova, &alice, orbit, &bob);
	cr_assert(becomes(orbit, PENDING));
	must(nova, &alice, "DELETE", pending_path(nova), NULL);
	settle();
	expect_both("0 0 0");
}

static void hold(void)
{
	kill(nova->outboxd->pid, SIGSTOP);
	kill(orbit->outboxd->pid, SIGSTOP);
}

static void let_go(void)
{
	kill(nova->outboxd->pid, SIGCONT);
	kill(orbit->outboxd->pid, SIGCONT);
	settle();
}

Test(people_nodes, requests_that_cross_make_friends_on_both)
{
	hold();
	ask(nova, &alice, orbit, &bob);
	ask(orbit, &bob, nova, &alice);
	let_go();
	expect_both("1 0 0");
}

/* alice withdraws while bob accepts: neither side keeps a friendship. */
Test(people_nodes, accepted_and_withdrawn_at_once_is_over_on_both)
{
	ask(nova, &alice, orbit, &bob);
	cr_assert(becomes(orbit, PENDING));
	hold();
	must(nova, &alice, "DELETE", pending_path(nova), NULL);
	must(orbit, &bob, "PATCH", pending_path(orbit),
	    "{\"status\":\"accepted\"}");
	let_go();
	expect_both("0 0 0");
}

/* Both end it, and one asks anew before he has heard. */
Test(people_nodes, ended_by_both_and_asked_anew_it_stays_one_request)
{
	static const char other[] =
	    "SELECT '/api/social/friends/' || id AS t FROM users"
	    " WHERE home_instance IS NOT NULL";

	befriend();
	hold();
	must(nova, &alice, "DELETE",
	    test_db_text(nova->arena, nova->node->database, other), NULL);
	must(orbit, &bob, "DELETE",
	    test_db_text(orbit->arena, orbit->node->database, other), NULL);
	ask(orbit, &bob, nova, &alice);
	let_go();
	expect_both("0 1 0");
}

Test(people_nodes, a_profile_travels_to_friends)
{
	befriend();
	must(nova, &alice, "PATCH", "/api/users/@me",
	    "{\"displayName\":\"Alice A.\",\"bio\":\"one\"}");
	must(nova, &alice, "PATCH", "/api/users/@me",
	    "{\"bio\":\"two\",\"avatar\":\"a.png\"}");
	cr_expect(becomes(orbit,
	    arena_printf(orbit->arena,
		"EXISTS (SELECT FROM users WHERE display_name = 'Alice A.'"
		" AND bio = 'two' AND avatar = '%s/api/uploads/a.png')",
		nova->node->origin)));
	settle();
	cr_expect(becomes(orbit,
	    "EXISTS (SELECT FROM user_events e JOIN users u"
	    " ON u.id = e.user_id WHERE kind = 'user_updated'"
	    " AND u.username = 'bob')"));
}

/* alice has an account at orbit, and takes it away from home. */
Test(people_nodes, an_account_elsewhere_ends_from_home)
{
	struct test_reply reply = test_post(orbit->arena, orbit->node->port,
	    "/api/auth/register", NULL,
	    arena_printf(orbit->arena,
		"{\"username\":\"alice@nova.localhost\","
		"\"password\":\"" TEST_PASSWORD "\","
		"\"homeInstance\":\"nova.localhost\",\"homeUserId\":\"%s\"}",
		alice.id));
	struct test_person guest = { .token = test_text(
					 orbit->arena, &reply, "token") };

	cr_assert_eq(reply.status, 201, "%s", reply.body);
	cr_expect_eq(
	    call(orbit, &guest, "PATCH", "/api/users/@me", "{\"bio\":\"x\"}")
		.status,
	    403);
	must(nova, &alice, "PATCH", "/api/users/@me",
	    arena_printf(nova->arena,
		"{\"bio\":\"of nova\",\"replicatedInstances\":[{\"origin\":"
		"\"%s\",\"username\":\"alice@nova.localhost\"}]}",
		orbit->node->origin));
	cr_expect(
	    becomes(orbit, "EXISTS (SELECT FROM users WHERE bio = 'of nova')"));
	reply = call(nova, &alice, "POST",
	    "/api/users/@me/federation-identity/delete",
	    arena_printf(nova->arena,
		"{\"origins\":[\"%s\"],\"mode\":\"full\"}",
		orbit->node->origin));
	cr_expect_str_eq(reply.body,
	    arena_printf(nova->arena,
		"{\"results\":{\"%s\":{\"success\":true}}}",
		orbit->node->origin));
	cr_expect_eq(
	    call(orbit, &guest, "GET", "/api/users/@me", NULL).status, 401);
	cr_expect_eq(test_db_number(orbit->node->database,
			 "SELECT count(*) AS n FROM users WHERE is_deleted"),
	    1);
	reply = call(nova, &alice, "GET", "/api/users/@me", NULL);
	cr_expect_eq(
	    json_count(test_json(nova->arena, &reply, "replicatedInstances")),
	    0);
}

Test(people_nodes, who_deletes_himself_is_no_friend_elsewhere)
{
	befriend();
	must(nova, &alice, "DELETE", "/api/users/@me",
	    "{\"username\":\"alice\",\"password\":\"" TEST_PASSWORD "\"}");
	settle();
	expect_both("0 0 0");
}
