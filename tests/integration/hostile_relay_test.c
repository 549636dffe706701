/* What a peer, or somebody who claims to be one, may send without harm. */
#include <criterion/criterion.h>

#include "common/base/clock.h"
#include "tests/integration/hostile_site.h"
#include "tests/lib/test_db.h"

enum { RELAY_MAX = 10485760 };

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

TestSuite(hostile_relay, .init = begin, .fini = end, .timeout = 300);

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

/* ---- 1.5 depth, duplicate names, sizes ---- */

Test(hostile_relay, two_hundred_thousand_brackets_cost_nothing)
{
	const char *deep = arena_printf(
	    site.arena, "%s%s", repeated("[", 200000), repeated("]", 200000));
	const char *nested = with(create("m1"), "\"contextType\":\"dm\"",
	    "\"contextType\":\"dm\",\"extra\":{\"a\":[{\"b\":[{\"c\":[[[1]]]}]}"
	    "]}");
	int64_t rss_kb = test_daemon_rss_kb(site.world->frontd);
	int64_t ms = clock_steady_ms();
	struct test_reply reply = hostile_send(&site, deep);

	cr_expect_eq(reply.status, 400, "%d %s", reply.status, reply.body);
	cr_expect_lt(clock_steady_ms() - ms, 2000);
	cr_expect_lt(
	    test_daemon_rss_kb(site.world->frontd) - rss_kb, 64 * 1024);
	deep = hostile_body(&site,
	    arena_printf(site.arena, "%s%s", repeated("{\"a\":", 5000),
		repeated("}", 5000)));
	cr_expect_eq(hostile_send(&site, deep).status, 400);
	reply = hostile_relay(&site, nested);
	cr_expect_eq(reply.status, 200);
	cr_expect_not_null(
	    strstr(reply.body, "\"accepted\":[\"m1\"]"), "%s", reply.body);
}

Test(hostile_relay, a_body_that_can_be_read_in_two_ways_is_refused_whole)
{
	static const char *const bodies[] = {
		"{\"version\":1,\"version\":1,\"sourceInstance\":"
		"\"" HOSTILE_LUNA "\",\"events\":[]}",
		"{\"version\":1,\"sourceInstance\":\"" HOSTILE_LUNA
		"\",\"events\":[],\"ev\\u0065nts\":[]}",
		"{\"version\":1,\"sourceInstance\":\"" HOSTILE_LUNA
		"\",\"events\":[{\"eventType\":\"create\","
		"\"eventType\":\"delete\"}]}",
		"{\"version\":1,\"sourceInstance\":\"" HOSTILE_LUNA
		"\",\"events\":[]} x",
		"{\"version\":1,\"sourceInstance\":\"" HOSTILE_LUNA
		"\",\"events\":[\"\xff\"]}",
		"{\"version\":1,\"sourceInstance\":\"" HOSTILE_LUNA
		"\",\"events\":[01]}",
		"{\"version\":1,",
	};
	const char *before = hostile_state(&site);

	for (size_t i = 0; i < COUNT(bodies); i++)
		cr_expect_eq(
		    hostile_send(&site, bodies[i]).status, 400, "row %zu", i);
	cr_expect_str_eq(hostile_state(&site), before);
}

Test(hostile_relay, ten_megabytes_are_taken_and_a_byte_more_is_not)
{
	const char *body = hostile_body(&site, create("m1"));
	char *large = arena_alloc(site.arena, RELAY_MAX + 2);
	struct test_reply reply;

	memset(large, ' ', RELAY_MAX + 1);
	memcpy(large, body, strlen(body));
	large[RELAY_MAX] = '\0';
	reply = hostile_send(&site, large);
	cr_expect_eq(reply.status, 200, "%d", reply.status);
	cr_expect_not_null(strstr(reply.body, "\"accepted\":[\"m1\"]"));
	large[RELAY_MAX] = ' ';
	large[RELAY_MAX + 1] = '\0';
	reply = hostile_send(&site, large);
	cr_expect_eq(reply.status, 413, "%d", reply.status);
}

Test(hostile_relay, a_body_full_of_values_costs_bounded_memory)
{
	const char *body = hostile_body(
	    &site, arena_printf(site.arena, "%s0", repeated("0,", 4000000)));
	int64_t rss_kb = test_daemon_rss_kb(site.world->frontd);
	int64_t ms = clock_steady_ms();

	cr_expect_eq(hostile_send(&site, body).status, 400);
	cr_expect_lt(clock_steady_ms() - ms, 10000);
	cr_expect_lt(
	    test_daemon_rss_kb(site.world->frontd) - rss_kb, 512 * 1024);
	cr_expect_eq(hostile_relay(&site, create("m1")).status, 200);
}

/* ---- 1.6 ids ---- */

#define ID_768 "653247040368672768"
#define ID_769 "653247040368672769"

Test(hostile_relay, neighbouring_ids_stay_two)
{
	const char *events[] = { create(ID_768), create(ID_769) };
	const char *number = with(create("x"), "\"x\"", ID_768);
	struct test_reply reply =
	    hostile_relay(&site, joined(events, COUNT(events)));

	cr_expect_not_null(
	    strstr(reply.body, "\"accepted\":[\"" ID_768 "\",\"" ID_769 "\"]"),
	    "%s", reply.body);
	reply = hostile_relay(
	    &site, "{\"eventType\":\"delete\",\"messageId\":\"" ID_768 "\"}");
	cr_expect_not_null(strstr(reply.body, "\"accepted\":[\"" ID_768 "\"]"));
	cr_expect_str_eq(test_db_text(site.arena, site.world->node->database,
			     "SELECT string_agg(source_message_id, ',') AS t"
			     " FROM dm_messages"),
	    ID_769);
	reply = hostile_relay(&site, number);
	cr_expect_eq(reply.status, 200);
	cr_expect_not_null(
	    strstr(reply.body, "\"accepted\":[]"), "%s", reply.body);
	reply = test_get(site.arena, site.port,
	    arena_printf(site.arena, "/api/dm/%" PRId64 "/messages",
		hostile_number(&site, "SELECT id FROM dm_channels")),
	    site.world->token);
	cr_expect_str_eq(
	    test_text(site.arena, &reply, "0.sourceMessageId"), ID_769);
}

/* ---- 1.7 what PostgreSQL cannot hold ---- */

Test(hostile_relay, unusable_texts_cost_only_their_event)
{
	static const char *const unusable[] = { "a\\u0000b", "\\ud83d",
		"\\udc00x" };

	for (size_t i = 0; i < COUNT(unusable); i++) {
		const char *name =
		    arena_printf(site.arena, "\"%s\"", unusable[i]);
		const char *good = arena_printf(site.arena, "good%zu", i);
		const char *events[] = {
			create(arena_printf(site.arena, "%s-1", good)),
			hostile_create(&site, "content", unusable[i]),
			create(arena_printf(site.arena, "%s-2", good)),
			with(create("name"), "\"zed\"", name),
			create(arena_printf(site.arena, "%s-3", good)),
		};
		struct test_reply reply =
		    hostile_relay(&site, joined(events, COUNT(events)));

		cr_expect_eq(reply.status, 200);
		cr_expect_eq(
		    json_count(test_json(site.arena, &reply, "accepted")), 3,
		    "row %zu: %s", i, reply.body);
		cr_expect_eq(
		    json_count(test_json(site.arena, &reply, "rejected")), 2);
		cr_expect_null(strstr(reply.body, "processing_error"),
		    "it would come again: %s", reply.body);
	}
	cr_expect_eq(hostile_lines(&site, "level=error"), 0);
}

/* ---- 1.8 lengths ---- */

static void expect_refused_for_good(const char *event, const char *what)
{
	struct test_reply reply = hostile_relay(&site, event);

	cr_expect_eq(reply.status, 200, "%s: %d", what, reply.status);
	cr_expect_eq(json_count(test_json(site.arena, &reply, "accepted")), 0,
	    "%s", what);
	cr_expect_null(
	    strstr(reply.body, "processing_error"), "%s: %s", what, reply.body);
}

static const char *file_at(const char *id, const char *url)
{
	return with(create(id), "\"content\"",
	    arena_printf(site.arena,
		"\"attachments\":[{\"id\":\"1\",\"originalName\":\"f\","
		"\"mimetype\":\"t/p\",\"size\":1,\"sourceUrl\":\"%s\"}],"
		"\"content\"",
		url));
}

Test(hostile_relay, endless_ids_and_urls_are_refused_before_the_database)
{
	static const size_t lengths[] = { 3000, 20000 };
	const char *before = hostile_state(&site);
	struct test_reply reply;

	for (size_t i = 0; i < COUNT(lengths); i++) {
		const char *noise = hostile_noise(&site, lengths[i]);
		const char *quoted = arena_printf(site.arena, "\"%s\"", noise);

		expect_refused_for_good(create(noise), "messageId");
		expect_refused_for_good(
		    with(create("m"), "\"participants\"",
			arena_printf(site.arena,
			    "\"federatedId\":%s,\"participants\"", quoted)),
		    "federatedId");
		expect_refused_for_good(
		    with(create("m"), "\"700\"", quoted), "homeUserId");
		expect_refused_for_good(
		    with(create("m"), "\"luna.localhost\"", quoted),
		    "homeInstance");
	}
	cr_expect_str_eq(hostile_state(&site), before);
	reply = hostile_relay(&site,
	    file_at("long",
		arena_printf(site.arena, HOSTILE_LUNA "/api/uploads/%s",
		    hostile_noise(&site, 2000))));
	cr_expect_not_null(strstr(reply.body, "\"accepted\":[\"long\"]"));
	cr_expect_eq(
	    hostile_number(&site, "SELECT count(*) FROM attachments"), 1);
	for (size_t i = 0; i < COUNT(lengths); i++)
		hostile_relay(&site,
		    file_at(arena_printf(site.arena, "url%zu", i),
			arena_printf(site.arena, HOSTILE_LUNA "/%s",
			    hostile_noise(&site, lengths[i]))));
	cr_expect_eq(
	    hostile_number(&site, "SELECT count(*) FROM attachments"), 1);
	cr_expect_eq(hostile_lines(&site, "level=error"), 0);
}

/* The longest that is allowed, in the characters that take most bytes. */
Test(hostile_relay, the_longest_legal_ids_are_kept)
{
	const char *wide = repeated("\xe6\x97\xa5", 256);
	const char *event = with(with(create(wide), "\"700\"",
				     arena_printf(site.arena, "\"%s\"", wide)),
	    "\"message\":{\"homeUserId\":\"700\"",
	    arena_printf(
		site.arena, "\"message\":{\"homeUserId\":\"%s\"", wide));
	struct test_reply reply = hostile_relay(&site, event);

	cr_expect_eq(json_count(test_json(site.arena, &reply, "accepted")), 1,
	    "%s", reply.body);
}

/* ---- 1.10 ---- */

Test(hostile_relay, a_compressed_body_is_not_unpacked)
{
	static const char head[] =
	    "POST " HOSTILE_RELAY " HTTP/1.1\r\nHost: x\r\n"
	    "Content-Type: application/json\r\nContent-Encoding: gzip\r\n"
	    "Content-Length: 20\r\n\r\n\x1f\x8b\x08";
	int64_t rss_kb = test_daemon_rss_kb(site.world->frontd);

	for (int i = 0; i < 20; i++)
		cr_expect_eq(
		    test_http_raw(site.arena, site.port, head, sizeof(head) - 1)
			.status,
		    415);
	cr_expect_lt(test_daemon_rss_kb(site.world->frontd) - rss_kb, 8 * 1024);
}

/* ---- 1.13 ---- */

Test(hostile_relay, what_a_peer_writes_forges_no_line_and_floods_none)
{
	const char *forged =
	    "x\\nlevel=error event=forged \\u001b[31m \\u2028y";
	const char *events[] = {
		arena_printf(site.arena,
		    "{\"eventType\":\"%s\",\"messageId\":\"%s\"}", forged,
		    forged),
		hostile_create(&site, forged, "\\u0000"),
		create(hostile_noise(&site, 100000)),
	};

	cr_expect_eq(
	    hostile_relay(&site, joined(events, COUNT(events))).status, 200);
	cr_expect(test_daemon_logged(
	    site.world->frontd, "reason=unknown_event_type", 2000));
	cr_expect_eq(hostile_lines(&site, "\x1b"), 0);
	cr_expect_eq(hostile_lines(&site, "\xe2\x80\xa8"), 0);
	cr_expect_eq(hostile_lines(&site, "level=error"),
	    hostile_lines(&site, "\\nlevel=error"), "only inside a value");
	hostile_relay(&site,
	    arena_printf(
		site.arena, "%s{}", hostile_repeated(&site, "{},", 49)));
	cr_expect(test_daemon_logged(
	    site.world->frontd, "event=relay.refused_more", 2000));
	cr_expect_leq(hostile_lines(&site, "event=relay.refused "), 8);
	cr_expect_eq(hostile_lines(&site, hostile_noise(&site, 5000)), 0,
	    "values are cut");
}

/* ---- 3.10 dates ---- */

Test(hostile_relay, dates_are_kept_within_reason)
{
	const int64_t day = 86400000;
	const int64_t offsets[] = { 60000, day, INT64_C(73) * 365 * day };
	int64_t now = clock_wall_ms();

	for (size_t i = 0; i < COUNT(offsets); i++) {
		const char *event = create(arena_printf(site.arena, "d%zu", i));
		const char *date = strstr(event, "\"createdAt\"");

		event =
		    arena_printf(site.arena, "%.*s\"createdAt\":%" PRId64 "}}",
			(int)(date - event), event, now + offsets[i]);
		cr_expect_not_null(strstr(hostile_relay(&site, event).body,
		    arena_printf(site.arena, "\"accepted\":[\"d%zu\"]", i)));
	}
	cr_expect_eq(hostile_number(&site,
			 arena_printf(site.arena,
			     "SELECT extract(epoch FROM created_at) * 1000 - "
			     "%" PRId64 " FROM dm_messages WHERE "
			     "source_message_id = 'd0'",
			     now)),
	    60000, "a small skew is nobody's business");
	cr_expect_lt(
	    hostile_number(&site,
		arena_printf(site.arena,
		    "SELECT extract(epoch FROM max(created_at)) * 1000 - "
		    "%" PRId64 " FROM dm_messages",
		    now)),
	    61000);
	cr_expect_eq(hostile_number(&site, "SELECT seq FROM dm_channels"), 4,
	    "the order is that of arrival");
}

/* ---- 3.12 ---- */

Test(hostile_relay, the_marks_of_a_deletion_stay_here)
{
	test_daemon_stop(site.world->outboxd);
	cr_assert_eq(hostile_relay(&site, create("m1")).status, 200);
	world_sql(site.world,
	    "UPDATE users SET is_deleted = true, username = '!deleted:' || id,"
	    " display_name = '!deleted:old', avatar = 'http://x.test/old'"
	    " WHERE home_user_id = '700';"
	    "UPDATE users SET replicated_instances ="
	    " '[{\"origin\":\"" HOSTILE_LUNA "\"}]' WHERE id = %s",
	    site.alice);
	cr_expect_eq(
	    test_post(site.arena, site.port,
		arena_printf(site.arena, "/api/dm/%" PRId64 "/messages",
		    hostile_number(&site, "SELECT id FROM dm_channels")),
		site.world->token, "{\"content\":\"hello?\"}")
		.status,
	    201);
	cr_expect_eq(
	    hostile_number(&site, "SELECT count(*) FROM federation_outbox"), 1);
	cr_expect_eq(hostile_number(&site,
			 "SELECT count(*) FROM federation_outbox"
			 " WHERE payload ~ 'deleted:|old'"),
	    0);
}

/* ---- 3.3, 3.16 ---- */

Test(hostile_relay, a_group_without_its_id_opens_no_pair)
{
	const char *third =
	    "\"participants\":[{\"homeUserId\":\"8\",\"homeInstance\":"
	    "\"luna.localhost\"},";
	const char *event = with(create("g1"), "\"participants\":[", third);
	const char *before = hostile_state(&site);

	expect_refused_for_good(event, "no federated id");
	expect_refused_for_good(
	    with(event, "\"participants\"",
		"\"federatedId\":\"c51b6cfa\",\"participants\""),
	    "unknown group");
	cr_expect_str_eq(hostile_state(&site), before);
}

Test(hostile_relay, three_bad_events_of_fifty_cost_three)
{
	const char *events[50];
	struct test_reply reply;

	world_sql(site.world,
	    "ALTER TABLE dm_messages ADD CHECK (content <> 'poison')");
	for (int i = 0; i < 50; i++)
		events[i] =
		    hostile_create(&site, arena_printf(site.arena, "m%d", i),
			i == 17 ? "poison" : "fine");
	events[30] = "{\"eventType\":\"invented\",\"messageId\":\"m30\"}";
	events[31] = with(create("m31"), "\"hello\"", "{\"a\":1}");
	reply = hostile_relay(&site, joined(events, COUNT(events)));
	cr_expect_eq(reply.status, 200);
	cr_expect_eq(json_count(test_json(site.arena, &reply, "accepted")), 47);
	for (int i = 0; i < 3; i++) {
		static const char *const rejected[] = { "m17", "m30", "m31" };

		cr_expect_str_eq(
		    test_text(site.arena, &reply,
			arena_printf(site.arena, "rejected.%d.messageId", i)),
		    rejected[i]);
	}
	cr_expect_eq(
	    hostile_number(&site, "SELECT count(*) FROM dm_messages"), 47);
}
