/* Friend events of another node: late, twice, out of order, forged. */
#include <pthread.h>

#include <criterion/criterion.h>

#include "common/base/clock.h"
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

TestSuite(friend_relay, .init = begin, .fini = end, .timeout = 300);

#define ZED "{\"homeUserId\":\"700\",\"homeInstance\":\"luna.test\"}"
#define ZED_PROFILE \
	"{\"username\":\"zed\",\"displayName\":\"Zed\",\"avatar\":\"z.png\"," \
	"\"avatarColor\":\"mint\",\"banner\":\"b.png\",\"bio\":\"hi\"}"

static const char *alice(void)
{
	return arena_printf(site.arena,
	    "{\"homeUserId\":\"%" PRId64 "\","
	    "\"homeInstance\":\"https://nova.test\"}",
	    site.alice);
}

static const char *event(const char *type, const char *from, const char *to,
    const char *status, int64_t at)
{
	static int number;

	return arena_printf(site.arena,
	    "{\"eventType\":\"%s\",\"contextType\":\"friend\","
	    "\"messageId\":\"e%d\",\"encryptionVersion\":0,"
	    "\"timestamp\":%" PRId64 ",\"friendship\":{\"from\":%s,\"to\":%s,"
	    "\"fromProfile\":%s,\"toProfile\":%s%s,\"createdAt\":%" PRId64 "}}",
	    type, ++number, at + 1, from, to,
	    strcmp(from, ZED) == 0 ? ZED_PROFILE : "null",
	    strcmp(to, ZED) == 0 ? ZED_PROFILE : "null",
	    status ? arena_printf(site.arena, ",\"status\":\"%s\"", status)
		   : "",
	    at);
}

static const char *create(int64_t at)
{
	return event("friend_request_create", ZED, alice(), "pending", at);
}

static const char *cancel(int64_t at)
{
	return event("friend_request_cancel", ZED, alice(), NULL, at);
}

/* zed answers alice. */
static const char *update(const char *status, int64_t asked_at)
{
	return event("friend_request_update", alice(), ZED, status, asked_at);
}

static const char *add(int64_t at)
{
	return event("friend_add", alice(), ZED, NULL, at);
}

static const char *removal(int64_t at)
{
	return event("friend_remove", ZED, alice(), NULL, at);
}

static int64_t number(const char *query)
{
	return relay_site_number(&site, query);
}

static void expect_taken(const char *events)
{
	const char *answer = relay_site_send(&site, events);

	cr_expect(strstr(answer, "\"rejected\":[]"), "%s: %s", events, answer);
}

static void expect_refused(const char *events, const char *reason)
{
	const char *answer = relay_site_send(&site, events);

	cr_expect(strstr(answer, "\"accepted\":[]") &&
		strstr(answer,
		    arena_printf(site.arena, "\"reason\":\"%s\"", reason)),
	    "%s: %s", events, answer);
}

static int64_t pending(void)
{
	return number("SELECT count(*) AS n FROM friend_requests"
		      " WHERE status = 'pending'");
}

static int64_t friends(void)
{
	return number("SELECT count(*) AS n FROM friends");
}

static const char *news(void)
{
	return relay_site_text(&site,
	    "SELECT coalesce(string_agg(kind, ',' ORDER BY seq), '') AS t"
	    " FROM user_events");
}

/* What we owe, in order. */
static const char *owed(void)
{
	return relay_site_text(&site,
	    "SELECT coalesce(string_agg(event_type, ',' ORDER BY id), '') AS t"
	    " FROM federation_outbox");
}

/* alice asks zed, as the API would. */
static void alice_asks(int64_t at)
{
	test_db_script(site.conninfo,
	    arena_printf(site.arena,
		"INSERT INTO users (username, password_hash, home_instance,"
		" home_user_id) VALUES ('700@luna.test',"
		" '!federation-replicated', 'luna.test', '700')"
		" ON CONFLICT DO NOTHING;"
		"INSERT INTO friend_requests (from_id, to_id, created_at)"
		" SELECT %" PRId64 ", id, to_timestamp(%" PRId64 " / 1000.0)"
		" FROM users WHERE home_user_id = '700'",
		site.alice, at));
}

static int64_t now;

/* ---- requests ---- */

Test(friend_relay, a_request_makes_a_stub_with_its_six_fields)
{
	now = clock_wall_ms();
	expect_taken(create(now));
	cr_expect_eq(pending(), 1);
	cr_expect_str_eq(news(), "friend_request_received");
	cr_expect_str_eq(
	    relay_site_text(&site,
		"SELECT concat_ws('|', display_name, avatar, avatar_color,"
		" banner, bio) AS t FROM users WHERE home_user_id = '700'"),
	    "Zed|https://luna.test/api/uploads/z.png|mint|"
	    "https://luna.test/api/uploads/b.png|hi");
	expect_taken(create(now));
	cr_expect_eq(pending(), 1);
	cr_expect_str_eq(news(), "friend_request_received");
}

Test(friend_relay, a_snapshot_fills_only_what_is_empty)
{
	now = clock_wall_ms();
	alice_asks(now - 9000);
	test_db_script(site.conninfo,
	    "UPDATE users SET display_name = 'Zoe', bio = '', banner = 'x.png'"
	    " WHERE home_user_id = '700'");
	expect_taken(update("declined", now - 9000));
	cr_expect_str_eq(
	    relay_site_text(&site,
		"SELECT concat_ws('|', display_name, avatar, banner, bio) AS t"
		" FROM users WHERE home_user_id = '700'"),
	    "Zoe|https://luna.test/api/uploads/z.png|"
	    "https://luna.test/api/uploads/b.png|hi");
}

Test(friend_relay, a_repeated_request_does_not_come_back)
{
	const char *first;

	now = clock_wall_ms();
	first = create(now - 5000);
	expect_taken(first);
	/* Declined here. */
	test_db_script(site.conninfo,
	    "UPDATE friend_requests SET status = 'declined';"
	    "INSERT INTO friend_marks (low_id, high_id, low_over_at,"
	    " high_over_at) SELECT least(from_id, to_id),"
	    " greatest(from_id, to_id), created_at, created_at"
	    " FROM friend_requests");
	expect_taken(first);
	cr_expect_eq(pending(), 0);
	expect_taken(create(now));
	cr_expect_eq(pending(), 1);
	expect_taken(cancel(now));
	cr_expect_eq(pending(), 0);
	expect_taken(first);
	expect_taken(create(now));
	cr_expect_eq(pending(), 0);
}

Test(friend_relay, a_withdrawal_may_come_before_its_request)
{
	now = clock_wall_ms();
	expect_taken(cancel(now));
	expect_taken(create(now));
	cr_expect_eq(pending(), 0);
	cr_expect_str_eq(news(), "");
	expect_taken(create(now + 1));
	cr_expect_eq(pending(), 1);
	/* That of the request before does not take the new one. */
	expect_taken(cancel(now));
	cr_expect_eq(pending(), 1);
}

Test(friend_relay, request_and_withdrawal_in_one_batch)
{
	now = clock_wall_ms();
	expect_taken(arena_printf(
	    site.arena, "%s,%s", create(now - 1), cancel(now - 1)));
	cr_expect_eq(pending(), 0);
	cr_expect_str_eq(
	    news(), "friend_request_received,friend_request_cancelled");
}

Test(friend_relay, a_newer_request_replaces_one_whose_withdrawal_is_missing)
{
	now = clock_wall_ms();
	expect_taken(create(now - 100));
	expect_taken(create(now));
	cr_expect_eq(pending(), 1);
	expect_taken(cancel(now - 100));
	cr_expect_eq(pending(), 1);
	expect_taken(cancel(now));
	cr_expect_eq(pending(), 0);
}

/* ---- answers ---- */

Test(friend_relay, accepted_in_either_order_it_is_one_friendship)
{
	now = clock_wall_ms();
	alice_asks(now - 5000);
	expect_taken(arena_printf(site.arena, "%s,%s",
	    update("accepted", now - 5000), add(now - 4000)));
	cr_expect_eq(friends(), 1);
	cr_expect_eq(pending(), 0);
	cr_expect_str_eq(news(), "friend_request_accepted");
	expect_taken(removal(now - 3000));
	cr_expect_eq(friends(), 0);
	alice_asks(now - 2000);
	expect_taken(add(now - 1000));
	cr_expect_eq(friends(), 1);
	expect_taken(update("accepted", now - 2000));
	cr_expect_eq(friends(), 1);
	cr_expect_eq(number("SELECT count(*) AS n FROM friend_requests"
			    " WHERE status = 'accepted'"),
	    2);
	cr_expect_str_eq(news(),
	    "friend_request_accepted,friend_removed,friend_request_accepted");
	cr_expect_str_eq(owed(), "");
}

Test(friend_relay, an_answer_to_an_older_request_changes_nothing)
{
	now = clock_wall_ms();
	alice_asks(now);
	expect_taken(update("declined", now - 1));
	cr_expect_eq(pending(), 1);
	expect_taken(update("declined", now));
	cr_expect_eq(pending(), 0);
	cr_expect_str_eq(news(), "friend_request_declined");
}

Test(friend_relay, nobody_is_made_a_friend_without_having_asked)
{
	const char *forged;

	now = clock_wall_ms();
	forged = add(now - 1000);
	expect_taken(forged);
	cr_expect_eq(friends(), 0);
	cr_expect_str_eq(owed(), "friend_remove");
	expect_taken(forged);
	cr_expect_eq(friends(), 0);
	cr_expect_str_eq(owed(), "friend_remove");
	cr_expect_str_eq(news(), "");
	expect_taken(update("accepted", now));
	cr_expect_eq(friends(), 0);
}

Test(friend_relay, an_old_removal_does_not_end_a_new_friendship)
{
	const char *first;

	now = clock_wall_ms();
	alice_asks(now - 9000);
	expect_taken(add(now - 8000));
	first = removal(now - 7000);
	expect_taken(first);
	cr_expect_eq(friends(), 0);
	alice_asks(now - 6000);
	expect_taken(add(now - 5000));
	expect_taken(first);
	cr_expect_eq(friends(), 1);
	expect_taken(add(now - 8000));
	cr_expect_eq(friends(), 1);
	expect_taken(removal(now - 4000));
	expect_taken(add(now - 5000));
	cr_expect_eq(friends(), 0);
}

Test(friend_relay, a_removal_may_come_before_its_friendship)
{
	now = clock_wall_ms();
	alice_asks(now - 9000);
	expect_taken(removal(now - 7000));
	expect_taken(add(now - 8000));
	cr_expect_eq(friends(), 0);
}

/* Its clock is behind ours: that is no reason to keep a friend. */
Test(friend_relay, the_first_end_counts_whatever_the_clocks)
{
	now = clock_wall_ms();
	alice_asks(now - 9000);
	expect_taken(add(now));
	expect_taken(removal(now - 60000));
	cr_expect_eq(friends(), 0);
	expect_taken(add(now));
	cr_expect_eq(friends(), 0);
}

/* Its clock is ahead by as much as a signature allows. */
Test(friend_relay, a_request_is_known_again_by_a_clock_that_is_ahead)
{
	int64_t ahead = clock_wall_ms() + 14 * 60 * 1000;

	expect_taken(create(ahead));
	cr_expect_eq(
	    number("SELECT round(extract(epoch FROM created_at) * 1000)"
		   "::bigint AS n FROM friend_requests"),
	    ahead);
	expect_taken(cancel(ahead));
	cr_expect_eq(pending(), 0);
	expect_taken(create(ahead));
	cr_expect_eq(pending(), 0);
	expect_taken(create(INT64_C(4070908800000)));
	cr_expect_eq(number("SELECT count(*) AS n FROM friend_requests"
			    " WHERE created_at > now() + interval '1 hour'"),
	    0);
}

Test(friend_relay, strangers_end_nothing)
{
	now = clock_wall_ms();
	expect_taken(removal(now));
	expect_taken(event("friend_remove",
	    "{\"homeUserId\":\"1\",\"homeInstance\":\"luna.test\"}",
	    "{\"homeUserId\":\"2\",\"homeInstance\":\"luna.test\"}", NULL,
	    now));
	cr_expect_eq(number("SELECT count(*) AS n FROM users"), 2);
}

Test(friend_relay, requests_that_cross_are_a_friendship)
{
	const char *first;

	now = clock_wall_ms();
	alice_asks(now - 50);
	first = create(now);
	expect_taken(first);
	cr_expect_eq(friends(), 1);
	cr_expect_eq(pending(), 0);
	cr_expect_str_eq(news(), "friend_request_accepted");
	cr_expect_str_eq(owed(), "friend_request_update,friend_add");
	/* What the other node says of it. */
	expect_taken(arena_printf(
	    site.arena, "%s,%s", update("accepted", now - 50), add(now + 9)));
	expect_taken(first);
	cr_expect_eq(friends(), 1);
	cr_expect_str_eq(owed(), "friend_request_update,friend_add");
	cr_expect_str_eq(news(), "friend_request_accepted");
}

/* ---- who may say it ---- */

#define OTHER "{\"homeUserId\":\"9\",\"homeInstance\":\"evil.test\"}"

Test(friend_relay, only_the_home_of_whoever_acts_is_believed)
{
	const char *types[] = { "friend_request_create",
		"friend_request_cancel" };

	now = clock_wall_ms();
	for (size_t i = 0; i < COUNT(types); i++) {
		expect_refused(event(types[i], OTHER, alice(), NULL, now),
		    "attribution_mismatch");
		/* alice has no account there. */
		expect_refused(event(types[i], alice(), ZED, NULL, now),
		    "attribution_mismatch");
	}
	expect_refused(
	    event("friend_request_update", alice(), OTHER, "accepted", now),
	    "attribution_mismatch");
	expect_refused(event("friend_add", alice(), OTHER, NULL, now),
	    "attribution_mismatch");
	expect_refused(event("friend_add", ZED, alice(), NULL, now),
	    "attribution_mismatch");
	expect_refused(event("friend_remove", OTHER, OTHER, NULL, now),
	    "attribution_mismatch");
	expect_refused(event("friend_remove", OTHER, alice(), NULL, now),
	    "attribution_mismatch");
	cr_expect_eq(number("SELECT count(*) AS n FROM users"), 2);
}

static const char *const look_alikes[] = { "evil-luna.test",
	"luna.test.evil.test", "https://luna.test@evil.test", "luna.test:8443",
	"luna.test#", "" };

Test(friend_relay, look_alike_hosts_are_nobodys_home)
{
	now = clock_wall_ms();
	for (size_t i = 0; i < COUNT(look_alikes); i++)
		expect_refused(
		    event("friend_request_create",
			arena_printf(site.arena,
			    "{\"homeUserId\":\"700\",\"homeInstance\":\"%s\"}",
			    look_alikes[i]),
			alice(), "pending", now),
		    "attribution_mismatch");
}

Test(friend_relay, nobody_asks_himself)
{
	now = clock_wall_ms();
	expect_refused(event("friend_request_create", ZED,
			   "{\"homeUserId\":\"700\",\"homeInstance\":"
			   "\"HTTPS://Luna.test/\"}",
			   "pending", now),
	    "self_target_invalid");
	cr_expect_eq(pending(), 0);
}

Test(friend_relay, the_missing_and_the_deleted_are_not_found)
{
	now = clock_wall_ms();
	expect_refused(
	    event("friend_request_create", ZED,
		"{\"homeUserId\":\"77\",\"homeInstance\":\"nova.test\"}",
		"pending", now),
	    "recipient_not_found");
	expect_refused(
	    event("friend_request_update",
		"{\"homeUserId\":\"77\",\"homeInstance\":\"nova.test\"}", ZED,
		"accepted", now),
	    "sender_not_found");
	test_db_script(site.conninfo, "UPDATE users SET is_deleted = true");
	expect_refused(create(now), "recipient_not_found");
	expect_taken(cancel(now));
	expect_taken(removal(now));
	cr_expect_eq(number("SELECT count(*) AS n FROM users"), 2);
}

static const char *const bad_payloads[] = {
	"",
	",\"friendship\":null",
	",\"friendship\":[]",
	",\"friendship\":{}",
	",\"friendship\":{\"from\":" ZED "}",
	",\"friendship\":{\"from\":" ZED ",\"to\":{\"homeUserId\":\"\","
	"\"homeInstance\":\"nova.test\"}}",
	",\"friendship\":{\"from\":" ZED ",\"to\":{\"homeUserId\":\"1\"}}",
	",\"friendship\":{\"from\":" ZED ",\"to\":{\"homeUserId\":\"a\\u0000\","
	"\"homeInstance\":\"nova.test\"}}",
};

Test(friend_relay, payloads_without_two_people_are_refused)
{
	static const char *const types[] = { "friend_request_create",
		"friend_request_cancel", "friend_remove" };

	for (size_t i = 0; i < COUNT(bad_payloads); i++)
		for (size_t j = 0; j < COUNT(types); j++)
			expect_refused(
			    arena_printf(site.arena,
				"{\"eventType\":\"%s\",\"messageId\":\"b\"%s}",
				types[j], bad_payloads[i]),
			    "missing_friendship_payload");
	expect_refused(
	    update("maybe", clock_wall_ms()), "missing_friendship_payload");
}

/* ---- homeward ---- */

static void declare(const char *origin)
{
	test_db_script(site.conninfo,
	    arena_printf(site.arena,
		"UPDATE users SET replicated_instances = '[{\"origin\":"
		"\"%s\",\"username\":\"alice@nova.test\"}]'"
		" WHERE username = 'alice'",
		origin));
}

Test(friend_relay, what_our_person_does_elsewhere_happens_here)
{
	now = clock_wall_ms();
	declare("https://luna.test");
	expect_taken(
	    event("friend_request_create", alice(), ZED, "pending", now - 100));
	cr_expect_eq(pending(), 1);
	expect_taken(arena_printf(
	    site.arena, "%s,%s", update("accepted", now - 100), add(now - 50)));
	cr_expect_eq(friends(), 1);
	cr_expect_str_eq(owed(), "");
	expect_taken(event("friend_remove", alice(), ZED, NULL, now));
	cr_expect_eq(friends(), 0);
	/* zed asks, alice accepts at luna. */
	expect_taken(create(now + 1));
	expect_taken(arena_printf(site.arena, "%s,%s",
	    event("friend_request_update", ZED, alice(), "accepted", now + 1),
	    event("friend_add", ZED, alice(), NULL, now + 2)));
	cr_expect_eq(friends(), 1);
	cr_expect_str_eq(owed(), "");
}

#define FAR "{\"homeUserId\":\"5\",\"homeInstance\":\"far.test\"}"

Test(friend_relay, what_came_homeward_is_sent_on_to_a_third_node_once)
{
	const char *request;

	relay_site_peer(&site, "far.test");
	now = clock_wall_ms();
	declare("https://luna.test");
	request =
	    event("friend_request_create", alice(), FAR, "pending", now - 100);
	expect_taken(request);
	expect_taken(request);
	expect_taken(
	    event("friend_request_cancel", alice(), FAR, NULL, now - 100));
	cr_expect_str_eq(owed(),
	    "friend_request_create,profile_update,friend_request_cancel");
	cr_expect_eq(number("SELECT count(*) AS n FROM federation_outbox o"
			    " JOIN federation_peers p ON p.id = o.peer_id"
			    " WHERE p.host = 'far.test'"),
	    3);
	cr_expect_str_eq(
	    relay_site_text(&site,
		"SELECT (('{' || payload || '}')::json->'friendship'->'from'"
		"->>'homeInstance') AS t FROM federation_outbox LIMIT 1"),
	    "https://nova.test");
}

/* ---- many at once ---- */

enum { CROWD = 8 };

struct rush {
	struct peer peer;
	const char *event;
};

static void *rush_run(void *arg)
{
	struct rush *rush = arg;
	struct relay_site own = site;
	struct conn *conn = test_db_conn(site.conninfo);

	own.arena = arena_new();
	relay_site_apply(&own, conn, &rush->peer, rush->event, false);
	arena_free(&own.arena);
	conn_free(&conn);
	return NULL;
}

Test(friend_relay, parallel_first_requests_make_one_stub_and_one_request)
{
	pthread_t threads[CROWD];
	struct rush rushes[CROWD];

	now = clock_wall_ms();
	for (int i = 0; i < CROWD; i++) {
		rushes[i] = (struct rush){ site.luna, create(now + i) };
		cr_assert_eq(
		    pthread_create(&threads[i], NULL, rush_run, &rushes[i]), 0);
	}
	for (int i = 0; i < CROWD; i++)
		pthread_join(threads[i], NULL);
	cr_expect_eq(pending(), 1);
	cr_expect_eq(number("SELECT count(*) AS n FROM users"), 3);
	cr_expect_str_eq(news(), "friend_request_received");
}
