#include <criterion/criterion.h>

#include <poll.h>
#include <signal.h>

#include "common/base/clock.h"
#include "common/crypto/sign.h"
#include "tests/integration/delivery_site.h"

enum { SOON_MS = 8000 };

TestSuite(delivery, .timeout = 300);

/* Answers by turn: the place-th request gets the place-th, the last one stays.
 * A text that is NULL leaves the default answer, which takes everything. */
struct turn {
	int status;
	const char *headers;
	const char *body;
	int hold_ms;
	bool cut;
	bool endless;
};

struct turns {
	const struct turn *list;
	size_t count;
	size_t next;
};

static void by_turn(void *arg, struct arena *arena UNUSED,
    const struct test_peer_request *request UNUSED,
    struct test_peer_answer *answer)
{
	struct turns *turns = arg;
	const struct turn *turn = &turns->list[turns->next];

	if (turns->next + 1 < turns->count)
		turns->next++;
	answer->hold_ms = turn->hold_ms;
	answer->headers = turn->headers;
	answer->cut = turn->cut;
	answer->endless = turn->endless;
	if (turn->status < 0)
		answer->status = 0;
	if (turn->status > 0)
		answer->status = turn->status;
	if (turn->body)
		answer->body = turn->body;
}

#define TURNS(...) \
	{ \
		(const struct turn[]){ __VA_ARGS__ }, \
		    COUNT(((const struct turn[]){ __VA_ARGS__ })), 0 \
	}
#define TAKE_ALL \
	{ \
		0 \
	}

static const char *refusal(const char *id, const char *reason)
{
	static char body[256];

	snprintf(body, sizeof(body),
	    "{\"accepted\":[],\"rejected\":[{\"messageId\":\"%s\","
	    "\"reason\":\"%s\"}],\"maxUploadSize\":5000000}",
	    id, reason);
	return body;
}

/* A site with one outboxd and one peer. */
struct scene {
	struct site site;
	struct test_peer *peer;
	int64_t id;
	struct test_daemon *outboxd;
};

static struct scene scene_begin(struct turns *turns)
{
	static const char *const settings[] = { "answer_timeout=3s", NULL };
	struct scene scene = { .site = site_begin() };

	scene.peer =
	    test_peer_new("orbit.localhost", turns ? by_turn : NULL, turns);
	scene.id = site_peer(&scene.site, test_peer_origin(scene.peer));
	scene.outboxd = test_outboxd(scene.site.node, settings);
	return scene;
}

static void scene_end(struct scene *scene)
{
	test_daemon_kill(scene->outboxd);
	test_peer_free(&scene->peer);
	site_end(&scene->site);
}

/* Whatever waits is due now. */
static void bring_forward(struct scene *scene)
{
	test_db_script(scene->site.db,
	    "UPDATE federation_peers SET next_attempt_at = now();"
	    "UPDATE federation_outbox SET retry_at = now() "
	    "WHERE retry_at IS NOT NULL;"
	    "NOTIFY postrider_outbox");
}

#define PEER_IS(scene, condition) \
	site_until(&(scene)->site, \
	    "EXISTS (SELECT FROM federation_peers WHERE " condition ")", \
	    SOON_MS)

#define ONE_PEER(scene, column) \
	site_number(&(scene)->site, \
	    "SELECT (" column ")::bigint AS n FROM federation_peers")

Test(delivery, sends_what_waits_signed_as_the_recorded_traffic_is)
{
	struct scene scene;
	struct test_peer_request request;
	struct arena *arena;

	test_db_needed();
	scene = scene_begin(NULL);
	arena = scene.site.arena;
	test_db_script(scene.site.db,
	    arena_printf(arena,
		"INSERT INTO federation_outbox VALUES (%" PRId64
		", 7, 'dm', '38', 'create', '42', '\"dmChannelId\":\"38\"', 0,"
		" to_timestamp(1796072519.789), now() + interval '1 day')",
		scene.id));
	cr_assert(test_peer_got(scene.peer, RELAY_PATH, 1, SOON_MS));
	request = test_peer_nth(scene.peer, RELAY_PATH, 0);
	cr_expect_str_eq(
	    arena_textn(arena, request.body.data, request.body.len),
	    arena_printf(arena,
		"{\"version\":1,\"sourceInstance\":\"%s\",\"events\":[{"
		"\"eventType\":\"create\",\"contextType\":\"dm\","
		"\"messageId\":\"42\",\"encryptionVersion\":0,"
		"\"timestamp\":1796072519789,\"dmChannelId\":\"38\"}]}",
		scene.site.node->origin));
	cr_expect_str_eq(
	    test_peer_header(arena, &request, "x-federation-origin"),
	    scene.site.node->origin);
	cr_expect_str_eq(test_peer_header(arena, &request, "content-type"),
	    "application/json");
	cr_expect_null(test_peer_header(arena, &request, "expect"));
	cr_expect(sign_verify(SITE_SECRET,
	    test_peer_header(arena, &request, "x-federation-timestamp"),
	    test_peer_header(arena, &request, "x-federation-nonce"),
	    request.body,
	    test_peer_header(arena, &request, "x-federation-signature")));
	cr_expect(site_drained(&scene.site, SOON_MS));
	cr_expect(PEER_IS(&scene,
	    "last_accepted_at IS NOT NULL AND "
	    "remote_max_upload_size > 0"));
	scene_end(&scene);
}

Test(delivery, batches_hold_at_most_fifty_events)
{
	struct scene scene;
	size_t batches;

	test_db_needed();
	scene = scene_begin(NULL);
	site_enqueue_many(&scene.site, scene.id, "m", 230);
	cr_assert(site_drained(&scene.site, SOON_MS));
	batches = test_peer_count(scene.peer, RELAY_PATH);
	cr_expect_eq(batches, 5);
	cr_expect_eq(site_events(&scene.site, scene.peer), 230);
	cr_expect(strncmp(site_batch(&scene.site, scene.peer, 0),
		      "create m1, create m2, ", 22) == 0);
	scene_end(&scene);
}

Test(delivery, a_change_during_a_delivery_is_another_entry)
{
	/* clang-format off */
	static const struct { const char *change; const char *told; } cases[] = {
		{ "update a", "create a | update a" },
		{ "delete a", "create a | delete a" },
	};
	/* clang-format on */

	test_db_needed();
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct turns turns = TURNS({ .hold_ms = 500 }, TAKE_ALL);
		struct scene scene = scene_begin(&turns);

		site_enqueue(&scene.site, scene.id, ENTRIES("create a"));
		cr_assert(test_peer_got(scene.peer, RELAY_PATH, 1, SOON_MS));
		site_enqueue(&scene.site, scene.id, ENTRIES(cases[i].change));
		cr_assert(site_drained(&scene.site, SOON_MS));
		cr_expect_str_eq(
		    site_told(&scene.site, scene.peer), cases[i].told);
		scene_end(&scene);
	}
}

Test(delivery, a_message_nobody_has_heard_of_can_be_deleted_silently)
{
	struct scene scene;

	test_db_needed();
	scene = scene_begin(NULL);
	site_enqueue(&scene.site, scene.id,
	    ENTRIES("create a", "update a", "delete a", "create b"));
	cr_assert(site_drained(&scene.site, SOON_MS));
	cr_expect_str_eq(site_told(&scene.site, scene.peer), "create b");
	scene_end(&scene);
}

Test(delivery, a_create_that_may_have_arrived_is_followed_by_its_delete)
{
	struct turns turns =
	    TURNS({ .status = -1 }, { .status = -1 }, TAKE_ALL);
	struct scene scene;

	test_db_needed();
	scene = scene_begin(&turns);
	site_enqueue(&scene.site, scene.id, ENTRIES("create a"));
	cr_assert(
	    PEER_IS(&scene, "transport_failures = 1 AND lease_worker IS NULL"));
	site_enqueue(&scene.site, scene.id, ENTRIES("delete a"));
	turns.next = 2;
	bring_forward(&scene);
	cr_assert(site_drained(&scene.site, SOON_MS));
	cr_expect_str_eq(site_batch(&scene.site, scene.peer,
			     test_peer_count(scene.peer, RELAY_PATH) - 1),
	    "delete a");
	cr_expect_str_eq(site_batch(&scene.site, scene.peer,
			     test_peer_count(scene.peer, RELAY_PATH) - 2),
	    "create a");
	cr_expect_eq(ONE_PEER(&scene, "transport_failures"), 0);
	scene_end(&scene);
}

Test(delivery, what_was_folded_into_a_duplicate_create_is_sent)
{
	struct turns turns =
	    TURNS({ .body = refusal("a", "duplicate") }, TAKE_ALL);
	struct scene scene;

	test_db_needed();
	scene = scene_begin(&turns);
	site_enqueue(&scene.site, scene.id, ENTRIES("create a", "update a"));
	cr_assert(site_drained(&scene.site, SOON_MS));
	cr_expect_str_eq(
	    site_told(&scene.site, scene.peer), "create a | update a");
	scene_end(&scene);
}

Test(delivery, a_refused_conversation_waits_while_others_go_on)
{
	struct turns turns =
	    TURNS({ .body = refusal("a", "channel_not_found") }, TAKE_ALL);
	struct scene scene;

	test_db_needed();
	scene = scene_begin(&turns);
	site_enqueue(&scene.site, scene.id, ENTRIES("create a"));
	cr_assert(site_until(&scene.site,
	    "EXISTS (SELECT FROM federation_outbox WHERE refusals = 1 AND "
	    "reason = 'channel_not_found' AND retry_at > now() + "
	    "interval '25 seconds')",
	    SOON_MS));
	site_enqueue(
	    &scene.site, scene.id, ENTRIES("create b", "create x @other"));
	cr_assert(test_peer_got(scene.peer, RELAY_PATH, 2, SOON_MS));
	bring_forward(&scene);
	cr_assert(site_drained(&scene.site, SOON_MS));
	cr_expect_str_eq(site_told(&scene.site, scene.peer),
	    "create a | create x | create a | create b");
	scene_end(&scene);
}

Test(delivery, an_entry_refused_too_often_becomes_a_dead_letter)
{
	struct turns turns =
	    TURNS({ .body = refusal("a", "processing_error") });
	struct scene scene;

	test_db_needed();
	scene = scene_begin(&turns);
	site_enqueue(&scene.site, scene.id, ENTRIES("create a"));
	cr_assert(site_until(&scene.site,
	    "EXISTS (SELECT FROM federation_outbox WHERE refusals = 1)",
	    SOON_MS));
	test_db_script(
	    scene.site.db, "UPDATE federation_outbox SET refusals = 7");
	bring_forward(&scene);
	cr_assert(site_drained(&scene.site, SOON_MS));
	cr_expect_eq(site_number(&scene.site,
			 "SELECT count(*) AS n FROM dead_letters WHERE "
			 "peer_answer = 'processing_error' AND entity_id = 'a' "
			 "AND payload = '\"n\":0'"),
	    1);
	cr_expect(test_daemon_logged(scene.outboxd, "event=outbox.dead", 100));
	scene_end(&scene);
}

Test(delivery, reasons_that_can_never_change_end_an_entry_at_once)
{
	/* clang-format off */
	static const struct {
		const char *entry;
		const char *reason;
		int dead;
	} cases[] = {
		{ "create a", "attribution_mismatch", 1 },
		{ "create a", "duplicate",            0 },
		{ "delete a", "unknown_message",      0 },
	};
	/* clang-format on */

	test_db_needed();
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct turns turns =
		    TURNS({ .body = refusal("a", cases[i].reason) });
		struct scene scene = scene_begin(&turns);

		site_enqueue(&scene.site, scene.id, ENTRIES(cases[i].entry));
		cr_assert(
		    site_drained(&scene.site, SOON_MS), "%s", cases[i].reason);
		cr_expect_eq(site_number(&scene.site,
				 "SELECT count(*) AS n FROM dead_letters"),
		    cases[i].dead, "%s", cases[i].reason);
		cr_expect_eq(test_peer_count(scene.peer, RELAY_PATH), 1);
		scene_end(&scene);
	}
}

Test(delivery, a_peer_that_asks_for_a_pause_gets_it_and_no_blame)
{
	struct turns turns = TURNS(
	    { .status = 429, .headers = "Retry-After: 120\r\n", .body = "{}" });
	struct scene scene;

	test_db_needed();
	scene = scene_begin(&turns);
	site_enqueue(&scene.site, scene.id, ENTRIES("create a"));
	cr_assert(PEER_IS(&scene,
	    "next_attempt_at BETWEEN now() + interval '110 seconds' AND now() "
	    "+ interval '121 seconds' AND lease_worker IS NULL"));
	cr_expect_eq(ONE_PEER(&scene, "transport_failures + auth_failures"), 0);
	scene_end(&scene);
}

Test(delivery, a_refused_signature_is_counted_apart_and_changes_no_secret)
{
	static const int statuses[] = { 401, 403 };

	test_db_needed();
	for (size_t i = 0; i < COUNT(statuses); i++) {
		struct turns turns =
		    TURNS({ .status = statuses[i], .body = "{}" });
		struct scene scene = scene_begin(&turns);
		int64_t secret =
		    ONE_PEER(&scene, "hashtext(hmac_secret::text)");

		test_db_script(scene.site.db,
		    "UPDATE federation_peers SET auth_failures = 9");
		site_enqueue(&scene.site, scene.id, ENTRIES("create a"));
		cr_assert(PEER_IS(&scene,
		    "auth_failures = 10 AND lease_worker "
		    "IS NULL AND status = 'active' AND "
		    "transport_failures = 0"));
		cr_expect_eq(
		    ONE_PEER(&scene, "hashtext(hmac_secret::text)"), secret);
		cr_expect_eq(ONE_PEER(&scene, "last_code"), statuses[i]);
		scene_end(&scene);
	}
}

/* Takes a batch unless the one that nobody can take is in it. */
static void picky(void *arg UNUSED, struct arena *arena,
    const struct test_peer_request *request, struct test_peer_answer *answer)
{
	const char *body =
	    arena_textn(arena, request->body.data, request->body.len);

	if (!strstr(body, "\"m7\""))
		return;
	answer->status = 413;
	answer->body = "{}";
}

Test(delivery, a_blamed_batch_is_halved_until_the_culprit_stands_alone)
{
	struct site site;
	struct test_peer *peer;
	int64_t id;

	test_db_needed();
	site = site_begin();
	peer = test_peer_new("orbit.localhost", picky, NULL);
	id = site_peer(&site, test_peer_origin(peer));
	site_enqueue_many(&site, id, "m", 60);
	test_outboxd(site.node, NULL);
	cr_assert(site_drained(&site, SOON_MS));
	cr_expect_eq(site_number(&site,
			 "SELECT count(*) AS n FROM dead_letters "
			 "WHERE entity_id = 'm7' AND "
			 "why = 'status 413'"),
	    1);
	cr_expect_eq(
	    site_number(&site, "SELECT count(*) AS n FROM dead_letters"), 1);
	cr_expect_lt(test_peer_count(peer, RELAY_PATH), 20);
	test_peer_free(&peer);
	site_end(&site);
}

Test(
    delivery, ten_failures_make_a_peer_unreachable_and_one_batch_brings_it_back)
{
	struct turns turns = TURNS({ .status = 500, .body = "{}" }, TAKE_ALL);
	struct scene scene;

	test_db_needed();
	scene = scene_begin(&turns);
	test_db_script(scene.site.db,
	    "UPDATE federation_peers SET transport_failures = 9");
	site_enqueue(&scene.site, scene.id, ENTRIES("create a"));
	cr_assert(PEER_IS(&scene,
	    "status = 'unreachable' AND lease_worker IS NULL AND "
	    "next_attempt_at > now() + interval '23 hours'"));
	site_enqueue(&scene.site, scene.id, ENTRIES("create b"));
	bring_forward(&scene);
	cr_assert(site_drained(&scene.site, SOON_MS));
	cr_expect(
	    PEER_IS(&scene, "status = 'active' AND transport_failures = 0"));
	cr_expect_str_eq(site_told(&scene.site, scene.peer),
	    "create a | create a, create b");
	scene_end(&scene);
}

Test(delivery, nonsense_is_no_success)
{
	/* clang-format off */
	static const struct turn cases[] = {
		{ .status = 200, .body = "<html>welcome</html>" },
		{ .status = 200, .body = "{\"ok\":true}" },
		{ .status = 204, .body = "" },
		{ .cut = true },
		{ .endless = true },
		{ .status = -1 },
		{ .status = 301, .headers = "Location: /elsewhere\r\n", .body = "" },
		{ .hold_ms = 20000 },
	};
	/* clang-format on */

	test_db_needed();
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct turns turns = { &cases[i], 1, 0 };
		struct scene scene = scene_begin(&turns);

		site_enqueue(&scene.site, scene.id, ENTRIES("create a"));
		cr_expect(PEER_IS(&scene,
			      "transport_failures = 1 AND "
			      "lease_worker IS NULL"),
		    "case %zu", i);
		cr_expect_eq(site_number(&scene.site,
				 "SELECT count(*) AS n FROM federation_outbox"),
		    1, "case %zu", i);
		scene_end(&scene);
	}
}

Test(delivery, a_silent_peer_delays_nobody_else)
{
	struct turns turns = TURNS({ .hold_ms = 20000 });
	struct scene scene;
	struct test_peer *healthy;
	int64_t id;
	int64_t before;

	test_db_needed();
	scene = scene_begin(&turns);
	healthy = test_peer_new("luna.localhost", NULL, NULL);
	id = site_peer(&scene.site, test_peer_origin(healthy));
	site_enqueue_many(&scene.site, scene.id, "m", 10000);
	cr_assert(test_peer_got(scene.peer, RELAY_PATH, 1, SOON_MS));
	before = clock_steady_ms();
	site_enqueue(&scene.site, id, ENTRIES("create x"));
	cr_expect(test_peer_got(healthy, RELAY_PATH, 1, 2000));
	cr_expect_lt(clock_steady_ms() - before, test_patience_ms(500));
	cr_expect_eq(test_peer_count(scene.peer, RELAY_PATH), 1);
	test_peer_free(&healthy);
	scene_end(&scene);
}

Test(delivery, is_taken_over_within_five_seconds_of_a_kill)
{
	struct turns turns = TURNS({ .hold_ms = 15000 }, TAKE_ALL);
	struct scene scene;
	int64_t before;

	test_db_needed();
	scene = scene_begin(&turns);
	test_outboxd(scene.site.node, NULL);
	/* Whoever of the two has it: the other one takes over. */
	test_daemon_kill(&scene.site.node->daemons[1]);
	site_enqueue(&scene.site, scene.id, ENTRIES("create a", "create b"));
	cr_assert(test_peer_got(scene.peer, RELAY_PATH, 1, SOON_MS));
	test_daemon_again(&scene.site.node->daemons[1]);
	before = clock_steady_ms();
	test_daemon_kill(scene.outboxd);
	cr_assert(site_drained(&scene.site, 6000));
	cr_expect_lt(clock_steady_ms() - before, test_patience_ms(5000));
	cr_expect_str_eq(site_told(&scene.site, scene.peer),
	    "create a, create b | create a, create b");
	scene_end(&scene);
}

Test(delivery, a_stop_gives_leases_back_within_a_second)
{
	struct turns turns = TURNS({ .hold_ms = 15000 });
	struct scene scene;
	int64_t before;

	test_db_needed();
	scene = scene_begin(&turns);
	site_enqueue(&scene.site, scene.id, ENTRIES("create a"));
	cr_assert(test_peer_got(scene.peer, RELAY_PATH, 1, SOON_MS));
	before = clock_steady_ms();
	kill(scene.outboxd->pid, SIGTERM);
	cr_expect(
	    PEER_IS(&scene, "lease_worker IS NULL AND transport_failures = 0"));
	cr_expect_lt(clock_steady_ms() - before, test_patience_ms(1000));
	cr_expect_eq(test_daemon_ended(scene.outboxd, 10000), 0);
	cr_expect_eq(site_number(&scene.site,
			 "SELECT count(*) AS n FROM federation_outbox"),
	    1);
	scene_end(&scene);
}

Test(delivery, a_paused_or_revoked_peer_is_left_alone)
{
	static const char *const changes[] = {
		"UPDATE federation_peers SET status = 'revoked'",
		"UPDATE federation_peers SET paused_until = 'infinity'"
	};

	test_db_needed();
	for (size_t i = 0; i < COUNT(changes); i++) {
		struct turns turns = TURNS({ .hold_ms = 1500 }, TAKE_ALL);
		struct scene scene = scene_begin(&turns);

		site_enqueue_many(&scene.site, scene.id, "m", 200);
		cr_assert(test_peer_got(scene.peer, RELAY_PATH, 1, SOON_MS));
		test_db_script(scene.site.db, changes[i]);
		cr_assert(PEER_IS(&scene, "lease_worker IS NULL"));
		site_enqueue(&scene.site, scene.id, ENTRIES("create x"));
		cr_expect_not(test_peer_got(scene.peer, RELAY_PATH, 2, 1500));
		cr_expect_eq(site_number(&scene.site,
				 "SELECT count(*) AS n FROM federation_outbox"),
		    151);
		scene_end(&scene);
	}
}

Test(delivery, losing_the_listener_drops_leases_and_takes_up_again)
{
	struct turns turns = TURNS({ .hold_ms = 15000 }, TAKE_ALL);
	struct scene scene;

	test_db_needed();
	scene = scene_begin(&turns);
	site_enqueue(&scene.site, scene.id, ENTRIES("create a"));
	cr_assert(test_peer_got(scene.peer, RELAY_PATH, 1, SOON_MS));
	test_db_script(scene.site.db,
	    "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = "
	    "'advisory' AND pid <> pg_backend_pid() AND database = (SELECT oid "
	    "FROM pg_database WHERE datname = current_database())");
	cr_assert(site_drained(&scene.site, 6000));
	cr_expect_eq(ONE_PEER(&scene, "transport_failures"), 0);
	cr_expect_str_eq(
	    site_told(&scene.site, scene.peer), "create a | create a");
	scene_end(&scene);
}
