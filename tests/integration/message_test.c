/* Writing, editing, deleting and reading messages, and who may. */
#include <criterion/criterion.h>

#include "common/chat/message.h"
#include "tests/integration/relay_site.h"
#include "tests/lib/test_db.h"

static struct relay_site site;
static int64_t channel;

static void begin(void)
{
	test_db_needed();
	relay_site_begin(&site);
	test_db_script(site.conninfo,
	    "INSERT INTO dm_channels (pair_low, pair_high) SELECT min(id), "
	    "max(id) FROM users; INSERT INTO dm_members (dm_channel_id, "
	    "user_id) SELECT c.id, u.id FROM dm_channels c, users u");
	channel = relay_site_number(&site, "SELECT id AS n FROM dm_channels");
}

static void end(void)
{
	relay_site_end(&site);
}

TestSuite(message, .init = begin, .fini = end, .timeout = 300);

/* Creates; the id, or 0 with err. */
static int64_t create(const struct draft *draft, struct err *err)
{
	AUTO(tx_end) struct tx *tx = tx_new(site.conn, site.arena);
	struct message message;

	return message_create(tx, draft, &message, err) && tx_commit(tx, err)
	    ? message.id
	    : 0;
}

static int64_t say(const char *content)
{
	const struct draft draft = {
		.channel = channel, .author = site.alice, .content = content
	};
	struct err err = { 0 };
	int64_t id = create(&draft, &err);

	cr_assert(id, "%s", err.text);
	return id;
}

static int64_t count(const char *what)
{
	return relay_site_number(&site,
	    arena_printf(site.arena, "SELECT count(*) AS n FROM %s", what));
}

static const struct json *read_page(int64_t before, int64_t limit)
{
	AUTO(tx_end) struct tx *tx = tx_new(site.conn, site.arena);
	const struct json *page = NULL;
	const char *text;
	struct err err = { 0 };

	cr_assert(message_page_json(tx, channel, before, limit, &text, &err) &&
		json_parse(site.arena, (struct bytes){ text, strlen(text) },
		    &page, &err),
	    "%s", err.text);
	return page;
}

static const char *text_at(
    const struct json *page, size_t place, const char *name)
{
	return json_string(json_member(json_element(page, place), name));
}

Test(message, content_is_trimmed_and_counted_in_utf16_units)
{
	char *longest = arena_alloc(site.arena, 2 * 4001 + 8);
	struct draft draft = { .channel = channel, .author = site.alice };
	struct err err = { 0 };

	say(" \xc2\xa0hi\n");
	cr_expect_str_eq(
	    relay_site_text(&site, "SELECT content AS t FROM dm_messages"),
	    "hi");
	for (int i = 0; i < 4000; i++)
		memcpy(longest + 2 * i, "\xc3\xa9", 2);
	say(longest);
	memcpy(longest + 2 * 4000, "x", 2);
	draft.content = longest;
	cr_expect_eq(create(&draft, &err), 0);
	cr_expect_eq(err.code, ERR_INVALID);
	draft.content = " \n ";
	cr_expect_eq(create(&draft, &err), 0);
	cr_expect_eq(err.code, ERR_INVALID);
	cr_expect_eq(count("dm_messages"), 2);
}

Test(message, a_foreign_reply_or_file_is_refused)
{
	struct draft draft = { .channel = channel,
		.author = site.alice,
		.content = "x",
		.reply_to = 12 };
	struct err err = { 0 };
	int64_t file;

	cr_expect_eq(create(&draft, &err), 0);
	cr_expect_eq(err.code, ERR_INVALID);
	test_db_script(site.conninfo,
	    arena_printf(site.arena,
		"INSERT INTO attachments (uploader_id, filename, "
		"original_name, mimetype, size) VALUES (%" PRId64
		", 'f', 'f', 't', 1)",
		site.bob));
	file = relay_site_number(&site, "SELECT id AS n FROM attachments");
	draft = (struct draft){ .channel = channel,
		.author = site.alice,
		.files = &file,
		.file_count = 1 };
	cr_expect_eq(create(&draft, &err), 0);
	cr_expect_eq(err.code, ERR_INVALID);
	cr_expect_eq(count("dm_messages"), 0);
	draft.author = site.bob;
	cr_expect_neq(create(&draft, &err), 0, "%s", err.text);
	cr_expect_eq(create(&draft, &err), 0, "used only once");
}

Test(message, every_edit_is_newer_and_only_the_authors)
{
	int64_t id = say("one");
	AUTO(tx_end) struct tx *tx = tx_new(site.conn, site.arena);
	struct message message;
	struct err err = { 0 };
	int64_t first;

	cr_assert(message_edit(tx, id, site.alice, "two", &message, &err));
	first = message.edited_at;
	cr_assert(message_edit(tx, id, site.alice, "three", &message, &err));
	cr_expect_gt(message.edited_at, first);
	cr_expect_not(message_edit(tx, id, site.bob, "x", &message, &err));
	cr_expect_eq(err.code, ERR_FORBIDDEN);
	cr_expect_not(message_edit(tx, 12, site.bob, "x", &message, &err));
	cr_expect_eq(err.code, ERR_ABSENT);
	cr_expect_not(message_edit(tx, id, site.alice, " ", &message, &err));
	cr_expect_eq(err.code, ERR_INVALID);
}

Test(message, a_delete_takes_all_or_nothing)
{
	int64_t id = say("one");
	struct message message;
	struct err err = { 0 };

	test_db_script(site.conninfo,
	    arena_printf(site.arena,
		"INSERT INTO attachments (dm_message_id, filename, "
		"original_name, mimetype, size) SELECT %" PRId64
		", 'f', 'f', 't', 1 FROM generate_series(1, 3);"
		"INSERT INTO dm_reactions (dm_message_id, user_id, emoji) "
		"SELECT %" PRId64 ", id, '+' FROM users",
		id, id));
	{
		AUTO(tx_end) struct tx *tx = tx_new(site.conn, site.arena);

		cr_assert(message_delete(tx, id, site.alice, &message, &err));
	}
	cr_expect_eq(count("dm_messages"), 1);
	cr_expect_eq(count("attachments"), 3);
	cr_expect_eq(count("conversation_events"), 1, "rolled back");
	{
		AUTO(tx_end) struct tx *tx = tx_new(site.conn, site.arena);

		cr_assert(message_delete(tx, id, site.alice, &message, &err) &&
		    tx_commit(tx, &err));
	}
	cr_expect_eq(count("dm_messages"), 0);
	cr_expect_eq(count("attachments"), 0);
	cr_expect_eq(count("dm_reactions"), 0);
	cr_expect_eq(count("conversation_events"), 2);
}

Test(message, pages_skip_nothing_that_came_late)
{
	const struct json *page;
	int64_t second;

	say("10:05");
	second = say("10:10");
	/* A relayed message: a higher id, an earlier time. */
	say("10:00");
	test_db_script(site.conninfo,
	    "UPDATE dm_messages SET created_at = "
	    "('2026-01-01 ' || content || 'Z')::timestamptz");
	page = read_page(0, 2);
	cr_assert_eq(json_count(page), 2);
	cr_expect_str_eq(text_at(page, 0, "content"), "10:05");
	cr_expect_str_eq(text_at(page, 1, "content"), "10:10");
	page = read_page(second, 50);
	cr_assert_eq(json_count(page), 2);
	cr_expect_str_eq(text_at(page, 0, "content"), "10:00");
	cr_expect_eq(json_count(read_page(12, 50)), 0, "unknown before");
}

Test(message, a_page_goes_on_where_a_message_was_deleted)
{
	const struct json *page;
	struct message message;
	struct err err = { 0 };
	int64_t oldest_shown;

	say("one");
	oldest_shown = say("two");
	say("three");
	{
		AUTO(tx_end) struct tx *tx = tx_new(site.conn, site.arena);

		cr_assert(message_delete(
			      tx, oldest_shown, site.alice, &message, &err) &&
		    tx_commit(tx, &err));
	}
	page = read_page(oldest_shown, 50);
	cr_assert_eq(json_count(page), 1);
	cr_expect_str_eq(text_at(page, 0, "content"), "one");
}

Test(message, a_page_shows_all_that_hangs_on_a_message)
{
	int64_t first = say("one");
	struct draft reply = { .channel = channel,
		.author = site.bob,
		.content = "two",
		.reply_to = first };
	struct err err = { 0 };
	const struct json *message;
	const struct json *replied;

	cr_assert(create(&reply, &err), "%s", err.text);
	test_db_script(site.conninfo,
	    arena_printf(site.arena,
		"INSERT INTO dm_reactions (dm_message_id, user_id, emoji) "
		"SELECT max(id), %" PRId64 ", '+' FROM dm_messages;"
		"INSERT INTO attachments (dm_message_id, filename, "
		"original_name, mimetype, size, width) SELECT max(id), 'f', "
		"'f', 't', 1, 8 FROM dm_messages",
		site.alice));
	message = json_element(read_page(0, 50), 1);
	cr_expect_str_eq(
	    json_string(json_member(json_member(message, "user"), "username")),
	    "bob");
	cr_expect_eq(json_count(json_member(message, "reactions")), 1);
	cr_expect_eq(json_count(json_member(message, "attachments")), 1);
	cr_expect_eq(json_type(json_member(message, "embeds")), JSON_ARRAY);
	cr_expect_eq(
	    json_type(json_member(message, "sourceInstance")), JSON_NULL);
	replied = json_member(message, "replyTo");
	cr_expect_str_eq(json_string(json_member(replied, "content")), "one");
	cr_expect_str_eq(
	    json_string(json_member(json_member(replied, "user"), "username")),
	    "alice");
	cr_expect_eq(json_count(json_member(replied, "attachments")), 0);
}
