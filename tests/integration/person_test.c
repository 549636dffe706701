/* Whom an event speaks of: one row each, nobody merged, nobody revived. */
#include <criterion/criterion.h>
#include <pthread.h>

#include "common/federation/person.h"
#include "tests/integration/relay_site.h"
#include "tests/lib/test_db.h"

static struct relay_site site;

static void begin(void)
{
	test_db_needed();
	relay_site_begin(&site);
}

static void end(void)
{
	relay_site_end(&site);
}

TestSuite(person, .init = begin, .fini = end, .timeout = 300);

static int64_t resolve(struct person *person)
{
	AUTO(tx_end) struct tx *tx = tx_new(site.conn, site.arena);
	struct origin source;
	struct err err = { 0 };

	cr_assert(origin_parse(site.arena, "https://luna.test", &source));
	person->wanted = true;
	cr_assert(persons_find(tx, &site.node, person, 1, &err) &&
		persons_make(tx, &site.node, &source, person, 1, &err) &&
		tx_commit(tx, &err),
	    "%s", err.text);
	return person->id;
}

static const char *name_of(int64_t id)
{
	return relay_site_text(&site,
	    arena_printf(site.arena,
		"SELECT username AS t FROM users WHERE id = %" PRId64, id));
}

Test(person, our_own_people_are_found_by_id_and_never_made)
{
	struct person alice = { .host = "nova.test",
		.home_user_id =
		    arena_printf(site.arena, "%" PRId64, site.alice) };
	struct person nobody = { .host = "nova.test", .home_user_id = "12" };
	struct person odd = { .host = "nova.test", .home_user_id = "alice" };

	cr_expect_eq(resolve(&alice), site.alice);
	cr_expect_eq(resolve(&nobody), 0);
	cr_expect_eq(resolve(&odd), 0);
}

Test(person, equal_ids_of_two_nodes_are_two_people)
{
	struct person here = { .host = "luna.test", .home_user_id = "5" };
	struct person there = { .host = "orbit.test", .home_user_id = "5" };
	int64_t first = resolve(&here);

	cr_expect_neq(resolve(&there), first);
	cr_expect_str_eq(name_of(first), "5@luna.test");
	here = (struct person){ .host = "luna.test", .home_user_id = "5" };
	cr_expect_eq(resolve(&here), first);
}

Test(person, a_taken_name_gets_a_suffix)
{
	struct person upper = { .host = "luna.test", .home_user_id = "Zed" };
	struct person lower = { .host = "luna.test", .home_user_id = "zed" };

	cr_expect_str_eq(name_of(resolve(&upper)), "zed@luna.test");
	cr_expect_str_eq(name_of(resolve(&lower)), "zed_1@luna.test");
}

Test(person, more_names_than_suffixes_still_find_one)
{
	for (int i = 0; i < 11; i++)
		test_db_script(site.conninfo,
		    arena_printf(site.arena,
			"INSERT INTO users (username, password_hash) VALUES "
			"('zed%s@luna.test', 'x')",
			i ? arena_printf(site.arena, "_%d", i) : ""));
	cr_expect_neq(resolve(&(struct person){
			  .host = "luna.test", .home_user_id = "zed" }),
	    0);
}

Test(person, an_account_without_home_id_is_bound_by_its_own_node_only)
{
	struct person other = {
		.host = "orbit.test", .home_user_id = "8", .username = "mia"
	};
	struct person mia = {
		.host = "luna.test", .home_user_id = "7", .username = "Mia"
	};
	struct person imposter = {
		.host = "luna.test", .home_user_id = "9", .username = "mia"
	};
	int64_t account;

	test_db_script(site.conninfo,
	    "INSERT INTO users (username, password_hash, home_instance) VALUES "
	    "('mia@luna.test', 'real', 'luna.test'), "
	    "('mia@orbit.test', 'real', 'orbit.test')");
	account = relay_site_number(&site,
	    "SELECT id AS n FROM users WHERE username = 'mia@luna.test'");
	cr_expect_str_eq(name_of(resolve(&other)), "8@orbit.test");
	cr_expect_eq(resolve(&mia), account);
	cr_expect_neq(resolve(&imposter), account, "a bound id stays bound");
}

Test(person, a_profile_fills_only_what_is_empty)
{
	struct person zed = { .host = "luna.test",
		.home_user_id = "5",
		.username = "zed",
		.avatar = "z.png" };
	int64_t id = resolve(&zed);

	zed = (struct person){ .host = "luna.test",
		.home_user_id = "5",
		.display_name = "Other",
		.avatar = "other.png",
		.avatar_color = "plaid" };
	resolve(&zed);
	cr_expect_str_eq(relay_site_text(&site,
			     arena_printf(site.arena,
				 "SELECT display_name || ' ' || avatar || ' ' "
				 "|| coalesce(avatar_color, 'none') AS t "
				 "FROM users WHERE id = %" PRId64,
				 id)),
	    "zed https://luna.test/api/uploads/z.png none");
}

Test(person, an_account_here_is_told_about_by_its_home_only)
{
	struct person ours = { .host = "orbit.test",
		.home_user_id = "9",
		.display_name = "Forged",
		.avatar = "https://luna.test/forged.png" };

	test_db_script(site.conninfo,
	    "INSERT INTO users (username, password_hash, home_instance,"
	    " home_user_id) VALUES ('ada@orbit.test', 'x', 'orbit.test', '9')");
	resolve(&ours);
	cr_expect_eq(relay_site_number(&site,
			 "SELECT count(*) AS n FROM users WHERE display_name IS"
			 " NOT NULL AND home_instance = 'orbit.test'"),
	    0);
}

Test(person, marks_of_deletion_are_no_names)
{
	struct person gone = { .host = "luna.test",
		.home_user_id = "5",
		.username = "!deleted:5" };

	resolve(&gone);
	cr_expect_eq(relay_site_number(&site,
			 "SELECT count(*) AS n FROM users "
			 "WHERE display_name IS NOT NULL "
			 "AND home_user_id = '5'"),
	    0);
}

/* ---- at the same moment ---- */

enum { THREADS = 20 };

struct racer {
	pthread_t thread;
	struct peer peer;
	const char *event;
	char answer[256];
};

/* Its own arena and connection: nothing is shared but the database. */
static void *race(void *arg)
{
	struct racer *racer = arg;
	struct relay_site own = site;
	struct conn *conn = test_db_conn(site.conninfo);

	own.arena = arena_new();
	snprintf(racer->answer, sizeof(racer->answer), "%s",
	    relay_site_apply(&own, conn, &racer->peer, racer->event, false));
	conn_free(&conn);
	arena_free(&own.arena);
	return NULL;
}

Test(person, twenty_first_contacts_make_one_stub_and_one_conversation)
{
	static struct racer racers[THREADS];

	test_db_script(site.conninfo,
	    "INSERT INTO users (username, password_hash) VALUES "
	    "('700@luna.test', 'x')");
	for (int i = 0; i < THREADS; i++) {
		racers[i].peer = site.luna;
		racers[i].event = relay_site_create(
		    &site, arena_printf(site.arena, "m%d", i), "hi");
	}
	for (int i = 0; i < THREADS; i++)
		cr_assert_eq(
		    pthread_create(&racers[i].thread, NULL, race, &racers[i]),
		    0);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(racers[i].thread, NULL);
		cr_expect(strstr(racers[i].answer, "\"rejected\":[]"), "%s",
		    racers[i].answer);
	}
	cr_expect_str_eq(relay_site_text(&site,
			     "SELECT string_agg(username, ' ') AS t FROM users "
			     "WHERE home_user_id = '700'"),
	    "700_1@luna.test");
	cr_expect_eq(
	    relay_site_number(&site, "SELECT count(*) AS n FROM dm_channels"),
	    1);
	cr_expect_eq(relay_site_number(&site,
			 "SELECT count(*) AS n FROM dm_messages m JOIN "
			 "conversation_events e ON e.entity_id = m.id"),
	    THREADS);
}

/* Two nodes that speak of a third one's person take no common peer lock. */
Test(person, two_peers_that_name_the_same_people_do_not_deadlock)
{
	static struct racer racers[THREADS];
	struct peer peers[2] = { site.luna,
		relay_site_peer(&site, "orbit.test") };

	for (int i = 0; i < THREADS; i++) {
		const char *host = peers[i % 2].host;

		racers[i].peer = peers[i % 2];
		racers[i].event = arena_printf(site.arena,
		    "{\"eventType\":\"create\",\"messageId\":\"m%d\","
		    "\"participants\":[{\"homeUserId\":\"1\",\"homeInstance\":"
		    "\"%s\"},{\"homeUserId\":\"%" PRId64
		    "\",\"homeInstance\":\"nova.test\"}],\"message\":{"
		    "\"homeUserId\":\"1\",\"homeInstance\":\"%s\","
		    "\"content\":\"x\",\"createdAt\":1}}",
		    i, host, site.alice, host);
	}
	for (int i = 0; i < THREADS; i++)
		cr_assert_eq(
		    pthread_create(&racers[i].thread, NULL, race, &racers[i]),
		    0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(racers[i].thread, NULL);
	cr_expect_eq(
	    relay_site_number(&site, "SELECT count(*) AS n FROM dm_messages"),
	    THREADS);
	cr_expect_eq(
	    relay_site_number(&site, "SELECT count(*) AS n FROM users"), 4);
}
