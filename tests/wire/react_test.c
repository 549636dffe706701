/*
 * Recorded reactions, read states, typing and refused files: as sent to our
 * node, and what our node sends for the same actions.
 */
#include <criterion/criterion.h>

#include "tests/lib/test_db.h"
#include "tests/wire/replay.h"
#include "tests/wire/talk.h"

static const char newer[] = "backspace-8e13aaa";
static const char relay[] = TALK_RELAY;

/* ---- sent to us ---- */

/* Both versions' people and their conversation as nova or orbit has it, with
 * the id that the other version of a message has here. */
struct cast {
	const char *version; /* NULL: 626a8ded */
	const char *alice;
	const char *bob;
	const char *pair;
};

static const struct cast older_cast = { NULL, "385898133746929664",
	"385898137274384384", "ba17ddf8c114ac1bbab25db22452cf58" };
static const struct cast newer_cast = { newer, "385902953156198400",
	"385902957727604736", "acf3a025796a8841e01373d11b5cd65b" };

static void peer_of(
    struct replay *replay, const struct cast *cast, const char *name)
{
	struct recording recording =
	    recording_load_of(replay->arena, cast->version, name);
	size_t first = 0;

	while (!recording.exchanges[first].secret)
		first++;
	replay_peer(replay,
	    strcmp(replay->node->host, "nova.test") ? "nova.test"
						    : "orbit.test",
	    recording.exchanges[first].secret);
}

/* The native one of the two, whom replay_begin made under the older id, and
 * the other as a stub, in their conversation. */
static void cast_stands(struct replay *replay, const struct cast *cast)
{
	bool is_nova = !strcmp(replay->node->host, "nova.test");

	replay_sql(replay,
	    arena_printf(replay->arena,
		"UPDATE users SET id = %s WHERE username IN ('alice', 'bob');"
		"INSERT INTO users (id, username, password_hash,"
		" home_instance, home_user_id) VALUES (7, '%s@%s',"
		" '!federation-replicated', '%s', '%s');"
		"INSERT INTO dm_channels (id, pair_low, pair_high,"
		" federated_id) VALUES (8, 7, %s, '%s');"
		"INSERT INTO dm_members VALUES (8, 7), (8, %s)",
		is_nova ? cast->alice : cast->bob,
		is_nova ? cast->bob : cast->alice,
		is_nova ? "orbit.test" : "nova.test",
		is_nova ? "orbit.test" : "nova.test",
		is_nova ? cast->bob : cast->alice,
		is_nova ? cast->alice : cast->bob, cast->pair,
		is_nova ? cast->alice : cast->bob));
}

static void begin(struct replay *replay, const char *host,
    const struct cast *cast, const char *name)
{
	recording_check();
	replay_begin(replay, host, "open");
	cast_stands(replay, cast);
	peer_of(replay, cast, name);
}

/* What the other node sent, as far as it is of these types. */
static void send_types(struct replay *replay, const struct cast *cast,
    const char *name, const char *types)
{
	struct recording recording =
	    recording_load_of(replay->arena, cast->version, name);
	size_t sent = 0;

	for (size_t i = 0; i < recording.count; i++) {
		const struct exchange *e = &recording.exchanges[i];

		if (strcmp(e->to, replay->node->host) ||
		    strcmp(e->path, relay) ||
		    !exchange_has_only(replay->arena, e, types))
			continue;
		replay_exchange(replay, &recording, i);
		sent++;
	}
	cr_expect_gt(sent, 0, "nothing was sent");
}

static const char *text(struct replay *replay, const char *query)
{
	return test_db_text(replay->arena, replay->node->database, query);
}

static int64_t number(struct replay *replay, const char *query)
{
	return test_db_number(replay->node->database, query);
}

static const char events_sql[] =
    "SELECT string_agg(kind, ' ' ORDER BY seq) AS t FROM conversation_events"
    " WHERE kind LIKE 'reaction%'";

static void reactions_as_orbit(const struct cast *cast, const char *changes)
{
	struct replay replay;

	begin(&replay, "orbit.test", cast, "040-reactions");
	send_types(&replay, cast, "040-reactions",
	    "create dm_typing_stop reaction_add reaction_remove");
	cr_expect_str_eq(text(&replay, events_sql), changes);
	cr_expect_eq(
	    number(&replay, "SELECT count(*) AS n FROM dm_reactions"), 0);
	replay_end(&replay);
}

Test(wire_react, reactions_as_orbit_040, .timeout = 300)
{
	reactions_as_orbit(&older_cast,
	    "reaction_added reaction_removed reaction_added reaction_removed");
}

/* Its first reaction shares a batch with what we do not know. */
Test(wire_react, reactions_as_orbit_of_the_newer_version, .timeout = 300)
{
	reactions_as_orbit(&newer_cast, "reaction_added reaction_removed");
}

static void reactions_as_nova(const struct cast *cast, const char *message)
{
	struct replay replay;

	begin(&replay, "nova.test", cast, "040-reactions");
	replay_sql(&replay,
	    arena_printf(replay.arena,
		"INSERT INTO dm_messages (id, dm_channel_id, user_id, content)"
		" VALUES (%s, 8, %s, 'react to this')",
		message, cast->alice));
	send_types(
	    &replay, cast, "040-reactions", "reaction_add reaction_remove");
	cr_expect_str_eq(
	    text(&replay, events_sql), "reaction_added reaction_removed");
	replay_end(&replay);
}

Test(wire_react, reactions_as_nova_040, .timeout = 300)
{
	reactions_as_nova(&older_cast, "385898800171503616");
}

Test(wire_react, reactions_as_nova_of_the_newer_version, .timeout = 300)
{
	reactions_as_nova(&newer_cast, "385903188582481920");
}

/* Nova's own message, of which orbit refuses the first file. */
static void refused_file(const struct cast *cast, const char *message,
    const char *files, const char *marked)
{
	struct replay replay;

	begin(&replay, "nova.test", cast, "052-file-rejected");
	replay_sql(&replay,
	    arena_printf(replay.arena,
		"INSERT INTO dm_messages (id, dm_channel_id, user_id, content)"
		" VALUES (%s, 8, %s, 'one big and one small file');"
		"INSERT INTO attachments (dm_message_id, filename,"
		" original_name, mimetype, size) SELECT %s, f, f, 'x', 1"
		" FROM unnest(ARRAY[%s]) f",
		message, cast->alice, message, files));
	send_types(&replay, cast, "052-file-rejected", "file_rejected");
	cr_expect_str_eq(
	    text(&replay,
		"SELECT string_agg(filename || ' ' || federation_status ||"
		" ' ' || federation_meta, ', ') AS t FROM attachments"
		" WHERE federation_status IS NOT NULL"),
	    arena_printf(replay.arena,
		"%s remote_partial [{\"userId\":\"7\",\"username\":"
		"\"%s@orbit.test\",\"limit\":1048576}]",
		marked, cast->bob));
	replay_end(&replay);
}

Test(wire_react, refused_file_as_nova_052, .timeout = 300)
{
	refused_file(&older_cast, "385899215613120512",
	    "'385899215470514176.bin', '385899215587954688.txt'",
	    "385899215470514176.bin");
}

Test(wire_react, refused_file_as_nova_of_the_newer_version, .timeout = 300)
{
	refused_file(&newer_cast, "385908828184920064",
	    "'385908827820015616.bin', '385908828050702336.txt'",
	    "385908827820015616.bin");
}

Test(wire_react, files_as_orbit_052, .timeout = 300)
{
	struct replay replay;

	begin(&replay, "orbit.test", &older_cast, "052-file-rejected");
	replay_sql(&replay,
	    "UPDATE instance_settings SET max_upload_size_bytes = 1048576");
	send_types(
	    &replay, &older_cast, "052-file-rejected", "create dm_typing_stop");
	cr_expect_eq(
	    number(&replay, "SELECT count(*) AS n FROM attachments"), 2);
	replay_end(&replay);
}

static void typing_as(const char *host, const struct cast *cast)
{
	struct replay replay;

	begin(&replay, host, cast, "070-typing");
	send_types(&replay, cast, "070-typing",
	    "create dm_typing_start dm_typing_stop");
	cr_expect_eq(number(&replay, "SELECT count(*) AS n FROM dm_channels"),
	    1, "typing in an unknown group makes none");
	replay_end(&replay);
}

Test(wire_react, typing_070, .timeout = 300)
{
	typing_as("orbit.test", &older_cast);
	typing_as("nova.test", &older_cast);
}

Test(wire_react, typing_of_the_newer_version, .timeout = 300)
{
	typing_as("orbit.test", &newer_cast);
	typing_as("nova.test", &newer_cast);
}

/* Without its payload, again and again: once accepted it comes no more. */
static void empty_read_states_as(const char *host)
{
	static const struct deviation told_yes[] = {
#define YES(place, person) \
	{ place, "read states", 200, \
		"{\"accepted\":[\"read_state:" \
		"ba17ddf8c114ac1bbab25db22452cf58:" person \
		"\"],\"rejected\":[],\"maxUploadSize\":104857600}" }
		YES(0, "385898133746929664"),
		YES(1, "385898137274384384"),
		YES(2, "385898133746929664"),
		YES(3, "385898137274384384"),
		YES(4, "385898133746929664"),
		YES(5, "385898137274384384"),
		YES(6, "385898133746929664"),
		YES(7, "385898137274384384"),
		YES(8, "385898133746929664"),
		YES(9, "385898137274384384"),
#undef YES
		{ 0 },
	};
	struct replay replay;

	begin(&replay, host, &older_cast, "160-read-state");
	replay.deviations = told_yes;
	send_types(&replay, &older_cast, "160-read-state", "read_state_update");
	cr_expect_eq(
	    number(&replay, "SELECT count(*) AS n FROM read_states"), 0);
	replay_end(&replay);
}

Test(wire_react, read_states_without_payload_160, .timeout = 300)
{
	empty_read_states_as("orbit.test");
	empty_read_states_as("nova.test");
}

/* bob reads his own message at orbit: nova has the conversation, too. */
Test(wire_react, read_states_of_the_newer_version, .timeout = 300)
{
	struct replay replay;

	begin(&replay, "nova.test", &newer_cast, "160-read-state");
	replay_sql(&replay,
	    "INSERT INTO dm_messages (id, dm_channel_id, user_id,"
	    " source_instance, source_message_id) VALUES (9, 8, 7,"
	    " 'https://orbit.test', '385903729890582528');"
	    "UPDATE users SET password_hash = '!' WHERE id = 7");
	send_types(&replay, &newer_cast, "160-read-state", "read_state_update");
	cr_expect_eq(number(&replay,
			 "SELECT last_read_message_id AS n FROM read_states"
			 " WHERE user_id = 7"),
	    9);
	replay_end(&replay);
}

/* alice's account at orbit, by hand: two of her messages, and none. */
static void read_states_by_hand(
    const struct cast *cast, const char *ours, const char *theirs)
{
	struct replay replay;

	begin(&replay, "nova.test", cast, "161-read-state-by-hand");
	replay_sql(&replay,
	    arena_printf(replay.arena,
		"UPDATE users SET replicated_instances ="
		" '[{\"origin\":\"https://orbit.test\",\"username\":\"a\"}]'"
		" WHERE username = 'alice';"
		"INSERT INTO dm_messages (id, dm_channel_id, user_id)"
		" VALUES (%s, 8, %s);"
		"INSERT INTO dm_messages (id, dm_channel_id, user_id,"
		" source_instance, source_message_id)"
		" VALUES (%s + 1, 8, 7, 'https://orbit.test', '%s')",
		ours, cast->alice, ours, theirs));
	send_types(
	    &replay, cast, "161-read-state-by-hand", "read_state_update");
	cr_expect_str_eq(
	    text(&replay,
		"SELECT m.source_message_id AS t FROM read_states r"
		" JOIN dm_messages m ON m.id = r.last_read_message_id"),
	    theirs);
	cr_expect_eq(number(&replay,
			 "SELECT count(*) AS n FROM user_events"
			 " WHERE kind = 'channel_ack'"),
	    2);
	replay_end(&replay);
}

Test(wire_react, read_states_by_hand_161, .timeout = 300)
{
	read_states_by_hand(
	    &older_cast, "385898280795033600", "385898283030642688");
}

Test(wire_react, read_states_by_hand_of_the_newer_version, .timeout = 300)
{
	read_states_by_hand(
	    &newer_cast, "385903011918397440", "385903016074567680");
}

/* ---- sent by us ---- */

static void cast_comes(struct talk *talk)
{
	talk_begin(talk);
	talk_sql(talk,
	    "UPDATE users SET display_name = 'Bob', avatar_color = 'coral'"
	    " WHERE home_user_id IS NOT NULL");
}

static void react(struct talk *talk, const char *method, const char *message,
    const char *emoji)
{
	struct test_reply reply = talk_call(talk, method,
	    arena_printf(talk->arena, "/api/dm/messages/%s/reactions/%s",
		message, emoji),
	    NULL);

	cr_assert_lt(reply.status, 300, "%s", reply.body);
}

static void expect_next(
    struct talk *talk, size_t place, const char *name, size_t recorded)
{
	struct test_peer_request sent = talk_batch(talk, place);

	talk_expect(talk, talk_recorded(talk, name, recorded), &sent);
}

Test(wire_react, what_nova_sends_040, .timeout = 300)
{
	struct talk talk;
	const char *id;

	cast_comes(&talk);
	id = talk_write(&talk, "{\"content\":\"react to this\"}");
	expect_next(&talk, 0, "040-reactions", 0);
	react(&talk, "PUT", id, "%F0%9F%91%8D");
	expect_next(&talk, 1, "040-reactions", 1);
	react(&talk, "DELETE", id, "%F0%9F%91%8D");
	expect_next(&talk, 2, "040-reactions", 2);
	/* Both leave in one batch, and neither folds into the other. */
	talk_sql(&talk,
	    "UPDATE federation_peers SET paused_until = now() +"
	    " interval '1 hour'");
	react(&talk, "PUT", id, "%F0%9F%94%A5");
	react(&talk, "DELETE", id, "%F0%9F%94%A5");
	talk_sql(&talk, "UPDATE federation_peers SET paused_until = NULL");
	expect_next(&talk, 3, "040-reactions", 3);
	talk_end(&talk);
}

/* Orbit's words about a message of nova's, said by nova about orbit's. */
Test(
    wire_react, a_reaction_names_where_the_message_was_born_040, .timeout = 300)
{
	struct talk talk;
	struct test_peer_request sent;
	const char *want;

	cast_comes(&talk);
	talk_sql(&talk,
	    arena_printf(talk.arena,
		"INSERT INTO dm_messages (id, dm_channel_id, user_id,"
		" source_instance, source_message_id) SELECT "
		"385898803979976704,"
		" %s, id, '%s', '385898800171503616' FROM users"
		" WHERE home_user_id = '%s'",
		talk.channel, test_peer_origin(talk.peer), TALK_BOB));
	react(&talk, "PUT", "385898803979976704", "%F0%9F%8E%89");
	sent = talk_batch(&talk, 0);
	want =
	    recording_load(talk.arena, "040-reactions").exchanges[3].body.data;
	/* The two change places. */
	want = text_replaced(talk.arena, want, "nova.test", "else.test");
	want = text_replaced(talk.arena, want, "orbit.test", "nova.test");
	want = text_replaced(talk.arena, want, "else.test", "orbit.test");
	talk_expect(&talk, want, &sent);
	talk_end(&talk);
}

/* The conversation's federated id is made of other people's ids than theirs. */
static const char *typing_recorded(
    struct talk *talk, const char *name, size_t place)
{
	const char *body =
	    recording_load(talk->arena, name).exchanges[place].body.data;

	body = text_replaced(talk->arena, body, older_cast.pair,
	    test_db_text(talk->arena, talk->node->database,
		"SELECT federated_id AS t FROM dm_channels"));
	return text_replaced(talk->arena, body,
	    "\"homeInstance\":\"nova.test\"",
	    "\"homeInstance\":\"nova.localhost\"");
}

static void types(struct talk *talk, const char *json)
{
	struct test_reply reply = talk_call(talk, "POST",
	    arena_printf(talk->arena, "/api/dm/%s/typing", talk->channel),
	    json);

	cr_assert_eq(reply.status, 200, "%s", reply.body);
}

Test(wire_react, what_nova_sends_070, .timeout = 300)
{
	struct talk talk;
	struct test_peer_request sent;

	cast_comes(&talk);
	talk_sql(&talk,
	    "UPDATE users SET display_name = 'Alice A.',"
	    " avatar = '385899497067696128.png' WHERE username = 'alice'");
	types(&talk, "{\"typing\":true}");
	sent = talk_batch(&talk, 0);
	talk_expect(&talk, typing_recorded(&talk, "070-typing", 0), &sent);
	talk_end(&talk);
}

/* Whoever types and then sends has stopped, which is told besides. */
Test(wire_react, a_stop_goes_with_the_message_023, .timeout = 300)
{
	struct talk talk;
	struct test_peer_request sent[2];
	bool stop_first;

	cast_comes(&talk);
	types(&talk, NULL);
	talk_batch(&talk, 0);
	talk_write(&talk,
	    "{\"content\":\"sent over websocket \\\"quotes\\\" \\\\ /"
	    " \\u2028 \\u0007 <b>&amp;\"}");
	sent[0] = talk_batch(&talk, 1);
	sent[1] = talk_batch(&talk, 2);
	stop_first = strstr(sent[0].body.data, "dm_typing_stop") != NULL;
	talk_expect(&talk,
	    typing_recorded(&talk, "023-dm-message-create-ws", 0),
	    &sent[stop_first ? 0 : 1]);
	cr_expect(strstr(
	    sent[stop_first ? 1 : 0].body.data, "\"eventType\":\"create\""));
	talk_end(&talk);
}

/* The event alone: the newer version sent it beside another. */
static const char *read_state_recorded(struct talk *talk)
{
	struct recording recording =
	    recording_load_of(talk->arena, newer, "160-read-state");
	const char *body = recording.exchanges[1].body.data;
	const char *event =
	    strstr(body, "{\"eventType\":\"read_state_update\"");

	cr_assert(event);
	body = arena_printf(talk->arena,
	    "{\"version\":1,\"sourceInstance\":\"https://nova.test\","
	    "\"events\":[%s",
	    event);
	return text_replaced(talk->arena, body, newer_cast.pair,
	    test_db_text(talk->arena, talk->node->database,
		"SELECT federated_id AS t FROM dm_channels"));
}

Test(wire_react, what_nova_sends_160, .timeout = 300)
{
	struct talk talk;
	struct test_peer_request sent;
	struct test_reply reply;

	cast_comes(&talk);
	talk_sql(&talk,
	    arena_printf(talk.arena,
		"UPDATE users SET replicated_instances ="
		" '[{\"origin\":\"%s\",\"username\":\"a\"}]'"
		" WHERE username = 'alice';"
		"INSERT INTO dm_messages (id, dm_channel_id, user_id,"
		" source_instance, source_message_id) SELECT "
		"385903729890582529,"
		" %s, id, '%s', '385903729890582528' FROM users"
		" WHERE home_user_id = '%s'",
		test_peer_origin(talk.peer), talk.channel,
		test_peer_origin(talk.peer), TALK_BOB));
	reply = talk_call(&talk, "POST",
	    arena_printf(talk.arena, "/api/dm/%s/ack", talk.channel),
	    "{\"messageId\":\"385903729890582529\"}");
	cr_assert_eq(reply.status, 200, "%s", reply.body);
	sent = talk_batch(&talk, 0);
	talk_expect(&talk, read_state_recorded(&talk), &sent);
	talk_end(&talk);
}
