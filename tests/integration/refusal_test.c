/* Files that other nodes would not take: which, for whom, and who hears. */
#include <criterion/criterion.h>

#include "tests/integration/relay_site.h"
#include "tests/lib/test_db.h"

static struct relay_site site;
static struct peer orbit;
static const char *message;

/*
 * Alice's message with three files, in a group with zed and yan of luna and
 * ora of orbit.
 */
static void begin(void)
{
	test_db_needed();
	relay_site_begin(&site);
	orbit = relay_site_peer(&site, "orbit.test");
	test_db_script(site.conninfo,
	    "INSERT INTO users (username, password_hash, home_instance,"
	    " home_user_id) VALUES"
	    " ('700@luna.test', '!federation-replicated', 'luna.test', '700'),"
	    " ('701@luna.test', '!federation-replicated', 'luna.test', '701'),"
	    " ('5@orbit.test', '!federation-replicated', 'orbit.test', '5'),"
	    " ('6@orbit.test', '!federation-replicated', 'orbit.test', '6');"
	    "INSERT INTO dm_channels (is_group, owner_id, federated_id)"
	    " SELECT true, id, 'g' FROM users WHERE username = 'alice';"
	    "INSERT INTO dm_members (dm_channel_id, user_id) SELECT c.id, u.id"
	    " FROM dm_channels c, users u WHERE u.username = 'alice'"
	    " OR u.home_user_id IN ('700', '701', '5');"
	    "INSERT INTO dm_messages (dm_channel_id, user_id, content)"
	    " SELECT c.id, u.id, 'files' FROM dm_channels c, users u"
	    " WHERE u.username = 'alice';"
	    "INSERT INTO attachments (dm_message_id, filename, original_name,"
	    " mimetype, size) SELECT m.id, f, f, 'text/plain', 9"
	    " FROM dm_messages m, unnest(ARRAY['a.bin', 'b.bin', 'c.bin'])"
	    " f;");
	message =
	    relay_site_text(&site, "SELECT id::text AS t FROM dm_messages");
}

static void end(void)
{
	relay_site_end(&site);
}

TestSuite(refusal, .init = begin, .fini = end, .timeout = 300);

static const char *accepted(void)
{
	return arena_printf(site.arena,
	    "{\"accepted\":[\"%s\"],\"rejected\":[],\"maxUploadSize\":"
	    "7340032}",
	    message);
}

static const char *rejected(const char *why)
{
	return arena_printf(site.arena,
	    "{\"accepted\":[],\"rejected\":[{\"messageId\":\"%s\","
	    "\"reason\":\"%s\"}],\"maxUploadSize\":7340032}",
	    message, why);
}

static const char *refused(
    const char *file, const char *people, const char *limit)
{
	return arena_printf(site.arena,
	    "{\"eventType\":\"file_rejected\",\"contextType\":\"dm\","
	    "\"messageId\":\"%s\",\"encryptionVersion\":0,\"timestamp\":1,"
	    "\"dmChannelId\":\"9\",\"attachmentId\":\"1\",%s"
	    "\"rejectionReason\":\"size_limit_exceeded\","
	    "\"rejectionLimit\":%s,\"affectedUserIds\":[%s]}",
	    message,
	    file ? arena_printf(site.arena, "\"sourceFilename\":\"%s\",", file)
		 : "",
	    limit, people);
}

static const char *from_luna(const char *event)
{
	return relay_site_send(&site, event);
}

static const char *from_orbit(const char *event)
{
	return relay_site_apply(&site, site.conn, &orbit, event, false);
}

/* "file status person/limit person/limit" of those that are marked. */
static const char *marks(void)
{
	return relay_site_text(&site,
	    "SELECT string_agg(a.filename || ' ' || a.federation_status || ' '"
	    " || (SELECT string_agg((e ->> 'username') || '/' ||"
	    " (e ->> 'limit'), ' ' ORDER BY n) FROM"
	    " json_array_elements(a.federation_meta::json) WITH ORDINALITY"
	    " AS x(e, n) JOIN users u ON u.id = (e ->> 'userId')::bigint"
	    " AND u.username = e ->> 'username'), ', ' ORDER BY a.id) AS t"
	    " FROM attachments a WHERE federation_status IS NOT NULL");
}

static int64_t count(const char *what)
{
	return relay_site_number(&site,
	    arena_printf(site.arena, "SELECT count(*) AS n FROM %s", what));
}

Test(refusal, the_middle_of_three_files_gathers_what_two_nodes_say)
{
	cr_expect_str_eq(
	    from_luna(refused("b.bin", "\"700\",\"701\"", "1048576")),
	    accepted());
	cr_expect_str_eq(
	    from_orbit(refused("b.bin", "\"5\"", "5")), accepted());
	cr_expect_str_eq(marks(),
	    "b.bin remote_partial 700@luna.test/1048576 "
	    "701@luna.test/1048576 5@orbit.test/5");
	cr_expect_eq(
	    count("conversation_events WHERE kind = 'message_updated'"), 2);
	cr_expect_eq(
	    relay_site_number(&site,
		"SELECT count(*) AS n FROM user_events e JOIN attachments a"
		" ON a.id::text = e.entity_id AND a.filename = 'b.bin'"
		" JOIN users u ON u.id = e.user_id AND u.username = 'alice'"
		" WHERE e.kind = 'federation_file_rejected'"),
	    2, "one notice a node");
}

Test(refusal, said_again_it_is_no_news)
{
	for (int i = 0; i < 3; i++)
		cr_expect_str_eq(
		    from_luna(refused("b.bin", "\"700\"", "10")), accepted());
	cr_expect_eq(
	    count("conversation_events WHERE kind = 'message_updated'"), 1);
	cr_expect_eq(count("user_events"), 1);
	/* Another limit is, and one person stays one line. */
	from_luna(refused("b.bin", "\"700\",\"700\"", "20"));
	cr_expect_str_eq(marks(), "b.bin remote_partial 700@luna.test/20");
	cr_expect_eq(count("user_events"), 2);
}

Test(refusal, without_a_name_only_an_only_file_is_meant)
{
	cr_expect_str_eq(from_luna(refused(NULL, "\"700\"", "1")),
	    rejected("attachment_not_found"));
	cr_expect_str_eq(from_luna(refused("other.bin", "\"700\"", "1")),
	    rejected("attachment_not_found"));
	cr_expect_null(marks());
	test_db_script(
	    site.conninfo, "DELETE FROM attachments WHERE filename <> 'c.bin'");
	cr_expect_str_eq(from_luna(refused(NULL, "\"700\"", "1")), accepted());
	cr_expect_str_eq(marks(), "c.bin remote_partial 700@luna.test/1");
}

Test(refusal, only_a_node_of_the_conversation_says_so_for_its_own)
{
	struct peer moon = relay_site_peer(&site, "moon.test");

	cr_expect_str_eq(from_orbit(refused("b.bin", "\"700\"", "1")),
	    rejected("unauthorized_source"), "another's person");
	cr_expect_str_eq(from_orbit(refused("b.bin", "\"6\"", "1")),
	    rejected("unauthorized_source"), "not in there");
	cr_expect_str_eq(relay_site_apply(&site, site.conn, &moon,
			     refused("b.bin", "\"700\",\"5\"", "1"), false),
	    rejected("unauthorized_source"));
	/* Whoever is named besides is left out. */
	cr_expect_str_eq(
	    from_orbit(refused("b.bin", "\"6\",\"5\",\"700\",7,\"\"", "1")),
	    accepted());
	cr_expect_str_eq(from_luna(refused("c.bin", "", "1")), accepted());
	cr_expect_str_eq(marks(), "b.bin remote_partial 5@orbit.test/1");
	cr_expect_eq(count("users"), 6, "nobody was made");
}

Test(refusal, unusable_events_are_refused_as_recorded)
{
	static const char *const missing[] = { "", ",\"attachmentId\":\"1\"",
		",\"rejectionReason\":\"size_limit_exceeded\"",
		",\"attachmentId\":1,\"rejectionReason\":\"x\"" };

	for (size_t i = 0; i < COUNT(missing); i++)
		cr_expect_str_eq(
		    from_luna(arena_printf(site.arena,
			"{\"eventType\":\"file_rejected\",\"messageId\":"
			"\"%s\"%s}",
			message, missing[i])),
		    rejected("missing_file_rejected_payload"), "%zu", i);
	message = "12";
	cr_expect_str_eq(from_luna(refused("b.bin", "\"700\"", "1")),
	    rejected("message_not_found"));
	message = "no-id";
	cr_expect_str_eq(from_luna(refused("b.bin", "\"700\"", "1")),
	    rejected("message_not_found"));
	/* A copy of another node's message is not ours to mark. */
	message =
	    relay_site_text(&site, "SELECT id::text AS t FROM dm_messages");
	test_db_script(site.conninfo,
	    "UPDATE dm_messages SET source_instance = 'https://luna.test',"
	    " source_message_id = 'm', user_id = (SELECT id FROM users"
	    " WHERE home_user_id = '700')");
	cr_expect_str_eq(from_luna(refused("b.bin", "\"700\"", "1")),
	    rejected("message_not_found"));
	cr_expect_null(marks());
}

Test(refusal, what_we_have_not_got_ourselves_stays_so)
{
	test_db_script(site.conninfo,
	    "UPDATE attachments SET federation_status = 'remote',"
	    " federation_meta = '{\"sourceUsername\":\"zed\"}'");
	cr_expect_str_eq(
	    from_luna(refused("b.bin", "\"700\"", "1")), accepted());
	cr_expect_eq(
	    count("attachments WHERE federation_status = 'remote'"), 3);
	/* What is no list of ours is replaced. */
	test_db_script(site.conninfo,
	    "UPDATE attachments SET federation_status = 'remote_partial',"
	    " federation_meta = 'nonsense'");
	from_luna(refused("b.bin", "\"700\"", "1"));
	cr_expect_eq(count("attachments WHERE federation_meta LIKE '[%'"), 1);
}

Test(refusal, the_list_is_bounded)
{
	test_db_script(site.conninfo,
	    "INSERT INTO users (username, password_hash, home_instance,"
	    " home_user_id) SELECT n || '@orbit.test',"
	    " '!federation-replicated', 'orbit.test', n"
	    " FROM generate_series(1000, 1099) n;"
	    "INSERT INTO dm_members (dm_channel_id, user_id) SELECT c.id, u.id"
	    " FROM dm_channels c, users u WHERE u.home_user_id::bigint >= 1000"
	    ";");
	for (int from = 1000; from < 1100; from += 50) {
		const char *people = "";

		for (int i = from; i < from + 50; i++)
			people = arena_printf(site.arena, "%s%s\"%d\"", people,
			    *people ? "," : "", i);
		cr_expect_str_eq(
		    from_orbit(refused("b.bin", people, "1")), accepted());
	}
	cr_expect_eq(relay_site_number(&site,
			 "SELECT json_array_length(federation_meta::json) AS n"
			 " FROM attachments WHERE filename = 'b.bin'"),
	    64);
}
