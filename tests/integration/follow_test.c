/* Who follows our actors, who is gone, and what the application sees of it. */
#include <criterion/criterion.h>

#include "common/pg/listen.h"
#include "tests/integration/inbox_site.h"
#include "tests/lib/test_db.h"

#define FOLLOWERS \
	"SELECT count(*) AS n FROM fediverse_followers" \
	" WHERE accepted_at IS NOT NULL"

enum { WAIT_MS = 10000 };

static struct inbox_site site;

static void begin(void)
{
	test_db_needed();
	inbox_site_begin(&site, NULL);
}

static void end(void)
{
	inbox_site_end(&site);
}

TestSuite(follow, .init = begin, .fini = end, .timeout = 180);

#define deliver(...) inbox_deliver(&site, &(const struct parcel){ __VA_ARGS__ })

static const char *quoted(const char *text)
{
	return arena_printf(site.arena, "\"%s\"", text);
}

static int follow(const char *id)
{
	return deliver(.body = inbox_activity(
			   &site, id, "Follow", quoted(site.alice)))
	    .status;
}

static const char *text(const char *query)
{
	return test_db_text(site.arena, site.world->node->database, query);
}

Test(follow, is_kept_with_its_inboxes_and_accepted_at_once)
{
	cr_assert_eq(follow("f1"), 202);
	cr_expect_eq(inbox_number(&site, FOLLOWERS), 1);
	cr_expect_str_eq(text("SELECT follower || ' ' || inbox || ' ' ||"
			      " shared_inbox AS t FROM fediverse_followers"),
	    arena_printf(site.arena, "%s %s/inbox %s/inbox", site.bob, site.bob,
		site.origin));
	cr_expect_str_eq(text("SELECT target_inbox AS t FROM"
			      " fediverse_outbound_queue"),
	    arena_printf(site.arena, "%s/inbox", site.bob));
	cr_expect_str_eq(text("SELECT actor_user_id::text AS t FROM"
			      " fediverse_outbound_queue"),
	    site.alice_id);
	cr_expect_str_eq(
	    text("SELECT concat_ws(' ', j->>'type', j->>'actor',"
		 " j#>>'{object,type}', j#>>'{object,id}',"
		 " j#>>'{object,actor}', j#>>'{object,object}') AS t"
		 " FROM (SELECT payload_json::jsonb AS j"
		 " FROM fediverse_outbound_queue) q"),
	    arena_printf(site.arena, "Accept %s Follow %s/activities/f1 %s %s",
		site.alice, site.origin, site.bob, site.alice));
	/* Asked again under another id, it is answered again. */
	cr_expect_eq(follow("f2"), 202);
	cr_expect_eq(inbox_number(&site, FOLLOWERS), 1);
	cr_expect_eq(inbox_number(&site,
			 "SELECT count(*) AS n FROM fediverse_outbound_queue"),
	    2);
}

Test(follow, is_left_to_the_application_where_the_actor_wants_it)
{
	world_sql(site.world,
	    "UPDATE fediverse_actors SET approves_followers = true");
	cr_assert_eq(follow("f1"), 202);
	cr_expect_eq(inbox_number(&site, FOLLOWERS), 0);
	cr_expect_eq(inbox_number(&site,
			 "SELECT count(*) AS n FROM fediverse_outbound_queue"),
	    0);
	cr_expect_eq(inbox_number(&site,
			 "SELECT count(*) AS n FROM fediverse_followers("
			 "fediverse_actor('ALICE')) WHERE NOT accepted"),
	    1);
	world_sql(site.world,
	    "SELECT fediverse_follower_settle('%s', '%s', true)", site.alice_id,
	    site.bob);
	cr_expect_eq(inbox_number(&site, FOLLOWERS), 1);
	world_sql(site.world,
	    "SELECT fediverse_follower_settle('%s', '%s', false)",
	    site.alice_id, site.bob);
	cr_expect_eq(inbox_number(&site,
			 "SELECT count(*) AS n FROM fediverse_followers"),
	    0);
}

Test(follow, is_undone_by_its_id_or_by_what_it_says)
{
	const char *const objects[] = {
		quoted(
		    arena_printf(site.arena, "%s/activities/f1", site.origin)),
		arena_printf(site.arena,
		    "{\"id\":\"%s/activities/other\",\"type\":\"Follow\","
		    "\"actor\":\"%s\",\"object\":\"%s\"}",
		    site.origin, site.bob, site.alice),
	};
	const char *like = arena_printf(
	    site.arena, "{\"type\":\"Like\",\"object\":\"%s\"}", site.alice);

	for (size_t i = 0; i < COUNT(objects); i++) {
		world_sql(site.world, "DELETE FROM fediverse_inbound");
		cr_assert_eq(follow("f1"), 202);
		cr_expect_eq(
		    deliver(.body = inbox_activity(&site, "u0", "Undo", like))
			.status,
		    202);
		cr_expect_eq(inbox_number(&site, FOLLOWERS), 1);
		cr_expect_eq(deliver(.body = inbox_activity(
					 &site, "u1", "Undo", objects[i]))
				 .status,
		    202);
		cr_expect_eq(inbox_number(&site, FOLLOWERS), 0, "%zu", i);
	}
}

Test(follow, of_nobody_of_ours_is_stored_and_followed_by_nothing)
{
	const char *const objects[] = { quoted("https://x.example/users/a"),
		quoted(arena_printf(
		    site.arena, "%s/users/nobody", site.world->node->origin)),
		quoted(arena_printf(
		    site.arena, "%s/actor", site.world->node->origin)),
		"{}", "[]", "7" };

	for (size_t i = 0; i < COUNT(objects); i++)
		cr_expect_eq(deliver(.body = inbox_activity(&site,
					 arena_printf(site.arena, "f%zu", i),
					 "Follow", objects[i]))
				 .status,
		    202);
	cr_expect_eq(inbox_number(&site,
			 "SELECT count(*) AS n FROM fediverse_followers"),
	    0);
	cr_expect_eq(
	    inbox_number(&site, "SELECT count(*) AS n FROM fediverse_inbound"),
	    (int64_t)COUNT(objects));
}

Test(follow, of_a_server_whose_key_stands_apart_asks_for_the_inbox)
{
	const char *key_id = arena_printf(site.arena, "%s/main-key", site.bob);
	struct buf stub;

	buf_init(&stub, site.arena, 8192);
	buf_printf(&stub,
	    "{\"id\":\"%s\",\"type\":\"Person\",\"preferredUsername\":\"bob\","
	    "\"publicKey\":{\"id\":\"%s\",\"owner\":\"%s\","
	    "\"publicKeyPem\":",
	    site.bob, key_id, site.bob);
	json_quote(&stub, site.key.public_pem);
	buf_text(&stub, "}}");
	inbox_shows(&site, "/users/bob/main-key",
	    &(const struct test_peer_answer){ .status = 200,
		.content_type = "application/activity+json",
		.body = stub.data });
	cr_expect_eq(deliver(.key_id = key_id).status, 202);
	cr_expect_eq(test_peer_count(site.luna, "/users/bob"), 0);
	cr_expect_eq(deliver(.key_id = key_id,
			 .body = inbox_activity(
			     &site, "f1", "Follow", quoted(site.alice)))
			 .status,
	    202);
	cr_expect_eq(test_peer_count(site.luna, "/users/bob"), 1);
	cr_expect_eq(inbox_number(&site, FOLLOWERS), 1);
}

static int depart(const char *actor)
{
	const char *body = arena_printf(site.arena,
	    "{\"id\":\"%s#delete\",\"type\":\"Delete\",\"actor\":\"%s\","
	    "\"object\":\"%s\"}",
	    actor, actor, actor);

	return deliver(.body = body,
	    .key_id = arena_printf(site.arena, "%s#main-key", actor))
	    .status;
}

Test(follow, ends_when_the_follower_is_deleted)
{
	cr_assert_eq(follow("f1"), 202);
	cr_expect_eq(depart(site.bob), 202);
	cr_expect_eq(inbox_number(&site, FOLLOWERS), 0);
	cr_expect_eq(
	    inbox_number(&site, "SELECT count(*) AS n FROM fediverse_keys"), 0);
	cr_expect_eq(inbox_number(&site,
			 "SELECT count(*) AS n FROM fediverse_inbound"
			 " WHERE type = 'Delete'"),
	    1);
}

Test(follow, the_departure_of_strangers_costs_nothing)
{
	for (int i = 0; i < 100; i++)
		cr_expect_eq(depart(arena_printf(site.arena,
				 "http://h%d.localhost:%d/users/stranger%d",
				 i % 50, test_peer_port(site.luna), i)),
		    202);
	cr_expect_eq(test_peer_count(site.luna, NULL), 0);
	cr_expect_eq(inbox_number(&site,
			 "SELECT (SELECT count(*) FROM fediverse_inbound) +"
			 " (SELECT count(*) FROM fediverse_keys) +"
			 " (SELECT count(*) FROM s2s_requests) AS n"),
	    0);
}

Test(follow, a_departure_is_proved_by_a_server_that_says_gone)
{
	static const struct test_peer_answer gone = { .status = 410,
		.body = "{}" };
	const struct key_pair other = key_pair_fresh(site.arena);
	const char *body = arena_printf(site.arena,
	    "{\"id\":\"%s#delete\",\"type\":\"Delete\",\"actor\":\"%s\","
	    "\"object\":\"%s\"}",
	    site.bob, site.bob, site.bob);

	cr_assert_eq(follow("f1"), 202);
	world_sql(site.world, "DELETE FROM fediverse_keys");
	/* Forged while he is there; then by an address that is not his. */
	cr_expect_eq(deliver(.body = body, .key = &other).status, 401);
	inbox_shows(&site, "/users/bob/gone", &gone);
	cr_expect_eq(deliver(.body = body,
			 .key_id = arena_printf(
			     site.arena, "%s/gone#main-key", site.bob))
			 .status,
	    401);
	cr_expect_eq(inbox_number(&site, FOLLOWERS), 1);
	world_sql(site.world, "DELETE FROM fediverse_keys");
	inbox_shows(&site, "/users/bob", &gone);
	cr_expect_eq(deliver(.body = body).status, 202);
	cr_expect_eq(inbox_number(&site, FOLLOWERS), 0);
}

Test(follow, a_verified_request_revives_its_server)
{
	world_sql(site.world,
	    "INSERT INTO fediverse_domains (domain, state, died_at, gone)"
	    " VALUES ('%s', 'dead', now(), true)",
	    strstr(site.origin, "://") + 3);
	cr_expect_eq(deliver(.is_unsigned = true).status, 401);
	cr_expect_eq(inbox_number(&site,
			 "SELECT count(*) AS n FROM fediverse_domains"
			 " WHERE state = 'dead'"),
	    1);
	cr_assert_eq(deliver(.path = NULL).status, 202);
	cr_expect_eq(inbox_number(&site,
			 "SELECT count(*) AS n FROM fediverse_domains"
			 " WHERE state = 'closed' AND NOT gone"),
	    1);
}

/* ---- the application ---- */

static int64_t received_as_app(const char *script)
{
	const char *as =
	    test_db_as(site.arena, site.world->node->database, "postrider_app");

	return test_db_number(as, script);
}

Test(follow, the_application_takes_each_activity_once)
{
	const char *take = "SELECT count(*) AS n FROM fediverse_receive(2)";
	const char *waiting = "SELECT waiting AS n FROM ops.fediverse_inbox";

	for (int i = 0; i < 3; i++)
		cr_assert_eq(deliver(.path = NULL).status, 202);
	cr_expect_eq(inbox_number(&site, waiting), 3);
	test_db_script(
	    test_db_as(site.arena, site.world->node->database, "postrider_app"),
	    "BEGIN; SELECT fediverse_receive(); ROLLBACK");
	cr_expect_eq(received_as_app(take), 2);
	cr_expect_eq(received_as_app(take), 1);
	cr_expect_eq(received_as_app(take), 0);
	cr_expect_eq(inbox_number(&site, waiting), 0);
	cr_expect_str_eq(test_db_text(site.arena,
			     test_db_as(site.arena, site.world->node->database,
				 "postrider_app"),
			     "SELECT fediverse_actor('alice')::text AS t"),
	    site.alice_id);
}

struct ear {
	struct loop *loop;
	char heard[64];
};

static void on_up(void *arg UNUSED)
{
	cr_assert_eq(deliver(.path = NULL).status, 202);
}

static void on_hint(void *arg, const char *channel UNUSED, const char *payload)
{
	struct ear *ear = arg;

	snprintf(ear->heard, sizeof(ear->heard), "%s", payload);
	loop_stop(ear->loop);
}

static void too_late(void *arg)
{
	struct ear *ear = arg;

	loop_stop(ear->loop);
}

Test(follow, the_application_hears_of_each_activity)
{
	static const char *const channels[] = { "postrider_inbox", NULL };
	struct ear ear = { .loop = loop_new() };
	const struct listener_def def = {
		.conninfo = test_db_as(
		    site.arena, site.world->node->database, "postrider_app"),
		.application = "app",
		.channels = channels,
		.on_up = on_up,
		.hint = on_hint,
		.arg = &ear,
	};
	struct listener *listener = listener_new(ear.loop, &def);
	struct loop_timer *timer = loop_timer_new(ear.loop, too_late, &ear);

	loop_timer_arm(timer, WAIT_MS);
	loop_run(ear.loop);
	cr_expect_str_eq(
	    ear.heard, text("SELECT id::text AS t FROM fediverse_inbound"));
	listener_free(&listener);
	loop_timer_free(&timer);
	loop_free(&ear.loop);
}

/* ---- whom ours follow ---- */

/* A Follow of alice's, enqueued as an application does. */
static void ask_bob(const char *id)
{
	world_sql(site.world,
	    "SELECT fediverse_enqueue('%s', '{\"id\":\"%s\",\"type\":"
	    "\"Follow\",\"object\":\"%s\"}', '%s/inbox', '%s')",
	    id, id, site.bob, site.bob, site.alice_id);
}

static int answer(const char *id, const char *type, const char *object)
{
	return deliver(.body = inbox_activity(&site, id, type, object)).status;
}

static const char *following(void)
{
	return text("SELECT coalesce(string_agg(follow_id || ' ' || state,"
		    " ' '), 'nobody') AS t FROM fediverse_following("
		    "fediverse_actor('alice'))");
}

Test(follow, an_answer_to_our_own_is_noted)
{
	const char *embedded = arena_printf(site.arena,
	    "{\"type\":\"Follow\",\"actor\":\"%s\",\"object\":\"%s\"}",
	    site.alice, site.bob);

	ask_bob("https://x.example/1");
	cr_expect_str_eq(following(), "https://x.example/1 asked");
	cr_assert_eq(answer("a1", "Accept", "\"https://x.example/9\""), 202);
	cr_expect_str_eq(following(), "https://x.example/1 asked");
	cr_assert_eq(answer("a2", "Accept", "\"https://x.example/1\""), 202);
	cr_expect_str_eq(following(), "https://x.example/1 accepted");
	cr_assert_eq(answer("a3", "Reject", embedded), 202);
	cr_expect_str_eq(following(), "https://x.example/1 rejected");
	ask_bob("https://x.example/2");
	cr_expect_str_eq(following(), "https://x.example/2 asked");
	cr_assert_eq(answer("a4", "Accept", embedded), 202);
	cr_expect_str_eq(following(), "https://x.example/2 accepted");
	cr_expect_eq(
	    inbox_number(&site, "SELECT count(*) AS n FROM fediverse_inbound"),
	    4, "the application sees the answers, too");
}

Test(follow, only_who_was_asked_answers)
{
	world_sql(site.world,
	    "SELECT fediverse_enqueue('https://x.example/1', '{\"type\":"
	    "\"Follow\",\"object\":{\"id\":\"https://far.example/eve\"}}',"
	    " 'https://far.example/inbox', '%s')",
	    site.alice_id);
	cr_assert_eq(answer("a1", "Accept", "\"https://x.example/1\""), 202);
	cr_expect_str_eq(following(), "https://x.example/1 asked");
}

Test(follow, our_undo_ends_ours)
{
	static const char *const undos[] = { "\"https://x.example/1\"",
		"{\"id\":\"https://x.example/1\",\"type\":\"Follow\"}" };

	for (size_t i = 0; i < COUNT(undos); i++) {
		ask_bob("https://x.example/1");
		cr_expect_str_eq(following(), "https://x.example/1 asked");
		world_sql(site.world,
		    "SELECT fediverse_enqueue('u%d', '{\"type\":\"Undo\","
		    "\"object\":%s}', '%s/inbox', '%s')",
		    (int)i, undos[i], site.bob, site.alice_id);
		cr_expect_str_eq(following(), "nobody");
		world_sql(site.world, "DELETE FROM fediverse_outbound_queue");
	}
}

Test(follow, what_cannot_be_read_is_sent_all_the_same)
{
	world_sql(site.world,
	    "SELECT fediverse_enqueue('odd', '{\"type\":\"Follow\","
	    "\"object\":\"a\\u0000b\"}', '%s/inbox', '%s')",
	    site.bob, site.alice_id);
	cr_expect_str_eq(following(), "nobody");
	cr_expect_eq(inbox_number(&site,
			 "SELECT count(*) AS n FROM fediverse_outbound_queue"),
	    1);
}
