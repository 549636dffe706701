/* Who says that he is a peer, when, how often, and on whose behalf. */
#include <criterion/criterion.h>
#include <pthread.h>

#include "common/base/clock.h"
#include "tests/integration/hostile_site.h"
#include "tests/lib/test_db.h"

static struct hostile site;

static void begin(void)
{
	test_db_needed();
	site = hostile_begin(NULL);
}

static void end(void)
{
	if (site.world)
		hostile_end(&site);
}

TestSuite(hostile_claim, .init = begin, .fini = end, .timeout = 300);

static const char *joined(const char *const *events, size_t count)
{
	return hostile_joined(&site, events, count);
}

static const char *with(const char *event, const char *what, const char *by)
{
	return hostile_with(&site, event, what, by);
}

static const char *create(const char *id)
{
	return hostile_create(&site, id, "hello");
}

static const char *repeated(const char *what, size_t times)
{
	return hostile_repeated(&site, what, times);
}

/* ---- 2.2, 2.3 nonces ---- */

Test(hostile_claim, junk_nonces_leave_no_rows)
{
	struct signed_request junk = {
		.path = HOSTILE_RELAY,
		.origin = HOSTILE_LUNA,
		.secret = "guessed",
		.body = hostile_body(&site, ""),
	};

	for (int i = 0; i < 2000; i++)
		cr_assert_eq(world_send(site.world, &junk).status, 401);
	cr_expect_eq(hostile_number(&site, "SELECT count(*) FROM nonces"), 0);
	cr_expect_eq(
	    hostile_number(&site, "SELECT count(*) FROM peer_rates"), 0);
	cr_expect_leq(hostile_lines(&site, "Invalid signature"), 2000);
	cr_expect_leq(hostile_lines(&site, "level=info"), 200,
	    "strangers do not fill the journal");
}

struct sender {
	struct arena *arena;
	pthread_t thread;
	pthread_barrier_t *start;
	struct bytes request;
	int port;
	int status;
};

static void *send_at_once(void *arg)
{
	struct sender *sender = arg;

	pthread_barrier_wait(sender->start);
	sender->status = test_http_raw(sender->arena, sender->port,
	    sender->request.data, sender->request.len)
			     .status;
	return NULL;
}

static int accepted_of_twins(struct bytes request, const int *ports)
{
	struct sender senders[4] = { { .port = 0 } };
	pthread_barrier_t start;
	int accepted = 0;

	pthread_barrier_init(&start, NULL, COUNT(senders));
	for (size_t i = 0; i < COUNT(senders); i++) {
		senders[i] = (struct sender){ .arena = arena_new(),
			.start = &start,
			.request = request,
			.port = ports[i % 2] };
		pthread_create(
		    &senders[i].thread, NULL, send_at_once, &senders[i]);
	}
	for (size_t i = 0; i < COUNT(senders); i++) {
		pthread_join(senders[i].thread, NULL);
		accepted += senders[i].status == 200;
		cr_expect(senders[i].status == 200 || senders[i].status == 409,
		    "%d", senders[i].status);
		arena_free(&senders[i].arena);
	}
	pthread_barrier_destroy(&start);
	return accepted;
}

Test(hostile_claim, twins_at_the_same_moment_on_two_frontd_are_one)
{
	const int ports[] = { site.port,
		test_frontd(site.world->node, NULL)->port };

	for (int i = 0; i < 10; i++)
		cr_expect_eq(
		    accepted_of_twins(
			hostile_request(&site,
			    hostile_body(&site,
				create(arena_printf(site.arena, "m%d", i)))),
			ports),
		    1);
	cr_expect_eq(
	    hostile_number(&site, "SELECT count(*) FROM dm_messages"), 10);
}

/* The rollback of a bad first event must not take the nonce with it. */
Test(hostile_claim, a_batch_that_begins_badly_is_no_less_a_replay)
{
	const char *events[] = { hostile_create(&site, "p", "poison"),
		create("m1"), hostile_create(&site, "q", "poison") };
	struct bytes batch, single;
	struct test_reply reply;

	world_sql(site.world,
	    "ALTER TABLE dm_messages ADD CHECK (content <> 'poison')");
	batch = hostile_request(
	    &site, hostile_body(&site, joined(events, COUNT(events))));
	single = hostile_request(&site, hostile_body(&site, events[0]));
	reply = test_http_raw(site.arena, site.port, batch.data, batch.len);
	cr_expect_not_null(
	    strstr(reply.body, "\"accepted\":[\"m1\"]"), "%s", reply.body);
	reply = test_http_raw(site.arena, site.port, batch.data, batch.len);
	cr_expect_eq(reply.status, 409, "%s", reply.body);
	reply = test_http_raw(site.arena, site.port, single.data, single.len);
	cr_expect_not_null(strstr(reply.body, "processing_error"));
	reply = test_http_raw(site.arena, site.port, single.data, single.len);
	cr_expect_eq(reply.status, 409, "%s", reply.body);
}

/* ---- 2.4, 2.5 ---- */

static const char *at(int64_t offset_ms)
{
	return arena_printf(
	    site.arena, "%" PRId64, clock_wall_ms() + offset_ms);
}

Test(hostile_claim, odd_time_stamps_and_signatures_are_refused)
{
	static const int64_t minute = 60000;
	const char *hex62 = repeated("ab", 31), *hex66 = repeated("ab", 33);
	const char *endless = hostile_noise(&site, 1 << 20);
	const struct signed_request rows[] = {
		{ .timestamp = "" },
		{ .timestamp = "abc" },
		{ .timestamp = "-1" },
		{ .timestamp = "1e13" },
		{ .timestamp = "0x18" },
		{ .timestamp = "NaN" },
		{ .timestamp = arena_textn(site.arena, at(0), 10) },
		{ .timestamp = at(16 * minute) },
		{ .timestamp = at(-16 * minute) },
		{ .timestamp = at(20 * minute) },
		{ .timestamp = at(-20 * minute) },
		{ .timestamp = repeated("9", 40) },
		{ .signature = arena_printf(site.arena, "sha256=%s", hex62) },
		{ .signature = arena_printf(site.arena, "sha256=%s", hex66) },
		{ .signature = repeated("ab", 32) },
		{ .signature = "sha256=zzzz" },
		{ .signature = "sha256=" },
		{ .signature = "" },
		{ .nonce = endless },
		{ .nonce = hostile_noise(&site, 1000) },
	};
	const char *before = hostile_state(&site);

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct signed_request request = rows[i];
		int status;

		request.path = HOSTILE_RELAY;
		request.origin = HOSTILE_LUNA;
		request.secret = HOSTILE_SECRET;
		request.body = hostile_body(&site, create("m1"));
		status = world_send(site.world, &request).status;
		cr_expect(status == 401 || (status == 431 && request.nonce),
		    "row %zu: %d", i, status);
	}
	cr_expect_eq(hostile_number(&site, "SELECT count(*) FROM nonces"), 0);
	cr_expect_str_eq(hostile_state(&site), before);
}

Test(hostile_claim, two_headers_of_one_name_count_as_none)
{
	static const char *const names[] = { "X-Federation-Origin",
		"X-Federation-Timestamp", "X-Federation-Nonce",
		"X-Federation-Signature" };

	for (size_t i = 0; i < COUNT(names); i++) {
		struct bytes once =
		    hostile_request(&site, hostile_body(&site, ""));
		const char *twice = with(once.data, "Connection: close\r\n",
		    arena_printf(site.arena, "Connection: close\r\n%s: 1\r\n",
			names[i]));
		int status =
		    test_http_raw(site.arena, site.port, twice, strlen(twice))
			.status;

		cr_expect(status == 400 || status == 401 || status == 403,
		    "%s: %d", names[i], status);
	}
}

Test(hostile_claim, a_peer_with_a_wrong_clock_is_told_apart)
{
	struct signed_request late = {
		.path = HOSTILE_RELAY,
		.origin = HOSTILE_LUNA,
		.secret = HOSTILE_SECRET,
		.body = hostile_body(&site, ""),
		.timestamp = at(-20 * 60000),
	};

	cr_expect_eq(world_send(site.world, &late).status, 401);
	cr_expect(test_daemon_logged(
	    site.world->frontd, "event=peer.clock_skew", 2000));
	cr_expect_eq(hostile_lines(&site, "event=peer.clock_skew"), 1);
	late.secret = "guessed";
	cr_expect_eq(world_send(site.world, &late).status, 401);
	cr_expect_eq(hostile_lines(&site, "event=peer.clock_skew"), 1,
	    "anybody can write a wrong date");
}

/* ---- forged attribution ---- */

#define ACTOR "\"message\":{\"homeUserId\":\"700\",\"homeInstance\":"

static const char *edit(const char *id, const char *who, const char *where)
{
	return arena_printf(site.arena,
	    "{\"eventType\":\"update\",\"contextType\":\"dm\",\"messageId\":"
	    "\"%s\",\"message\":{\"homeUserId\":\"%s\",\"homeInstance\":"
	    "\"%s\",\"content\":\"forged\",\"editedAt\":%" PRId64 "}}",
	    id, who, where, clock_wall_ms());
}

Test(hostile_claim, forged_attribution_changes_no_row)
{
	const char *events[] = {
		with(create("f1"), ACTOR "\"luna.localhost\"",
		    ACTOR "\"orbit.localhost\""),
		/* Our person, who has no account declared there. */
		with(with(create("f2"), ACTOR "\"luna.localhost\"",
			 arena_printf(site.arena,
			     "\"message\":{\"homeUserId\":\"%s\","
			     "\"homeInstance\":\"nova.localhost\"",
			     site.alice)),
		    "hello", "forged"),
		with(create("f3"), ACTOR "\"luna.localhost\"",
		    ACTOR "\"luna.localhost:9\\u002e\""),
		edit("kept", "701", "luna.localhost"),
		edit("kept", "700", "orbit.localhost"),
		edit("kept", site.alice, "nova.localhost"),
		edit("theirs", "700", "luna.localhost"),
		"{\"eventType\":\"delete\",\"messageId\":\"theirs\"}",
	};
	const char *before;
	struct test_reply reply;

	cr_assert_eq(
	    world_accept(site.world, "http://orbit.localhost:9", "orbit-secret")
		.status,
	    200);
	cr_assert_eq(hostile_relay(&site, create("kept")).status, 200);
	/* A message of another peer, under an id that luna knows. */
	world_sql(site.world,
	    "INSERT INTO dm_messages (dm_channel_id, user_id, content,"
	    " source_instance, source_message_id)"
	    " SELECT dm_channel_id, user_id, 'x', 'http://orbit.localhost:9',"
	    " 'theirs' FROM dm_messages WHERE source_message_id = 'kept'");
	before = hostile_state(&site);
	reply = hostile_relay(&site, joined(events, COUNT(events)));
	cr_expect_eq(reply.status, 200);
	cr_expect_eq(json_count(test_json(site.arena, &reply, "rejected")),
	    COUNT(events), "%s", reply.body);
	cr_expect_str_eq(hostile_state(&site), before);
	/* Another peer's name over luna's signature. */
	reply = hostile_send(&site,
	    with(hostile_body(&site, create("f4")), HOSTILE_LUNA,
		"http://orbit.localhost:9"));
	cr_expect_eq(reply.status, 400);
	cr_expect_str_eq(hostile_state(&site), before);
}

/* ---- 2.11 spellings ---- */

#define BUCH "xn--bcher-kva.example"

static struct test_reply as_buch(const char *origin, const char *home)
{
	const char *body = arena_printf(site.arena,
	    "{\"version\":1,\"sourceInstance\":\"https://" BUCH
	    "\",\"events\":[%s]}",
	    with(with(create(hostile_noise(&site, 5 + strlen(home))),
		     "luna.localhost", home),
		"luna.localhost", home));

	return world_send(site.world,
	    &(const struct signed_request){ .path = HOSTILE_RELAY,
		.origin = origin,
		.secret = "buch-secret",
		.body = body });
}

Test(hostile_claim, every_spelling_of_a_host_is_one_peer_and_one_person)
{
	static const char *const origins[] = { "https://b\xc3\xbc"
					       "cher.example",
		"https://" BUCH,
		"HTTPS://B\xc3\x9c"
		"CHER.EXAMPLE/",
		"https://b\xc3\xbc"
		"cher.example:443",
		"https://" BUCH ".",
		"https://bu\xcc\x88"
		"cher.example" };
	static const char *const homes[] = { BUCH,
		"b\xc3\xbc"
		"cher.example",
		"B\xc3\x9c"
		"CHER.example.",
		"https://" BUCH ":443/" };

	for (size_t i = 0; i < COUNT(origins); i++)
		cr_expect_eq(
		    world_accept(site.world, origins[i], "buch-secret").status,
		    200, "%s", origins[i]);
	cr_expect_eq(
	    hostile_number(&site,
		"SELECT count(*) FROM federation_peers WHERE host = '" BUCH
		"'"),
	    1);
	for (size_t i = 0; i < COUNT(homes); i++) {
		struct test_reply reply = as_buch("https://" BUCH, homes[i]);

		cr_expect_eq(
		    json_count(test_json(site.arena, &reply, "accepted")), 1,
		    "%s: %s", homes[i], reply.body);
	}
	cr_expect_eq(hostile_number(&site,
			 "SELECT count(*) FROM users WHERE home_user_id = "
			 "'700'"),
	    1);
	/* Blocked under one spelling is blocked under all. */
	world_sql(site.world,
	    "UPDATE federation_peers SET status = 'revoked' WHERE host = '" BUCH
	    "'");
	for (size_t i = 0; i < COUNT(origins); i++)
		cr_expect_eq(world_accept(site.world, origins[i], "new").status,
		    403, "%s", origins[i]);
	cr_expect_eq(as_buch("https://" BUCH, BUCH).status, 403);
}
