#include <criterion/criterion.h>

#include "common/base/clock.h"
#include "tests/integration/delivery_site.h"

/* What an operator does reaches every outboxd within this. */
enum { EFFECT_MS = 5000, SOON_MS = 10000 };

TestSuite(operate, .timeout = 300);

/* Two outboxd, a peer that takes its time, another that proves that somebody
 * has looked since. */
struct scene {
	struct site site;
	struct test_peer *peer;
	struct test_peer *other;
	int64_t id;
	int64_t other_id;
	struct test_daemon *outboxd[2];
};

/* What the peer says to the next requests. */
struct mood {
	int hold_ms;
	bool silent;
	const char *refuses;
};

static void by_mood(void *arg, struct arena *arena,
    const struct test_peer_request *request UNUSED,
    struct test_peer_answer *answer)
{
	const struct mood *mood = arg;

	answer->hold_ms = mood->hold_ms;
	if (mood->silent)
		answer->status = 0;
	if (mood->refuses)
		answer->body = arena_printf(arena,
		    "{\"accepted\":[],\"rejected\":[{\"messageId\":\"%s\","
		    "\"reason\":\"processing_error\"}]}",
		    mood->refuses);
}

static struct scene scene_begin(struct mood *mood)
{
	struct scene scene = { .site = site_begin() };

	scene.peer = test_peer_new("orbit.localhost", by_mood, mood);
	scene.other = test_peer_new("luna.localhost", NULL, NULL);
	scene.id = site_peer(&scene.site, test_peer_origin(scene.peer));
	scene.other_id = site_peer(&scene.site, test_peer_origin(scene.other));
	for (size_t i = 0; i < COUNT(scene.outboxd); i++)
		scene.outboxd[i] = test_outboxd(scene.site.node, NULL);
	return scene;
}

static void scene_end(struct scene *scene)
{
	for (size_t i = 0; i < COUNT(scene->outboxd); i++)
		test_daemon_kill(scene->outboxd[i]);
	test_peer_free(&scene->peer);
	test_peer_free(&scene->other);
	site_end(&scene->site);
}

/* A column of what a function of ops answers to the operator. */
static const char *call(
    struct scene *scene, const char *column, const char *function)
{
	struct arena *arena = scene->site.arena;
	const char *operator= arena_printf(
	    arena, "%s options='-c role=postrider_operator'", scene->site.db);

	return test_db_text(
	    arena, operator, arena_printf(arena,
		       "SELECT %s::text AS t FROM ops.%s", column, function));
}

/* The function with the peer's origin as first argument. */
static const char *call_on(struct scene *scene, const char *column,
    const char *function, const char *rest)
{
	return call(scene, column,
	    arena_printf(scene->site.arena, "%s('%s'%s)", function,
		test_peer_origin(scene->peer), rest));
}

static bool lease_is_back(struct scene *scene)
{
	return site_until(&scene->site,
	    arena_printf(scene->site.arena,
		"(SELECT lease_worker IS NULL FROM federation_peers "
		"WHERE id = %" PRId64 ")",
		scene->id),
	    EFFECT_MS);
}

/* Whatever the outboxd would do now, they have done: a later entry for
 * another peer has arrived. */
static void everybody_looks(struct scene *scene)
{
	size_t before = test_peer_count(scene->other, RELAY_PATH);

	for (size_t i = 1; i <= 3; i++) {
		site_enqueue(
		    &scene->site, scene->other_id, ENTRIES("create proof"));
		cr_assert(test_peer_got(
		    scene->other, RELAY_PATH, before + i, SOON_MS));
	}
}

/* Nothing goes to the peer any more, although entries wait. */
static void expect_silence(struct scene *scene)
{
	size_t sent;

	cr_assert(lease_is_back(scene));
	sent = test_peer_count(scene->peer, RELAY_PATH);
	everybody_looks(scene);
	cr_expect_eq(test_peer_count(scene->peer, RELAY_PATH), sent);
	cr_expect_gt(site_number(&scene->site,
			 "SELECT count(*) AS n FROM federation_outbox"),
	    0, "everything was sent before");
}

/* All that the peer was told, as one batch. */
static const char *told_in_one(struct scene *scene)
{
	char *told =
	    arena_text(scene->site.arena, site_told(&scene->site, scene->peer));
	char *to = told;

	for (const char *from = told; *from; from++)
		if (strncmp(from, " | ", 3) == 0) {
			*to++ = ',';
			from++;
		} else {
			*to++ = *from;
		}
	*to = '\0';
	return told;
}

static const char *creates(struct scene *scene, int count)
{
	struct buf out;

	buf_init(&out, scene->site.arena, 1 << 20);
	for (int i = 1; i <= count; i++)
		buf_printf(&out, "%screate m%d", i > 1 ? ", " : "", i);
	return out.data;
}

/* ---- pause, resume, revoke ---- */

/* The longest silence between two batches, and when it began. */
static int64_t longest_gap(struct scene *scene, int64_t *since)
{
	size_t count = test_peer_count(scene->peer, RELAY_PATH);
	int64_t longest = 0;

	for (size_t i = 1; i < count; i++) {
		int64_t from =
		    test_peer_nth(scene->peer, RELAY_PATH, i - 1).at_ms;
		int64_t to = test_peer_nth(scene->peer, RELAY_PATH, i).at_ms;

		if (to - from > longest) {
			longest = to - from;
			*since = from;
		}
	}
	return longest;
}

Test(operate, a_pause_stops_a_busy_peer_and_ends_by_itself)
{
	struct mood mood = { .hold_ms = 150 };
	struct scene scene;
	int64_t paused_at;
	int64_t since = 0;
	int64_t gap;

	test_db_needed();
	scene = scene_begin(&mood);
	site_enqueue_many(&scene.site, scene.id, "m", 1000);
	cr_assert(test_peer_got(scene.peer, RELAY_PATH, 3, SOON_MS));
	paused_at = clock_steady_ms();
	cr_expect_str_eq(call_on(&scene, "state", "peer_pause",
			     ", 'maintenance', interval '4 seconds'"),
	    "paused");
	cr_assert(lease_is_back(&scene));
	cr_expect_str_eq(
	    test_db_text(scene.site.arena, scene.site.db,
		"SELECT concat_ws('|', state, paused_by, reason) AS t FROM "
		"ops.peers WHERE state = 'paused'"),
	    "paused|postgres|maintenance");
	cr_assert(site_drained(&scene.site, 20000));
	gap = longest_gap(&scene, &since);
	cr_expect_geq(gap, 2500, "only %" PRId64 " ms", gap);
	cr_expect_lt(since - paused_at, test_patience_ms(1500));
	cr_expect_eq(site_events(&scene.site, scene.peer), 1000);
	scene_end(&scene);
}

Test(operate, a_pause_without_end_lasts_until_it_is_taken_back)
{
	struct mood mood = { .hold_ms = 150 };
	struct scene scene;

	test_db_needed();
	scene = scene_begin(&mood);
	site_enqueue_many(&scene.site, scene.id, "m", 1000);
	cr_assert(test_peer_got(scene.peer, RELAY_PATH, 2, SOON_MS));
	cr_expect_str_eq(
	    call_on(&scene, "until", "peer_pause", ", 'too loud'"), "infinity");
	expect_silence(&scene);
	mood.hold_ms = 0;
	cr_expect_str_eq(
	    call_on(&scene, "meaning", "peer_resume", ""), "resumed");
	cr_expect(site_drained(&scene.site, EFFECT_MS));
	cr_expect_eq(site_events(&scene.site, scene.peer), 1000);
	cr_expect_str_eq(
	    call_on(&scene, "meaning", "peer_resume", ""), "was not paused");
	scene_end(&scene);
}

Test(operate, a_peer_revoked_by_hand_is_contacted_no_more)
{
	struct mood mood = { .hold_ms = 150 };
	struct scene scene;

	test_db_needed();
	scene = scene_begin(&mood);
	site_enqueue_many(&scene.site, scene.id, "m", 1000);
	cr_assert(test_peer_got(scene.peer, RELAY_PATH, 2, SOON_MS));
	test_db_script(scene.site.db,
	    arena_printf(scene.site.arena,
		"UPDATE federation_peers SET status = 'revoked' "
		"WHERE id = %" PRId64,
		scene.id));
	expect_silence(&scene);
	call_on(&scene, "meaning", "retry_now", "");
	expect_silence(&scene);
	scene_end(&scene);
}

/* ---- retry, discard ---- */

Test(operate, what_was_set_aside_goes_when_told)
{
	struct mood mood = { .refuses = "a" };
	struct scene scene;

	test_db_needed();
	scene = scene_begin(&mood);
	site_enqueue(&scene.site, scene.id, ENTRIES("create a"));
	cr_assert(site_until(&scene.site,
	    "EXISTS (SELECT FROM federation_outbox WHERE refusals = 1)",
	    SOON_MS));
	mood.refuses = NULL;
	cr_expect_str_eq(call_on(&scene, "entries", "retry_now",
			     ", reason_word => 'another'"),
	    "0");
	cr_expect_str_eq(call_on(&scene, "entries", "retry_now",
			     ", reason_word => 'processing_error'"),
	    "1");
	cr_expect(site_drained(&scene.site, EFFECT_MS));
	cr_expect_str_eq(
	    site_told(&scene.site, scene.peer), "create a | create a");
	scene_end(&scene);
}

Test(operate, a_peer_that_waits_for_its_next_try_is_tried_when_told)
{
	struct mood mood = { .silent = true };
	struct scene scene;

	test_db_needed();
	scene = scene_begin(&mood);
	site_enqueue(&scene.site, scene.id, ENTRIES("create a"));
	cr_assert(site_until(&scene.site,
	    "EXISTS (SELECT FROM federation_peers WHERE transport_failures = 1 "
	    "AND next_attempt_at > now() + interval '15 seconds')",
	    SOON_MS));
	mood.silent = false;
	cr_expect_str_eq(call_on(&scene, "peers", "retry_now", ""), "1");
	cr_expect(site_drained(&scene.site, EFFECT_MS));
	scene_end(&scene);
}

Test(operate, what_a_worker_holds_is_discarded_and_stays_away)
{
	struct mood mood = { .hold_ms = 600 };
	struct scene scene;

	test_db_needed();
	scene = scene_begin(&mood);
	site_enqueue_many(&scene.site, scene.id, "m", 300);
	cr_assert(test_peer_got(scene.peer, RELAY_PATH, 1, SOON_MS));
	cr_expect_str_eq(
	    call_on(&scene, "entries", "discard", ", why => 'a flood'"), "300");
	cr_expect(site_drained(&scene.site, EFFECT_MS));
	cr_expect_eq(site_events(&scene.site, scene.peer), 50,
	    "only what was on the wire");
	cr_expect_eq(
	    site_number(&scene.site, "SELECT count(*) AS n FROM dead_letters"),
	    0);
	site_enqueue(&scene.site, scene.id, ENTRIES("create after"));
	cr_expect(site_drained(&scene.site, EFFECT_MS));
	cr_expect_str_eq(
	    site_batch(&scene.site, scene.peer, 1), "create after");
	scene_end(&scene);
}

/* ---- replay ---- */

Test(operate, a_hundred_dead_letters_are_replayed_in_order)
{
	struct mood mood = { 0 };
	struct scene scene;

	test_db_needed();
	scene = scene_begin(&mood);
	call_on(&scene, "state", "peer_pause", ", 'until all is dead'");
	site_enqueue_many(&scene.site, scene.id, "m", 100);
	test_db_script(scene.site.db,
	    "INSERT INTO dead_letters (queue, peer_id, peer, entry_id, "
	    "context_type, context_id, event_type, entity_id, payload, "
	    "created_at, why) SELECT 'outbox', o.peer_id, p.origin, o.id, "
	    "context_type, context_id, event_type, entity_id, payload, "
	    "o.created_at, 'refused for good' FROM federation_outbox o "
	    "JOIN federation_peers p ON p.id = o.peer_id ORDER BY "
	    "md5(o.id::text);"
	    "DELETE FROM federation_outbox");
	call_on(&scene, "state", "peer_resume", "");
	cr_expect_str_eq(call_on(&scene, "remaining", "replay",
			     ", why => 'it is well again', at_most => 60"),
	    "40");
	cr_expect_str_eq(call_on(&scene, "remaining", "replay",
			     ", why => 'it is well again', at_most => 60"),
	    "0");
	cr_expect(site_drained(&scene.site, EFFECT_MS));
	cr_expect_str_eq(told_in_one(&scene), creates(&scene, 100));
	cr_expect_eq(
	    site_number(&scene.site, "SELECT count(*) AS n FROM dead_letters"),
	    0);
	scene_end(&scene);
}

/* ---- who holds what ---- */

Test(operate, workers_are_shown_with_what_they_hold)
{
	struct mood mood = { .hold_ms = 3000 };
	struct scene scene;

	test_db_needed();
	scene = scene_begin(&mood);
	site_enqueue(&scene.site, scene.id, ENTRIES("create a"));
	cr_assert(test_peer_got(scene.peer, RELAY_PATH, 1, SOON_MS));
	cr_expect_str_eq(
	    test_db_text(scene.site.arena, scene.site.db,
		"SELECT string_agg(concat_ws('|', daemon, alive, leases, "
		"holds), ' ' ORDER BY leases) AS t FROM ops.workers"),
	    arena_printf(scene.site.arena, "outboxd|t|0 outboxd|t|1|%s",
		test_peer_origin(scene.peer)));
	test_daemon_kill(scene.outboxd[0]);
	test_daemon_kill(scene.outboxd[1]);
	cr_expect(site_until(&scene.site,
	    "(SELECT count(*) = 2 FROM ops.workers WHERE NOT alive)", SOON_MS));
	scene_end(&scene);
}
