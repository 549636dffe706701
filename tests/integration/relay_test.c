/* Inbound events: what is taken, what is refused, and that nothing doubles. */
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

TestSuite(relay, .init = begin, .fini = end, .timeout = 300);

#define ACCEPTED(ids) \
	"{\"accepted\":[" ids "],\"rejected\":[],\"maxUploadSize\":7340032}"
#define REJECTED(id, why) \
	"{\"accepted\":[],\"rejected\":[{\"messageId\":\"" id \
	"\",\"reason\":\"" why "\"}],\"maxUploadSize\":7340032}"

static const char *create(const char *id)
{
	return relay_site_create(&site, id, "hello");
}

static void expect_answer(const char *events, const char *answer)
{
	cr_expect_str_eq(relay_site_send(&site, events), answer);
}

/* Rewrites the first occurrence of what in an event. */
static const char *with(const char *event, const char *what, const char *by)
{
	const char *at = strstr(event, what);

	cr_assert(at, "%s is not in the event", what);
	return arena_printf(site.arena, "%.*s%s%s", (int)(at - event), event,
	    by, at + strlen(what));
}

static const char *update(const char *id, const char *content, int64_t at)
{
	return arena_printf(site.arena,
	    "{\"eventType\":\"update\",\"messageId\":\"%s\",\"message\":{"
	    "\"homeUserId\":\"700\",\"homeInstance\":\"luna.test\","
	    "\"content\":\"%s\",\"editedAt\":%" PRId64 ",\"createdAt\":1}}",
	    id, content, at);
}

static const char *gone(const char *id)
{
	return arena_printf(
	    site.arena, "{\"eventType\":\"delete\",\"messageId\":\"%s\"}", id);
}

static const char *content_of(const char *id)
{
	return relay_site_text(&site,
	    arena_printf(site.arena,
		"SELECT content AS t FROM dm_messages "
		"WHERE source_message_id = '%s'",
		id));
}

static int64_t count(const char *what)
{
	return relay_site_number(&site,
	    arena_printf(site.arena, "SELECT count(*) AS n FROM %s", what));
}

/* ---- create ---- */

Test(relay, a_first_message_brings_its_person_and_conversation)
{
	expect_answer(create("m1"), ACCEPTED("\"m1\""));
	cr_expect_str_eq(content_of("m1"), "hello");
	cr_expect_str_eq(relay_site_text(&site,
			     "SELECT username || ' ' || display_name || ' ' || "
			     "avatar || ' ' || avatar_color AS t FROM users "
			     "WHERE home_user_id = '700'"),
	    "700@luna.test Zed https://luna.test/api/uploads/z.png mint");
	cr_expect_eq(count("dm_members"), 2);
	cr_expect_str_eq(
	    relay_site_text(&site,
		"SELECT string_agg(seq || ' ' || kind, ', ' ORDER BY seq) "
		"AS t FROM conversation_events"),
	    "1 channel_created, 2 message_created");
	cr_expect_eq(
	    relay_site_number(&site,
		"SELECT count(*) AS n FROM dm_channels WHERE federated_id = "
		"left(encode(sha256(convert_to((SELECT string_agg(i, ':' "
		"ORDER BY i COLLATE \"C\") FROM (SELECT '700' AS i UNION "
		"SELECT id::text FROM users WHERE username = 'alice') x), "
		"'UTF8')), 'hex'), 32)"),
	    1);
}

Test(relay, a_repeated_create_is_a_duplicate_and_changes_nothing)
{
	expect_answer(create("m1"), ACCEPTED("\"m1\""));
	expect_answer(create("m1"), REJECTED("m1", "duplicate"));
	expect_answer(arena_printf(site.arena, "%s,%s", create("m2"),
			  relay_site_create(&site, "m2", "again")),
	    "{\"accepted\":[\"m2\"],\"rejected\":[{\"messageId\":\"m2\","
	    "\"reason\":\"duplicate\"}],\"maxUploadSize\":7340032}");
	cr_expect_str_eq(content_of("m2"), "hello");
	cr_expect_eq(count("dm_messages"), 2);
	cr_expect_eq(
	    relay_site_number(&site, "SELECT seq AS n FROM dm_channels"), 3);
}

Test(relay, look_alike_hosts_are_no_authors)
{
	static const char *const hosts[] = { "evil-luna.test",
		"luna.test.evil.test", "https://luna.test@evil.test",
		"luna.test:8443", "luna.test#", "", "evil.test" };

	for (size_t i = 0; i < COUNT(hosts); i++) {
		const char *event = with(create("m1"),
		    "\"homeUserId\":\"700\",\"homeInstance\":\"https://"
		    "luna.test\",\"content\"",
		    arena_printf(site.arena,
			"\"homeUserId\":\"700\",\"homeInstance\":\"%s\","
			"\"content\"",
			hosts[i]));

		cr_expect_str_eq(relay_site_send(&site, event),
		    REJECTED("m1", "attribution_mismatch"), "%s", hosts[i]);
	}
	cr_expect_eq(count("dm_messages"), 0);
	cr_expect_eq(count("users"), 2, "nobody was made");
}

Test(relay, spellings_of_one_host_are_one_person)
{
	expect_answer(create("m1"), ACCEPTED("\"m1\""));
	expect_answer(with(create("m2"), "https://luna.test", "LUNA.TEST"),
	    ACCEPTED("\"m2\""));
	expect_answer(
	    with(create("m3"), "https://luna.test", "https://luna.test:443/"),
	    ACCEPTED("\"m3\""));
	cr_expect_eq(count("users"), 3);
	cr_expect_eq(count("dm_channels"), 1);
}

Test(relay, events_are_refused_with_the_recorded_reasons)
{
	const char *good = create("m1");
	const struct {
		const char *event;
		const char *answer;
	} rows[] = {
		{ "{\"eventType\":\"create\",\"messageId\":\"m1\"}",
		    REJECTED("m1", "missing_message_payload") },
		{ with(good, "\"participants\"", "\"x\""),
		    REJECTED("m1", "missing_participants") },
		{ with(good, SITE_ZED ",", ""),
		    REJECTED("m1", "missing_participants") },
		{ with(good, SITE_ZED ",",
		      SITE_ZED ",{\"homeUserId\":\"8\",\"homeInstance\":"
			       "\"luna.test\"},"),
		    REJECTED("m1", "missing_participants") },
		{ with(good, "\"userId\":\"1\",\"homeUserId\":\"700\"",
		      "\"homeUserId\":\"701\""),
		    REJECTED("m1", "author_not_found") },
		{ with(good, "\"dmChannelId\":\"9\"",
		      "\"federatedId\":\"nowhere\""),
		    REJECTED("m1", "channel_not_found") },
		{ with(good, "\"content\":\"hello\"", "\"content\":{\"a\":1}"),
		    REJECTED("m1", "processing_error") },
		{ with(good, "hello", "a\\u0000b"),
		    REJECTED("m1", "missing_message_payload") },
		{ with(good, "hello", "\\ud83d"),
		    REJECTED("m1", "missing_message_payload") },
		{ with(good, "\"contextType\":\"dm\"",
		      "\"contextType\":\"friend\""),
		    REJECTED("m1", "unknown_event_type") },
		{ "{\"eventType\":\"what\",\"messageId\":\"m1\"}",
		    REJECTED("m1", "unknown_event_type") },
		{ "{\"eventType\":\"dm_typing_start\",\"messageId\":\"m1\"}",
		    REJECTED("m1", "missing_typing_payload") },
		{ update("m1", "x", 5), REJECTED("m1", "unknown_message") },
		{ gone("m1"), REJECTED("m1", "unknown_message") },
		{ "null",
		    "{\"accepted\":[],\"rejected\":[{\"reason\":"
		    "\"unknown_event_type\"}],\"maxUploadSize\":7340032}" },
		{ "\"a string\"",
		    "{\"accepted\":[],\"rejected\":[{\"reason\":"
		    "\"unknown_event_type\"}],\"maxUploadSize\":7340032}" },
	};

	for (size_t i = 0; i < COUNT(rows); i++)
		cr_expect_str_eq(relay_site_send(&site, rows[i].event),
		    rows[i].answer, "row %zu", i);
	cr_expect_eq(count("dm_messages"), 0);
	cr_expect_eq(count("users"), 2, "nobody was made");
}

Test(relay, limits_of_length_refuse_for_good_instead_of_failing)
{
	char id[300];
	char content[4002];

	memset(id, 'i', sizeof(id));
	id[256] = '\0';
	memset(content, 'c', sizeof(content));
	content[4000] = '\0';
	cr_expect_str_eq(
	    relay_site_send(&site, relay_site_create(&site, id, content)),
	    arena_printf(site.arena,
		"{\"accepted\":[\"%s\"],\"rejected\":[],\"maxUploadSize\":"
		"7340032}",
		id));
	memset(id, 'i', sizeof(id));
	id[257] = '\0';
	cr_expect(strstr(
	    relay_site_send(&site, create(id)), "missing_message_payload"));
	memset(content, 'c', sizeof(content));
	content[4001] = '\0';
	expect_answer(relay_site_create(&site, "m2", content),
	    REJECTED("m2", "missing_message_payload"));
	memset(id, '7', sizeof(id));
	id[257] = '\0';
	cr_expect(strstr(relay_site_send(&site, with(create("m3"), "700", id)),
	    "missing_participants"));
}

Test(relay, a_conversation_of_others_leaves_nothing_here)
{
	const char *event = with(create("m1"),
	    arena_printf(
		site.arena, "\"homeUserId\":\"%" PRId64 "\"", site.alice),
	    "\"homeUserId\":\"55\"");

	event = with(event, "\"homeInstance\":\"nova.test\"",
	    "\"homeInstance\":\"orbit.test\"");
	expect_answer(event, ACCEPTED("\"m1\""));
	/* Nor does what becomes of it later come again and again. */
	expect_answer(event, ACCEPTED("\"m1\""));
	expect_answer(
	    arena_printf(site.arena, "%s,%s", update("m1", "x", 5), gone("m1")),
	    ACCEPTED("\"m1\",\"m1\""));
	cr_expect_eq(count("dm_messages"), 0);
	cr_expect_eq(count("users"), 2);
}

Test(relay, who_is_not_here_any_more_gets_nothing)
{
	const char *stranger = with(create("m1"),
	    arena_printf(
		site.arena, "\"homeUserId\":\"%" PRId64 "\"", site.alice),
	    "\"homeUserId\":\"55\"");

	expect_answer(stranger, REJECTED("m1", "participant_not_found"));
	expect_answer(create("m2"), ACCEPTED("\"m2\""));
	test_db_script(site.conninfo,
	    "UPDATE users SET is_deleted = true WHERE home_user_id = '700'");
	expect_answer(create("m3"), REJECTED("m3", "participant_not_found"));
	cr_expect_eq(count("users"), 3, "a deleted person is not revived");
}

Test(relay, a_date_in_the_far_future_is_now)
{
	int64_t now = clock_wall_ms();
	const char *event = create("m1");
	const char *at = strstr(event, "\"createdAt\"");

	event = arena_printf(site.arena, "%.*s\"createdAt\":4070908800000}}",
	    (int)(at - event), event);
	expect_answer(event, ACCEPTED("\"m1\""));
	expect_answer(create("m2"), ACCEPTED("\"m2\""));
	cr_expect_leq(
	    relay_site_number(&site,
		"SELECT (extract(epoch FROM max(created_at)) * 1000)::bigint "
		"AS n FROM dm_messages"),
	    now + 60000);
}

Test(relay, ids_come_back_as_they_came)
{
	const char *unnamed = with(create("m1"), "\"messageId\":\"m1\",", "");
	const char *number = with(create("m1"), "\"m1\"", "12");
	const char *null = with(create("m1"), "\"m1\"", "null");

	expect_answer(unnamed, ACCEPTED("null"));
	cr_expect(strstr(relay_site_send(&site, unnamed), "duplicate"),
	    "repeating it does not double it");
	expect_answer(number, ACCEPTED("12"));
	expect_answer(number,
	    "{\"accepted\":[],\"rejected\":[{\"messageId\":12,"
	    "\"reason\":\"duplicate\"}],\"maxUploadSize\":7340032}");
	expect_answer(with(null, "hello", "other"), ACCEPTED("null"));
	expect_answer(with(create("m1"), "\"m1\"", "{}"),
	    "{\"accepted\":[],\"rejected\":[{\"reason\":"
	    "\"missing_message_payload\"}],\"maxUploadSize\":7340032}");
	expect_answer(create("caf\xc3\xa9 \\u2028/"),
	    ACCEPTED("\"caf\xc3\xa9 \xe2\x80\xa8/\""));
}

/* ---- update, delete ---- */

Test(relay, only_a_newer_edit_counts)
{
	expect_answer(create("m1"), ACCEPTED("\"m1\""));
	expect_answer(update("m1", "second", 2000), ACCEPTED("\"m1\""));
	expect_answer(update("m1", "first", 1000), ACCEPTED("\"m1\""));
	expect_answer(update("m1", "same", 2000), ACCEPTED("\"m1\""));
	cr_expect_str_eq(content_of("m1"), "second");
	expect_answer("{\"eventType\":\"update\",\"messageId\":\"m1\"}",
	    ACCEPTED("\"m1\""));
	cr_expect_eq(
	    relay_site_number(&site, "SELECT seq AS n FROM dm_channels"), 3);
}

Test(relay, only_the_author_edits)
{
	expect_answer(create("m1"), ACCEPTED("\"m1\""));
	expect_answer(with(update("m1", "x", 5), "\"700\"", "\"701\""),
	    REJECTED("m1", "attribution_mismatch"));
	expect_answer(with(update("m1", "x", 5), "luna.test", "nova.test"),
	    REJECTED("m1", "attribution_mismatch"));
	cr_expect_str_eq(content_of("m1"), "hello");
}

Test(relay, another_peer_cannot_touch_a_message)
{
	struct peer other = relay_site_peer(&site, "other.test");

	expect_answer(create("m1"), ACCEPTED("\"m1\""));
	cr_expect_str_eq(
	    relay_site_apply(&site, site.conn, &other, gone("m1"), false),
	    REJECTED("m1", "unknown_message"));
	cr_expect_eq(count("dm_messages"), 1);
}

Test(relay, a_deleted_message_stays_deleted)
{
	expect_answer(arena_printf(site.arena, "%s,%s,%s", create("m1"),
			  update("m1", "x", 5), gone("m1")),
	    ACCEPTED("\"m1\",\"m1\",\"m1\""));
	cr_expect_eq(count("dm_messages"), 0);
	expect_answer(gone("m1"), ACCEPTED("\"m1\""));
	expect_answer(update("m1", "x", 9), ACCEPTED("\"m1\""));
	expect_answer(create("m1"), REJECTED("m1", "duplicate"));
	cr_expect_eq(count("dm_messages"), 0);
	cr_expect_str_eq(relay_site_text(&site,
			     "SELECT string_agg(kind, ' ' ORDER BY seq) AS t "
			     "FROM conversation_events"),
	    "channel_created message_created message_updated "
	    "message_deleted");
}

/* ---- homeward ---- */

static const char *homeward(const char *id)
{
	return with(create(id),
	    "\"userId\":\"1\",\"homeUserId\":\"700\",\"homeInstance\":"
	    "\"https://luna.test\"",
	    arena_printf(site.arena,
		"\"userId\":\"1\",\"homeUserId\":\"%" PRId64
		"\",\"homeInstance\":\"nova.test\"",
		site.alice));
}

Test(relay, homeward_needs_a_declared_account)
{
	expect_answer(homeward("m1"), REJECTED("m1", "attribution_mismatch"));
	test_db_script(site.conninfo,
	    "UPDATE users SET replicated_instances = '[{\"origin\":"
	    "\"https://orbit.test\",\"username\":\"a\"},{\"origin\":"
	    "\"https://luna.test\",\"username\":\"alice@nova.test\"}]' "
	    "WHERE username = 'alice'");
	expect_answer(homeward("m1"), ACCEPTED("\"m1\""));
	cr_expect_eq(
	    relay_site_number(&site, "SELECT user_id AS n FROM dm_messages"),
	    site.alice);
}

Test(relay, the_operator_may_let_any_peer_speak_homeward)
{
	const char *edit =
	    with(with(update("m1", "edited", 5000), "\"700\"",
		     arena_printf(site.arena, "\"%" PRId64 "\"", site.alice)),
		"luna.test", "nova.test");

	test_db_script(site.conninfo,
	    "UPDATE instance_settings SET homeward_scope = 'any_peer'");
	expect_answer(homeward("m1"), ACCEPTED("\"m1\""));
	expect_answer(edit, ACCEPTED("\"m1\""));
	cr_expect_str_eq(content_of("m1"), "edited");
	expect_answer(gone("m1"), ACCEPTED("\"m1\""));
	cr_expect_eq(count("dm_messages"), 0);
	test_db_script(site.conninfo,
	    "UPDATE instance_settings SET homeward_scope = 'declared'");
	expect_answer(homeward("m2"), REJECTED("m2", "attribution_mismatch"));
}

Test(relay, what_came_homeward_is_sent_on_once_and_never_back)
{
	relay_site_peer(&site, "orbit.test");
	test_db_script(site.conninfo,
	    "UPDATE users SET replicated_instances = '[{\"origin\":"
	    "\"https://orbit.test\",\"username\":\"a\"},{\"origin\":"
	    "\"https://luna.test\",\"username\":\"a\"}]' "
	    "WHERE username = 'alice'");
	expect_answer(homeward("m1"), ACCEPTED("\"m1\""));
	expect_answer(homeward("m1"), REJECTED("m1", "duplicate"));
	cr_expect_str_eq(
	    relay_site_text(&site,
		"SELECT string_agg(p.host || ' ' || o.event_type || ' ' || "
		"(o.entity_id = m.id::text)::text, ', ') AS t "
		"FROM federation_outbox o JOIN federation_peers p "
		"ON p.id = o.peer_id, dm_messages m"),
	    "orbit.test create true");
	expect_answer(gone("m1"), ACCEPTED("\"m1\""));
	cr_expect_eq(count("federation_outbox"), 2);
	cr_expect_eq(count("dm_messages"), 0);
}

Test(relay, an_edit_goes_homeward_like_its_message)
{
	const char *edit = with(update("m1", "edited", 5000), "\"700\"",
	    arena_printf(site.arena, "\"%" PRId64 "\"", site.alice));

	relay_site_peer(&site, "orbit.test");
	test_db_script(site.conninfo,
	    "UPDATE users SET replicated_instances = '[{\"origin\":"
	    "\"https://orbit.test\",\"username\":\"a\"},{\"origin\":"
	    "\"https://luna.test\",\"username\":\"a\"}]' "
	    "WHERE username = 'alice'");
	expect_answer(homeward("m1"), ACCEPTED("\"m1\""));
	expect_answer(edit, REJECTED("m1", "attribution_mismatch"));
	expect_answer(with(edit, "luna.test", "nova.test"), ACCEPTED("\"m1\""));
	cr_expect_str_eq(content_of("m1"), "edited");
	cr_expect_str_eq(
	    relay_site_text(&site,
		"SELECT string_agg(event_type, ' ' ORDER BY id) AS t "
		"FROM federation_outbox"),
	    "create update");
	expect_answer(with(with(edit, "luna.test", "nova.test"),
			  arena_printf(site.arena, "%" PRId64, site.alice),
			  arena_printf(site.arena, "%" PRId64, site.bob)),
	    REJECTED("m1", "attribution_mismatch"));
}

/* ---- files ---- */

Test(relay, files_of_the_peer_are_awaited_others_left_out)
{
	const char *event = with(create("m1"), "\"replyToId\"",
	    "\"attachments\":[{\"id\":\"1\",\"filename\":\"a.png\","
	    "\"originalName\":\"pixel.png\",\"mimetype\":\"image/png\","
	    "\"size\":75,\"width\":8,\"height\":8,\"sourceUrl\":"
	    "\"https://luna.test/api/uploads/a.png\"},{\"id\":\"2\","
	    "\"filename\":\"f\",\"originalName\":\"f\",\"mimetype\":\"t/p\","
	    "\"size\":1,\"sourceUrl\":\"https://evil.test/f\"}],"
	    "\"replyToId\"");

	expect_answer(event, ACCEPTED("\"m1\""));
	cr_expect_str_eq(
	    relay_site_text(&site,
		"SELECT string_agg(filename || ' ' || width || ' ' || "
		"coalesce(duration::text, 'none'), ',') AS t "
		"FROM attachments"),
	    "https://luna.test/api/uploads/a.png 8 none");
	cr_expect_str_eq(
	    relay_site_text(&site,
		"SELECT string_agg(peer_origin || ' ' || status, ',') AS t "
		"FROM federation_file_queue"),
	    "https://luna.test pending");
}

/* ---- the batch ---- */

/* 50 events: 17 breaks a rule of the database, 30 and 31 are none. */
static const char *mixed_batch(void)
{
	struct buf events;

	buf_init(&events, site.arena, 1 << 20);
	for (int i = 0; i < 50; i++) {
		buf_text(&events, i ? "," : "");
		if (i == 30)
			buf_text(&events,
			    "{\"eventType\":\"no\",\"messageId\":\"30\"}");
		else if (i == 31)
			buf_text(&events, "[]");
		else
			buf_text(&events,
			    relay_site_create(&site,
				arena_printf(site.arena, "m%d", i),
				i == 17 ? "poison" : "fine"));
	}
	return events.data;
}

Test(relay, one_bad_event_costs_only_itself)
{
	const char *answer;

	test_db_script(site.conninfo,
	    "ALTER TABLE dm_messages ADD CHECK (content <> 'poison')");
	answer =
	    relay_site_apply(&site, site.conn, &site.luna, mixed_batch(), true);
	cr_expect(strstr(answer,
		      "\"rejected\":[{\"messageId\":\"m17\","
		      "\"reason\":\"processing_error\"},"
		      "{\"messageId\":\"30\",\"reason\":"
		      "\"unknown_event_type\"},{\"reason\":"
		      "\"unknown_event_type\"}]"),
	    "%s", answer);
	cr_expect_eq(count("dm_messages"), 47);
}

Test(relay, a_group_wants_its_member)
{
	const char *event = with(create("m1"), "\"dmChannelId\":\"9\"",
	    "\"federatedId\":\"c51b6cfa-15c6-4f7c-ae89-aff88db828e0\"");

	expect_answer(create("m0"), ACCEPTED("\"m0\""));
	test_db_script(site.conninfo,
	    "INSERT INTO dm_channels (owner_id, is_group, federated_id) SELECT "
	    "id, true, 'c51b6cfa-15c6-4f7c-ae89-aff88db828e0' FROM users "
	    "WHERE username = 'alice'");
	expect_answer(event, REJECTED("m1", "unauthorized_source"));
	test_db_script(site.conninfo,
	    "INSERT INTO dm_members (dm_channel_id, user_id) SELECT c.id, u.id "
	    "FROM dm_channels c, users u WHERE c.is_group AND "
	    "u.home_user_id = '700'");
	expect_answer(event, ACCEPTED("\"m1\""));
	cr_expect_eq(
	    relay_site_number(&site,
		"SELECT count(*) AS n FROM dm_messages m JOIN dm_channels c "
		"ON c.id = m.dm_channel_id WHERE c.is_group"),
	    1);
}

Test(relay, a_new_message_opens_what_was_closed)
{
	expect_answer(create("m1"), ACCEPTED("\"m1\""));
	test_db_script(site.conninfo, "UPDATE dm_members SET closed = true");
	expect_answer(create("m2"), ACCEPTED("\"m2\""));
	cr_expect_eq(count("dm_members WHERE closed"), 0);
}
