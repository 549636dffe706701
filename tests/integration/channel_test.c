/* Conversations: exactly one a pair, and a gapless line of changes. */
#include <criterion/criterion.h>
#include <pthread.h>

#include "common/chat/channel.h"
#include "common/chat/message.h"
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

TestSuite(channel, .init = begin, .fini = end, .timeout = 60);

static bool open_pair(struct relay_site *own, struct conn *conn, int64_t opener,
    int64_t other, struct channel *channel, bool *created)
{
	AUTO(tx_end) struct tx *tx = tx_new(conn, own->arena);
	struct user a;
	struct user b;
	struct err err = { 0 };

	return user_by_id(tx, opener, &a, &err) &&
	    user_by_id(tx, other, &b, &err) &&
	    channel_open_pair(tx, &a, &b, channel, created, &err) &&
	    tx_commit(tx, &err);
}

static struct channel open_both(bool *created)
{
	struct channel channel;

	cr_assert(open_pair(
	    &site, site.conn, site.alice, site.bob, &channel, created));
	return channel;
}

static const char *list_of(int64_t user)
{
	AUTO(tx_end) struct tx *tx = tx_new(site.conn, site.arena);
	const char *json;
	struct err err = { 0 };

	cr_assert(channel_list_json(tx, user, &json, &err), "%s", err.text);
	return json;
}

static void say(int64_t channel, const char *content)
{
	AUTO(tx_end) struct tx *tx = tx_new(site.conn, site.arena);
	const struct draft draft = {
		.channel = channel, .author = site.bob, .content = content
	};
	struct message message;
	struct err err = { 0 };

	cr_assert(
	    message_create(tx, &draft, &message, &err) && tx_commit(tx, &err),
	    "%s", err.text);
}

Test(channel, the_federated_id_is_the_recorded_hash)
{
	char id[FEDERATED_ID_SIZE];

	federated_id_of_pair("385898133746929664", "385898137274384384", id);
	cr_expect_str_eq(id, "ba17ddf8c114ac1bbab25db22452cf58");
	federated_id_of_pair("385898137274384384", "385898133746929664", id);
	cr_expect_str_eq(id, "ba17ddf8c114ac1bbab25db22452cf58");
}

Test(channel, a_pair_is_opened_once_whoever_asks)
{
	struct channel again;
	bool created;
	struct channel first = open_both(&created);

	cr_expect(created);
	cr_expect_null(first.federated_id, "a local pair has none");
	cr_assert(open_pair(
	    &site, site.conn, site.bob, site.alice, &again, &created));
	cr_expect_not(created);
	cr_expect_eq(first.id, again.id);
	cr_expect_eq(
	    relay_site_number(&site, "SELECT count(*) AS n FROM user_events"),
	    2, "both are told to join");
}

Test(channel, what_is_closed_comes_back_with_a_message_or_by_opening)
{
	bool created;
	struct channel channel = open_both(&created);
	const char *close = "UPDATE dm_members SET closed = true";

	cr_expect(strstr(list_of(site.alice), "\"lastMessage\":null"));
	test_db_script(site.conninfo, close);
	cr_expect_str_eq(list_of(site.alice), "[]");
	open_both(&created);
	cr_expect_str_neq(list_of(site.alice), "[]");
	cr_expect_str_eq(list_of(site.bob), "[]", "only for who opened");
	test_db_script(site.conninfo, close);
	say(channel.id, "hi");
	cr_expect(strstr(list_of(site.alice), "\"content\":\"hi\""));
	cr_expect_str_neq(list_of(site.bob), "[]");
}

Test(channel, a_stranger_and_no_channel_look_alike)
{
	AUTO(tx_end) struct tx *tx = NULL;
	struct err stranger = { 0 };
	struct err nothing = { 0 };
	struct channel channel;
	bool created;
	int64_t id = open_both(&created).id;

	tx = tx_new(site.conn, site.arena);
	cr_expect_not(channel_check_member(tx, id, 12, &channel, &stranger));
	cr_expect_not(
	    channel_check_member(tx, 12, site.bob, &channel, &nothing));
	cr_expect_eq(stranger.code, ERR_FORBIDDEN);
	cr_expect_str_eq(stranger.text, nothing.text);
	cr_expect(channel_check_member(tx, id, site.bob, &channel, &nothing));
}

Test(channel, events_are_read_in_pages_and_old_ones_are_gone)
{
	AUTO(tx_end) struct tx *tx = NULL;
	struct event_page page;
	struct err err = { 0 };
	bool created;
	int64_t id = open_both(&created).id;

	for (int i = 0; i < 4; i++)
		say(id, "x");
	tx = tx_new(site.conn, site.arena);
	cr_assert(channel_events_since(tx, id, 0, 3, &page, &err));
	cr_expect_eq(page.events.count, 3);
	cr_expect(page.has_more);
	cr_expect_eq(page.seq, 5);
	cr_assert(channel_events_since(tx, id, 3, 3, &page, &err));
	cr_expect_eq(page.events.count, 2);
	cr_expect_not(page.has_more);
	cr_expect_not(page.gone);
	test_db_script(
	    site.conninfo, "UPDATE dm_channels SET events_kept_from = 3");
	cr_assert(channel_events_since(tx, id, 1, 3, &page, &err));
	cr_expect(page.gone);
	cr_assert(channel_events_since(tx, id, 2, 3, &page, &err));
	cr_expect_not(page.gone);
}

Test(channel, nobody_opens_a_conversation_with_the_deleted)
{
	AUTO(tx_end) struct tx *tx = tx_new(site.conn, site.arena);
	struct user alice = { .id = site.alice };
	struct user gone = { .id = site.bob, .is_deleted = true };
	struct channel channel;
	struct err err = { 0 };
	bool created;

	cr_expect_not(
	    channel_open_pair(tx, &alice, &gone, &channel, &created, &err));
	cr_expect_eq(err.code, ERR_ABSENT);
}

/* ---- at the same moment ---- */

enum { THREADS = 8, SAID = 20 };

static void *talk(void *arg)
{
	struct relay_site own = site;
	struct conn *conn = test_db_conn(site.conninfo);
	struct channel channel;
	bool created;
	bool *good = arg;

	own.arena = arena_new();
	*good = open_pair(&own, conn, site.alice, site.bob, &channel, &created);
	for (int i = 0; *good && i < SAID; i++) {
		AUTO(tx_end) struct tx *tx = tx_new(conn, own.arena);
		const struct draft draft = { .channel = channel.id,
			.author = site.bob,
			.content = "x" };
		struct message message;
		struct err err = { 0 };

		*good = message_create(tx, &draft, &message, &err) &&
		    tx_commit(tx, &err);
	}
	conn_free(&conn);
	arena_free(&own.arena);
	return NULL;
}

Test(channel, writers_at_once_leave_one_channel_and_no_gap)
{
	static pthread_t threads[THREADS];
	static bool good[THREADS];

	for (int i = 0; i < THREADS; i++)
		cr_assert_eq(
		    pthread_create(&threads[i], NULL, talk, &good[i]), 0);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		cr_expect(good[i]);
	}
	cr_expect_eq(
	    relay_site_number(&site, "SELECT count(*) AS n FROM dm_channels"),
	    1);
	cr_expect_eq(
	    relay_site_number(&site, "SELECT seq AS n FROM dm_channels"),
	    THREADS * SAID + 1);
	cr_expect_eq(relay_site_number(&site,
			 "SELECT count(*) AS n FROM conversation_events"),
	    THREADS * SAID + 1);
}

/* ---- what foreign keys would do ---- */

static int64_t rows_of(const char *table, const char *column, int64_t id)
{
	return test_db_number(site.conninfo,
	    arena_printf(site.arena,
		"SELECT count(*) AS n FROM %s WHERE %s = %" PRId64, table,
		column, id));
}

Test(channel, takes_its_messages_and_events_along)
{
	bool created;
	struct channel channel = open_both(&created);

	say(channel.id, "one");
	say(channel.id, "two");
	cr_assert_eq(rows_of("dm_messages", "dm_channel_id", channel.id), 2);
	test_db_script(site.conninfo,
	    arena_printf(site.arena,
		"DELETE FROM dm_channels WHERE id = %" PRId64, channel.id));
	cr_expect_eq(rows_of("dm_messages", "dm_channel_id", channel.id), 0);
	cr_expect_eq(
	    rows_of("conversation_events", "conversation_id", channel.id), 0);
}

Test(channel, strangers_cannot_leave_loose_ends)
{
	bool created;
	struct channel channel = open_both(&created);
	const char *scripts[] = {
		"INSERT INTO dm_messages (dm_channel_id, user_id)"
		" SELECT 1, min(id) FROM users",
		"INSERT INTO dm_messages (dm_channel_id, user_id)"
		" SELECT min(id), 1 FROM dm_channels",
		"INSERT INTO conversation_events VALUES (1, 1, 'k')",
		"UPDATE dm_messages SET dm_channel_id = 1",
		"UPDATE dm_messages SET user_id = 1",
		"DELETE FROM users WHERE username = 'writer'",
	};
	struct conn *stranger = test_db_conn(site.conninfo);

	say(channel.id, "one");
	test_db_script(site.conninfo,
	    "INSERT INTO users (username, password_hash)"
	    " VALUES ('writer', 'x');"
	    "INSERT INTO dm_messages (dm_channel_id, user_id)"
	    " SELECT c.id, u.id FROM dm_channels c, users u"
	    " WHERE username = 'writer'");
	for (size_t i = 0; i < COUNT(scripts); i++) {
		struct err err = { 0 };

		cr_expect(
		    !conn_script(stranger, scripts[i], &err), "%s", scripts[i]);
		cr_expect_eq(err.code, ERR_ABSENT, "%s", scripts[i]);
	}
	conn_free(&stranger);
}
