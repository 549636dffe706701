/* Reactions: whose they are, which word counts, and to whom they travel. */
#include <criterion/criterion.h>

#include "common/base/clock.h"
#include "tests/integration/relay_site.h"
#include "tests/lib/test_db.h"

#define THUMB "\xf0\x9f\x91\x8d"

static struct relay_site site;

static void begin(void)
{
	test_db_needed();
	relay_site_begin(&site);
	relay_site_send(&site, relay_site_create(&site, "m1", "hello"));
}

static void end(void)
{
	relay_site_end(&site);
}

TestSuite(reaction, .init = begin, .fini = end, .timeout = 300);

#define ACCEPTED(ids) \
	"{\"accepted\":[" ids "],\"rejected\":[],\"maxUploadSize\":7340032}"
#define REJECTED(id, why) \
	"{\"accepted\":[],\"rejected\":[{\"messageId\":\"" id \
	"\",\"reason\":\"" why "\"}],\"maxUploadSize\":7340032}"

/* Of somebody about (host, message), with a time. */
struct word {
	const char *type; /* add, remove */
	const char *id;
	const char *person;
	const char *home;
	const char *message;
	const char *host;
	const char *emoji;
	int64_t at;
};

static struct word zed(const char *type, const char *id, int64_t at)
{
	return (struct word){ type, id, "700", "https://luna.test", "m1",
		"https://luna.test", THUMB, at };
}

static const char *said(struct word w)
{
	return arena_printf(site.arena,
	    "{\"eventType\":\"reaction_%s\",\"contextType\":\"dm\","
	    "\"messageId\":\"%s\",\"encryptionVersion\":0,\"timestamp\":"
	    "%" PRId64
	    ",\"dmChannelId\":\"9\",\"reaction\":{\"messageId\":\"%s\","
	    "\"messageHomeInstance\":\"%s\",\"userId\":\"1\","
	    "\"homeUserId\":\"%s\",\"homeInstance\":\"%s\",\"emoji\":\"%s\"%s}"
	    "}",
	    w.type, w.id, w.at, w.message, w.host, w.person, w.home, w.emoji,
	    strcmp(w.type, "add")
		? ""
		: arena_printf(site.arena, ",\"createdAt\":%" PRId64, w.at));
}

static void expect(struct word word, const char *answer)
{
	cr_expect_str_eq(relay_site_send(&site, said(word)), answer);
}

static int64_t count(const char *what)
{
	return relay_site_number(&site,
	    arena_printf(site.arena, "SELECT count(*) AS n FROM %s", what));
}

static const char *events(void)
{
	return relay_site_text(&site,
	    "SELECT string_agg(kind, ' ' ORDER BY seq) AS t"
	    " FROM conversation_events WHERE kind LIKE 'reaction%'");
}

static const char *ours(void)
{
	return relay_site_text(&site,
	    "SELECT id::text AS t FROM dm_messages WHERE"
	    " source_instance IS NULL");
}

/* A message of alice in the conversation with zed. */
static void alice_writes(void)
{
	test_db_script(site.conninfo,
	    "INSERT INTO dm_messages (dm_channel_id, user_id, content)"
	    " SELECT c.id, u.id, 'ours' FROM dm_channels c, users u"
	    " WHERE u.username = 'alice'");
}

static void alice_is_at(const char *host)
{
	test_db_script(site.conninfo,
	    arena_printf(site.arena,
		"UPDATE users SET replicated_instances = '[{\"origin\":"
		"\"https://%s\",\"username\":\"a\"}]' "
		"WHERE username = 'alice'",
		host));
}

static const char *alice_id(void)
{
	return arena_printf(site.arena, "%" PRId64, site.alice);
}

/* ---- which word counts ---- */

Test(reaction, comes_and_goes)
{
	expect(zed("add", "r1", 1000), ACCEPTED("\"r1\""));
	cr_expect_str_eq(
	    relay_site_text(&site,
		"SELECT u.home_user_id || ' ' || r.emoji || ' ' ||"
		" (extract(epoch FROM r.created_at) * 1000)::bigint AS t"
		" FROM dm_reactions r JOIN users u ON u.id = r.user_id"),
	    "700 " THUMB " 1000");
	expect(zed("remove", "m1:700:x", 2000), ACCEPTED("\"m1:700:x\""));
	cr_expect_eq(count("dm_reactions"), 0);
	cr_expect_str_eq(events(), "reaction_added reaction_removed");
	cr_expect_eq(
	    relay_site_number(&site,
		"SELECT count(*) AS n FROM conversation_events e"
		" JOIN reaction_tombstones t ON t.id = e.entity_id"
		" WHERE e.kind LIKE 'reaction%' AND e.actor_id = t.user_id"),
	    2);
}

Test(reaction, a_repeated_add_brings_nothing_back)
{
	expect(zed("add", "r1", 1000), ACCEPTED("\"r1\""));
	expect(zed("add", "r1", 1000), ACCEPTED("\"r1\""));
	expect(zed("remove", "x", 2000), ACCEPTED("\"x\""));
	expect(zed("remove", "x", 2000), ACCEPTED("\"x\""));
	expect(zed("add", "r1", 1000), ACCEPTED("\"r1\""));
	cr_expect_eq(count("dm_reactions"), 0);
	cr_expect_str_eq(events(), "reaction_added reaction_removed");
}

/* add, remove, add: every repetition and order of them ends alike. */
Test(reaction, every_order_of_repeated_words_ends_alike)
{
	const char *words[] = { said(zed("add", "r1", 1000)),
		said(zed("remove", "x", 2000)), said(zed("add", "r2", 3000)) };
	static const int orders[][6] = { { 0, 1, 2, 0, 1, 2 },
		{ 2, 1, 0, 2, 1, 0 }, { 1, 0, 2, 0, 1, 0 },
		{ 2, 0, 1, 1, 0, 0 }, { 0, 2, 1, 0, 0, 1 } };

	for (size_t i = 0; i < COUNT(orders); i++) {
		for (size_t j = 0; j < COUNT(orders[i]); j++)
			relay_site_send(&site, words[orders[i][j]]);
		cr_expect_eq(count("dm_reactions"), 1, "order %zu", i);
		test_db_script(site.conninfo,
		    "DELETE FROM dm_reactions; DELETE FROM "
		    "reaction_tombstones");
	}
	/* The same in one batch, and its words that come to nothing. */
	relay_site_send(&site,
	    arena_printf(site.arena, "%s,%s,%s", words[0], words[1], words[2]));
	cr_expect_eq(count("dm_reactions"), 1);
	expect(zed("remove", "x", 4000), ACCEPTED("\"x\""));
	cr_expect_eq(count("dm_reactions"), 0);
}

Test(reaction, a_removal_may_overtake_its_add)
{
	expect(zed("remove", "x", 2000), ACCEPTED("\"x\""));
	expect(zed("add", "r1", 1000), ACCEPTED("\"r1\""));
	cr_expect_eq(count("dm_reactions"), 0);
	cr_expect_null(events());
	expect(zed("add", "r2", 2001), ACCEPTED("\"r2\""));
	cr_expect_eq(count("dm_reactions"), 1);
}

Test(reaction, a_batch_may_say_one_thing_twice)
{
	cr_expect_str_eq(
	    relay_site_send(&site,
		arena_printf(site.arena, "%s,%s,%s",
		    said(zed("add", "r1", 1000)), said(zed("add", "r2", 1001)),
		    said(zed("add", "r2", 1001)))),
	    ACCEPTED("\"r1\",\"r2\",\"r2\""));
	cr_expect_eq(count("dm_reactions"), 1);
	cr_expect_str_eq(events(), "reaction_added");
}

/* ---- about what ---- */

Test(reaction, names_the_message_by_where_it_was_born)
{
	struct word word = zed("add", "r1", 1000);

	alice_writes();
	word.host = "nova.test";
	word.message = ours();
	expect(word, ACCEPTED("\"r1\""));
	cr_expect_eq(
	    relay_site_number(&site,
		"SELECT count(*) AS n FROM dm_reactions r JOIN dm_messages m"
		" ON m.id = r.dm_message_id WHERE m.source_instance IS NULL"),
	    1);
	/* The id of a copy here is nobody's name for it. */
	word.message = relay_site_text(&site,
	    "SELECT id::text AS t FROM dm_messages WHERE"
	    " source_instance IS NOT NULL");
	word.id = "r2";
	expect(word, REJECTED("r2", "unknown_message"));
	cr_expect_str_eq(
	    relay_site_send(&site,
		"{\"eventType\":\"reaction_add\",\"messageId\":\"m1\","
		"\"timestamp\":5,\"reaction\":{\"homeUserId\":\"700\","
		"\"homeInstance\":\"luna.test\",\"emoji\":\"x\"}}"),
	    ACCEPTED("\"m1\""), "without a name: the event's own id");
	cr_expect_eq(count("dm_reactions"), 2);
}

Test(reaction, what_is_unknown_is_refused_and_its_removal_is_not)
{
	struct word word = zed("add", "r1", 1000);

	word.message = "nope";
	expect(word, REJECTED("r1", "unknown_message"));
	word.type = "remove";
	expect(word, ACCEPTED("\"r1\""));
	word = zed("add", "r1", 1000);
	word.host = "https://nowhere.test";
	expect(word, REJECTED("r1", "unknown_message"));
	word.host = "nova.test";
	word.message = "99";
	expect(word, REJECTED("r1", "unknown_message"));
	relay_site_send(
	    &site, "{\"eventType\":\"delete\",\"messageId\":\"m1\"}");
	expect(zed("add", "r1", 1000), ACCEPTED("\"r1\""));
	cr_expect_eq(count("dm_reactions"), 0);
	cr_expect_eq(count("reaction_tombstones"), 0);
}

/* ---- whose ---- */

Test(reaction, only_known_people_of_the_conversation_react)
{
	struct word word = zed("add", "r1", 1000);
	struct peer orbit = relay_site_peer(&site, "orbit.test");

	word.home = "https://orbit.test";
	expect(word, REJECTED("r1", "attribution_mismatch"));
	word.home = "luna.test.evil.test";
	expect(word, REJECTED("r1", "attribution_mismatch"));
	word.home = "https://luna.test";
	word.person = "799";
	expect(word, REJECTED("r1", "user_not_found"));
	word.type = "remove";
	expect(word, ACCEPTED("\"r1\""));
	/* Known, but not in there. */
	test_db_script(site.conninfo,
	    "INSERT INTO users (username, password_hash, home_instance,"
	    " home_user_id) VALUES ('5@orbit.test',"
	    " '!federation-replicated', 'orbit.test', '5')");
	word = zed("add", "r1", 1000);
	word.home = "orbit.test";
	word.person = "5";
	cr_expect_str_eq(
	    relay_site_apply(&site, site.conn, &orbit, said(word), false),
	    REJECTED("r1", "unauthorized_source"));
	/* Another node takes nothing away, and nobody is made. */
	expect(zed("add", "r2", 1000), ACCEPTED("\"r2\""));
	word.type = "remove";
	word.person = "700";
	word.home = "luna.test";
	cr_expect_str_eq(
	    relay_site_apply(&site, site.conn, &orbit, said(word), false),
	    REJECTED("r1", "attribution_mismatch"));
	cr_expect_eq(count("dm_reactions"), 1);
	cr_expect_eq(count("users"), 4);
}

Test(reaction, unusable_words_are_refused)
{
	static const char *const emojis[] = { "", "a b", "a\\tb", "\\u0000",
		"\\ud83d", "\\u0085", "\\u00a0",
		"12345678901234567890123456789012345678901234567890"
		"123456789012345" };
	struct word word = zed("add", "r1", 1000);

	for (size_t i = 0; i < COUNT(emojis); i++) {
		word.emoji = emojis[i];
		cr_expect_str_eq(relay_site_send(&site, said(word)),
		    REJECTED("r1", "missing_reaction_payload"), "%zu", i);
	}
	cr_expect_str_eq(
	    relay_site_send(&site,
		"{\"eventType\":\"reaction_remove\",\"messageId\":\"r1\"}"),
	    REJECTED("r1", "missing_reaction_payload"));
	cr_expect_eq(count("dm_reactions"), 0);
}

Test(reaction, one_person_cannot_fill_a_message)
{
	struct word word = zed("add", "r", 1000);
	size_t refused = 0;

	for (int i = 0; i < 40; i++) {
		word.emoji = arena_printf(site.arena, "e%d", i);
		refused += strstr(relay_site_send(&site, said(word)),
			       "invalid_reaction") != NULL;
	}
	cr_expect_eq(count("dm_reactions"), 32);
	cr_expect_eq(refused, 8);
}

/* ---- homeward ---- */

static const char *outbox(void)
{
	return relay_site_text(&site,
	    "SELECT string_agg(p.host || ' ' || o.event_type || ' ' ||"
	    " (o.payload::text LIKE '%\"messageHomeInstance\":"
	    "\"https://luna.test\"%'), ', ' ORDER BY o.id) AS t"
	    " FROM federation_outbox o JOIN federation_peers p"
	    " ON p.id = o.peer_id");
}

Test(reaction, our_people_react_elsewhere_if_they_said_so)
{
	struct word word = zed("add", "r1", 1000);

	word.person = alice_id();
	word.home = "nova.test";
	expect(word, REJECTED("r1", "attribution_mismatch"));
	alice_is_at("luna.test");
	expect(word, ACCEPTED("\"r1\""));
	expect(word, ACCEPTED("\"r1\""));
	cr_expect_eq(
	    relay_site_number(&site, "SELECT user_id AS n FROM dm_reactions"),
	    site.alice);
	cr_expect_null(outbox(), "never back to where it came from");
}

Test(reaction, what_came_homeward_is_sent_on_once)
{
	struct word word = zed("add", "r1", 1000);

	relay_site_peer(&site, "orbit.test");
	test_db_script(site.conninfo,
	    "UPDATE users SET replicated_instances = '[{\"origin\":"
	    "\"https://orbit.test\",\"username\":\"a\"},{\"origin\":"
	    "\"https://luna.test\",\"username\":\"a\"}]' "
	    "WHERE username = 'alice'");
	word.person = alice_id();
	word.home = "nova.test";
	expect(word, ACCEPTED("\"r1\""));
	expect(word, ACCEPTED("\"r1\""));
	cr_expect_str_eq(outbox(), "orbit.test reaction_add true");
	word.type = "remove";
	word.at = 2000;
	expect(word, ACCEPTED("\"r1\""));
	expect(word, ACCEPTED("\"r1\""));
	cr_expect_str_eq(outbox(),
	    "orbit.test reaction_add true, orbit.test reaction_remove true");
	cr_expect_eq(relay_site_number(&site,
			 "SELECT (extract(epoch FROM created_at) * 1000)"
			 "::bigint AS n FROM federation_outbox"
			 " WHERE event_type = 'reaction_remove'"),
	    2000, "the time of the word is that of the event");
}

/* ---- a message that its author's home has sent on ---- */

/* Zed wrote it at moon, where luna had it from. */
static void sent_on(void)
{
	const char *event = relay_site_create(&site, "m2", "sent on");
	const char *at = strstr(event, "\"replyToId\"");

	cr_assert_str_eq(relay_site_send(&site,
			     arena_printf(site.arena,
				 "%.*s\"writtenAt\":{\"homeInstance\":"
				 "\"https://moon.test\",\"messageId\":\"w9\"},"
				 "%s",
				 (int)(at - event), event, at)),
	    ACCEPTED("\"m2\""));
}

Test(reaction, finds_what_was_sent_on_by_both_of_its_names)
{
	struct peer moon = relay_site_peer(&site, "moon.test");
	struct word word = zed("add", "r1", 1000);

	sent_on();
	test_db_script(site.conninfo,
	    "INSERT INTO users (username, password_hash, home_instance,"
	    " home_user_id) VALUES ('8@moon.test',"
	    " '!federation-replicated', 'moon.test', '8')");
	word.message = "m2";
	expect(word, ACCEPTED("\"r1\""));
	word.message = "w9";
	word.host = "https://moon.test";
	word.emoji = "x";
	expect(word, ACCEPTED("\"r1\""));
	cr_expect_eq(
	    relay_site_number(&site,
		"SELECT count(*) AS n FROM dm_reactions r JOIN dm_messages m"
		" ON m.id = r.dm_message_id AND m.source_message_id = 'm2'"),
	    2);
	/* The name lets nobody in. */
	word.person = "8";
	word.home = "moon.test";
	cr_expect_str_eq(
	    relay_site_apply(&site, site.conn, &moon, said(word), false),
	    REJECTED("r1", "unauthorized_source"));
	test_db_script(site.conninfo, "DELETE FROM dm_messages");
	cr_expect_eq(count("message_aliases"), 0);
}

Test(reaction, a_message_of_ours_that_came_homeward_has_our_id_for_others)
{
	const char *event = relay_site_create(&site, "h1", "homeward");
	struct word word = zed("add", "r1", 1000);
	const char *at;

	alice_is_at("luna.test");
	at = strstr(event,
	    "\"homeUserId\":\"700\",\"homeInstance\":"
	    "\"https://luna.test\",\"content\"");
	cr_assert(at);
	relay_site_send(&site,
	    arena_printf(site.arena,
		"%.*s\"homeUserId\":\"%s\",\"homeInstance\":\"nova.test\",%s",
		(int)(at - event), event, alice_id(),
		strstr(at, "\"content\"")));
	word.host = "nova.test";
	word.message = relay_site_text(&site,
	    "SELECT id::text AS t FROM dm_messages"
	    " WHERE source_message_id = 'h1'");
	expect(word, ACCEPTED("\"r1\""));
	word.host = "luna.test";
	word.message = "h1";
	word.emoji = "x";
	expect(word, ACCEPTED("\"r1\""));
	cr_expect_eq(count("dm_reactions"), 2);
}
