/* What we owe for a message of ours: to whom, and in which words. */
#include <criterion/criterion.h>

#include "common/chat/user.h"
#include "common/federation/outbox_message.h"
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

TestSuite(outbox, .init = begin, .fini = end, .timeout = 300);

static int64_t person(const char *columns, const char *values)
{
	test_db_script(site.conninfo,
	    arena_printf(site.arena,
		"INSERT INTO users (password_hash, %s) "
		"VALUES ('!federation-replicated', %s)",
		columns, values));
	return relay_site_number(&site, "SELECT max(id) AS n FROM users");
}

static int64_t zed(void)
{
	return person("username, display_name, home_instance, home_user_id",
	    "'700@luna.test', 'Zed', 'luna.test', '700'");
}

/* The pair's conversation, made on the first call. */
static int64_t open_pair(int64_t opener, int64_t other)
{
	AUTO(tx_end) struct tx *tx = tx_new(site.conn, site.arena);
	struct user a;
	struct user b;
	struct channel channel;
	struct err err = { 0 };
	bool created;

	cr_assert(user_by_id(tx, opener, &a, &err) &&
		user_by_id(tx, other, &b, &err) &&
		channel_open_pair(tx, &a, &b, &channel, &created, &err) &&
		tx_commit(tx, &err),
	    "%s", err.text);
	return channel.id;
}

static struct message say(
    int64_t channel, int64_t author, const int64_t *files, size_t count)
{
	AUTO(tx_end) struct tx *tx = tx_new(site.conn, site.arena);
	const struct draft draft = {
		.channel = channel,
		.author = author,
		.content = " hi \n",
		.files = files,
		.file_count = count,
	};
	struct message message;
	struct err err = { 0 };

	cr_assert(message_create(tx, &draft, &message, &err) &&
		outbox_add_message(
		    tx, &site.node, "create", &message, NULL, &err) &&
		tx_commit(tx, &err),
	    "%s", err.text);
	return message;
}

static const char *targets(void)
{
	return relay_site_text(&site,
	    "SELECT coalesce(string_agg(p.host || ' ' || o.event_type, ', ' "
	    "ORDER BY p.host, o.id), 'nobody') AS t FROM federation_outbox o "
	    "JOIN federation_peers p ON p.id = o.peer_id");
}

Test(outbox, only_the_nodes_of_the_participants_are_told)
{
	relay_site_peer(&site, "orbit.test");
	relay_site_peer(&site, "third.test");
	say(open_pair(site.alice, zed()), site.alice, NULL, 0);
	cr_expect_str_eq(targets(), "luna.test create");
}

Test(outbox, the_recorded_bytes)
{
	int64_t other = zed();
	int64_t channel = open_pair(site.alice, other);
	struct message message = say(channel, site.alice, NULL, 0);

	cr_expect_str_eq(relay_site_text(&site,
			     "SELECT payload AS t FROM federation_outbox"),
	    arena_printf(site.arena,
		"\"dmChannelId\":\"%" PRId64
		"\",\"participants\":[{\"homeUserId\":\"%" PRId64
		"\",\"homeInstance\":\"https://nova.test\",\"profile\":{"
		"\"username\":\"alice\",\"displayName\":\"Alice\","
		"\"avatar\":null,\"avatarColor\":null}},{\"homeUserId\":"
		"\"700\",\"homeInstance\":\"luna.test\",\"profile\":{"
		"\"username\":\"700@luna.test\",\"displayName\":\"Zed\","
		"\"avatar\":null,\"avatarColor\":null}}],\"message\":{"
		"\"userId\":\"%" PRId64 "\",\"homeUserId\":\"%" PRId64
		"\",\"homeInstance\":\"https://nova.test\",\"content\":\"hi\","
		"\"replyToId\":null,\"editedAt\":null,\"createdAt\":%" PRId64
		"}",
		channel, site.alice, site.alice, site.alice,
		message.created_at));
}

Test(outbox, a_delete_names_only_its_channel)
{
	int64_t channel = open_pair(site.alice, zed());
	struct message message = say(channel, site.alice, NULL, 0);
	AUTO(tx_end) struct tx *tx = tx_new(site.conn, site.arena);
	struct err err = { 0 };

	cr_assert(message_delete(tx, message.id, site.alice, &message, &err) &&
		outbox_add_message(
		    tx, &site.node, "delete", &message, NULL, &err) &&
		tx_commit(tx, &err),
	    "%s", err.text);
	cr_expect_str_eq(targets(), "luna.test create, luna.test delete");
	cr_expect_str_eq(relay_site_text(&site,
			     "SELECT payload AS t FROM federation_outbox "
			     "WHERE event_type = 'delete'"),
	    arena_printf(
		site.arena, "\"dmChannelId\":\"%" PRId64 "\"", channel));
}

Test(outbox, files_travel_with_what_is_known_of_them)
{
	int64_t channel = open_pair(site.alice, zed());
	int64_t file;

	test_db_script(site.conninfo,
	    arena_printf(site.arena,
		"INSERT INTO attachments (uploader_id, filename, "
		"original_name, mimetype, size, width, height) VALUES "
		"(%" PRId64 ", 'f.png', 'pixel.png', 'image/png', 75, 8, 9)",
		site.alice));
	file = relay_site_number(&site, "SELECT id AS n FROM attachments");
	say(channel, site.alice, &file, 1);
	cr_expect_str_eq(
	    relay_site_text(&site,
		"SELECT substring(payload FROM ',\"attachments\".*') AS t "
		"FROM federation_outbox"),
	    arena_printf(site.arena,
		",\"attachments\":[{\"id\":\"%" PRId64
		"\",\"filename\":\"f.png\",\"originalName\":\"pixel.png\","
		"\"mimetype\":\"image/png\",\"size\":75,\"width\":8,"
		"\"height\":9,\"sourceUrl\":"
		"\"https://nova.test/api/uploads/f.png\"}]}",
		file));
}

Test(outbox, declared_accounts_are_told_too)
{
	relay_site_peer(&site, "orbit.test");
	test_db_script(site.conninfo,
	    "UPDATE users SET replicated_instances = '[{\"domain\":"
	    "\"orbit.test\",\"username\":\"a\"},{\"origin\":"
	    "\"https://nova.test\",\"username\":\"me\"}]' "
	    "WHERE username = 'alice'");
	say(open_pair(site.alice, zed()), site.alice, NULL, 0);
	cr_expect_str_eq(targets(), "luna.test create, orbit.test create");
}

Test(outbox, between_our_own_people_nobody_is_told)
{
	say(open_pair(site.alice, site.bob), site.alice, NULL, 0);
	cr_expect_str_eq(targets(), "nobody");
	test_db_script(site.conninfo,
	    "UPDATE instance_settings SET dm_relay_scope = 'all_peers'");
	say(open_pair(site.alice, site.bob), site.alice, NULL, 0);
	cr_expect_str_eq(targets(), "luna.test create");
}

Test(outbox, an_account_from_elsewhere_tells_its_home_only)
{
	int64_t other = zed();

	relay_site_peer(&site, "orbit.test");
	test_db_script(site.conninfo,
	    "UPDATE users SET replicated_instances = '[{\"domain\":"
	    "\"orbit.test\",\"username\":\"a\"}]' WHERE username = 'alice'");
	say(open_pair(site.alice, other), other, NULL, 0);
	cr_expect_str_eq(targets(), "luna.test create");
}

Test(outbox, revoked_peers_and_a_closed_relay_collect_nothing)
{
	int64_t channel = open_pair(site.alice, zed());

	test_db_script(
	    site.conninfo, "UPDATE federation_peers SET status = 'revoked'");
	say(channel, site.alice, NULL, 0);
	test_db_script(site.conninfo,
	    "UPDATE federation_peers SET status = 'unreachable';"
	    "UPDATE instance_settings SET federation_relay_enabled = false");
	say(channel, site.alice, NULL, 0);
	cr_expect_str_eq(targets(), "nobody");
	test_db_script(site.conninfo,
	    "UPDATE instance_settings SET federation_relay_enabled = true");
	say(channel, site.alice, NULL, 0);
	cr_expect_str_eq(targets(), "luna.test create");
}

Test(outbox, entries_live_as_long_as_the_setting_says)
{
	test_db_script(site.conninfo,
	    "UPDATE instance_settings SET federation_relay_ttl_days = 3");
	say(open_pair(site.alice, zed()), site.alice, NULL, 0);
	cr_expect_eq(
	    relay_site_number(&site,
		"SELECT (extract(epoch FROM expires_at - created_at) / 86400)"
		"::bigint AS n FROM federation_outbox"),
	    3);
}

/* ---- the log of sync ---- */

static const char *logged(void)
{
	return relay_site_text(&site,
	    "SELECT coalesce(string_agg(concat_ws(' ', mutation_type, "
	    "array_to_string(hosts, '+'), except_host, payload, CASE WHEN "
	    "homeward THEN 'homeward' END), ', ' ORDER BY id), 'nothing') AS t "
	    "FROM federation_mutation_log");
}

Test(outbox, every_change_is_in_the_log_also_when_nobody_is_told)
{
	struct message message =
	    say(open_pair(site.alice, site.bob), site.alice, NULL, 0);

	cr_expect_str_eq(targets(), "nobody");
	cr_expect_str_eq(logged(), "create ");
	cr_expect_eq(relay_site_number(&site,
			 "SELECT count(*) AS n FROM federation_mutation_log l "
			 "JOIN dm_messages m ON m.id::text = l.entity_id AND "
			 "m.dm_channel_id::text = l.context_id"),
	    1, "message %" PRId64, message.id);
}

Test(outbox, the_log_knows_who_took_part_before_there_is_a_peer)
{
	int64_t kim = person("username, home_instance, home_user_id",
	    "'9@nowhere.test', 'nowhere.test', '9'");

	say(open_pair(site.alice, kim), site.alice, NULL, 0);
	cr_expect_str_eq(targets(), "nobody");
	cr_expect_str_eq(logged(), "create nowhere.test");
}

Test(outbox, a_disabled_relay_queues_nothing_and_logs_it)
{
	test_db_script(site.conninfo,
	    "UPDATE instance_settings SET federation_relay_enabled = false");
	say(open_pair(site.alice, zed()), site.alice, NULL, 0);
	cr_expect_str_eq(targets(), "nobody");
	cr_expect_str_eq(logged(), "create luna.test");
}
