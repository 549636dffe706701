/*
 * Recorded groups: as sent to our node, and what our node sends for the same
 * actions.
 */
#include <criterion/criterion.h>

#include "tests/lib/test_db.h"
#include "tests/wire/replay.h"
#include "tests/wire/talk.h"

static const char relay[] = TALK_RELAY;

/* ---- sent to us ---- */

static const char newer[] = "backspace-8e13aaa";

static void peer_of(struct replay *replay, const char *version,
    const char *name, const char *host)
{
	struct recording recording =
	    recording_load_of(replay->arena, version, name);
	size_t first = 0;

	while (!recording.exchanges[first].secret)
		first++;
	replay_peer(replay, host, recording.exchanges[first].secret);
}

/* What the other node sent, as far as it is of these types. */
static void replay_types(struct replay *replay, const char *version,
    const char *name, const char *types)
{
	struct recording recording =
	    recording_load_of(replay->arena, version, name);

	for (size_t i = 0; i < recording.count; i++) {
		const struct exchange *e = &recording.exchanges[i];

		if (!strcmp(e->to, replay->node->host) &&
		    !strcmp(e->path, relay) &&
		    exchange_has_only(replay->arena, e, types))
			replay_exchange(replay, &recording, i);
	}
}

static const char all_types[] =
    "create update delete reaction_add dm_typing_stop member_add "
    "member_remove ownership_transfer";

static const char members_sql[] =
    "SELECT coalesce(string_agg(coalesce(u.home_user_id, u.id::text) || CASE "
    "WHEN u.id = c.owner_id THEN '*' ELSE '' END, ' ' ORDER BY "
    "coalesce(u.home_user_id, u.id::text)), '') AS t FROM dm_channels c JOIN "
    "dm_members m ON m.dm_channel_id = c.id JOIN users u ON u.id = m.user_id "
    "WHERE c.is_group";

static void expect_members(struct replay *replay, const char *members)
{
	cr_expect_str_eq(
	    test_db_text(replay->arena, replay->node->database, members_sql),
	    members);
}

Test(wire_group, as_orbit_060_to_065, .timeout = 300)
{
	static const char *const cases[] = { "060-group-create",
		"061-group-message-ops", "062-group-add-member" };
	struct replay replay;

	recording_check();
	replay_begin(&replay, "orbit.test", "open");
	replay_sql(&replay,
	    "INSERT INTO users (id, username, password_hash) VALUES"
	    " (385898138440400896, 'carol', '!'),"
	    " (385898139652554752, 'erin', '!')");
	peer_of(&replay, NULL, cases[0], "nova.test");
	for (size_t i = 0; i < COUNT(cases); i++)
		replay_types(&replay, NULL, cases[i], all_types);
	expect_members(&replay,
	    "385898133746929664* 385898134900363264 385898136087351296 "
	    "385898137274384384 385898138440400896 385898139652554752");
	replay_types(&replay, NULL, "063-group-leave", all_types);
	replay_types(&replay, NULL, "064-group-kick", all_types);
	replay_types(&replay, NULL, "065-group-owner-leaves", all_types);
	expect_members(&replay,
	    "385898134900363264* 385898137274384384 385898139652554752");
	replay_end(&replay);
}

/* nova had made the group through its client API. */
static const char group_sql[] =
    "INSERT INTO users (id, username, password_hash) VALUES"
    " (385898134900363264, 'dave', '!');"
    "INSERT INTO users (username, password_hash, home_instance, home_user_id)"
    " SELECT id || '@orbit.test', '!federation-replicated', 'orbit.test', id"
    " FROM unnest(ARRAY['385898137274384384', '385898138440400896',"
    " '385898139652554752']) AS id;"
    "INSERT INTO dm_channels (is_group, owner_id, federated_id)"
    " VALUES (true, 385898133746929664,"
    " '05d1f2b3-6ca2-4bd0-8641-a07555981695');"
    "INSERT INTO dm_members SELECT c.id, u.id FROM dm_channels c, users u"
    " WHERE u.username NOT IN ('root', 'member');"
    "INSERT INTO dm_messages (id, dm_channel_id, user_id, content)"
    " SELECT 385899689695301632, id, owner_id, 'group message'"
    " FROM dm_channels";

Test(wire_group, as_nova_060_to_064, .timeout = 300)
{
	struct replay replay;

	recording_check();
	replay_begin(&replay, "nova.test", "open");
	replay_sql(&replay, group_sql);
	peer_of(&replay, NULL, "060-group-create", "orbit.test");
	replay_types(&replay, NULL, "060-group-create", all_types);
	replay_types(&replay, NULL, "061-group-message-ops", all_types);
	replay_types(&replay, NULL, "063-group-leave", all_types);
	replay_types(&replay, NULL, "064-group-kick", all_types);
	expect_members(&replay,
	    "385898133746929664* 385898134900363264 385898137274384384 "
	    "385898138440400896");
	replay_end(&replay);
}

/* The newer version has names and icons of groups, which we leave aside. */
Test(wire_group, as_orbit_of_the_newer_version, .timeout = 300)
{
	static const char *const cases[] = { "060-group-create",
		"061-group-message-ops", "062-group-add-member",
		"063-group-leave", "065-group-owner-leaves" };
	struct replay replay;

	recording_check();
	replay_begin(&replay, "orbit.test", "open");
	replay_sql(&replay,
	    "INSERT INTO users (id, username, password_hash) VALUES"
	    " (385902957727604736, 'bob8', '!'),"
	    " (385902958948147200, 'carol8', '!'),"
	    " (385902960437125120, 'erin8', '!')");
	peer_of(&replay, newer, cases[0], "nova.test");
	for (size_t i = 0; i < COUNT(cases); i++)
		replay_types(&replay, newer, cases[i], all_types);
	expect_members(&replay,
	    "385902954762616832* 385902957727604736 385902958948147200 "
	    "385902960437125120");
	replay_end(&replay);
}

Test(wire_group, owner_actions_of_the_newer_version_205, .timeout = 300)
{
	struct replay replay;

	recording_check();
	replay_begin(&replay, "orbit.test", "open");
	replay_sql(&replay,
	    "INSERT INTO users (id, username, password_hash) VALUES"
	    " (385902957727604736, 'bob8', '!'),"
	    " (385902958948147200, 'carol8', '!')");
	peer_of(&replay, newer, "205-group-owner-actions", "nova.test");
	replay_types(&replay, newer, "205-group-owner-actions", all_types);
	expect_members(&replay,
	    "385902953156198400 385902954762616832 385902957727604736*");
	replay_end(&replay);
}

/* ---- sent by us ---- */

/* dave and frank of nova, bob, carol and erin of orbit, all friends of alice.
 */
static void people_come(struct talk *talk)
{
	static const char *const natives[] = { "dave", "frank" };

	for (size_t i = 0; i < COUNT(natives); i++)
		test_person(talk->node, talk->port, natives[i]);
	talk_sql(talk,
	    "INSERT INTO users (username, password_hash, home_instance,"
	    " home_user_id, display_name, avatar_color)"
	    " SELECT id || '@orbit.localhost', '!federation-replicated',"
	    " 'orbit.localhost', id, name, color FROM (VALUES"
	    " ('385898137274384385', 'Bob', 'coral'),"
	    " ('385898138440400896', 'Carol', 'amber'),"
	    " ('385898139652554752', 'Erin', 'sky')) AS t(id, name, color);"
	    "UPDATE users SET display_name = initcap(username),"
	    " avatar_color = CASE username WHEN 'dave' THEN 'sky'"
	    " ELSE 'teal' END WHERE username IN ('dave', 'frank');"
	    "UPDATE users SET display_name = 'Alice A.',"
	    " avatar = '385899497067696128.png' WHERE username = 'alice';"
	    "INSERT INTO friends (user_id, friend_id) SELECT a.id, b.id"
	    " FROM users a, users b WHERE a.username = 'alice'"
	    " AND b.username <> 'alice'");
}

static const char *id_of(struct talk *talk, const char *name)
{
	return test_db_text(talk->arena, talk->node->database,
	    arena_printf(talk->arena,
		"SELECT id::text AS t FROM users WHERE username = '%s' OR"
		" home_user_id = '%s'",
		name, name));
}

static const char bob[] = "385898137274384385";
static const char carol[] = "385898138440400896";
static const char erin[] = "385898139652554752";

static void make_group(struct talk *talk)
{
	struct test_reply reply = talk_call(talk, "POST", "/api/dm/group",
	    arena_printf(talk->arena,
		"{\"users\":[{\"id\":\"1\",\"homeUserId\":\"%s\","
		"\"homeInstance\":\"orbit.localhost\"},{\"id\":\"%s\"},"
		"{\"id\":\"%s\"}]}",
		bob, id_of(talk, carol), id_of(talk, "dave")));

	cr_assert_eq(reply.status, 201, "%s", reply.body);
	talk->channel = test_text(talk->arena, &reply, "id");
}

static void expect_next(
    struct talk *talk, size_t place, const char *name, size_t recorded)
{
	struct test_peer_request sent = talk_batch(talk, place);

	talk_expect(talk, talk_recorded(talk, name, recorded), &sent);
}

static void must(
    struct talk *talk, const char *method, const char *path, const char *body)
{
	struct test_reply reply = talk_call(talk, method,
	    arena_printf(talk->arena, "/api/dm/%s%s", talk->channel, path),
	    body);

	cr_assert_eq(reply.status, 200, "%s", reply.body);
}

Test(wire_group, what_nova_sends_060_to_062, .timeout = 300)
{
	struct talk talk;
	struct test_peer_request sent;
	const char *id;

	talk_begin(&talk);
	people_come(&talk);
	make_group(&talk);
	expect_next(&talk, 0, "060-group-create", 0);
	talk_write(&talk, "{\"content\":\"welcome to the group\"}");
	expect_next(&talk, 1, "060-group-create", 1);
	id = talk_write(&talk, "{\"content\":\"group message\"}");
	expect_next(&talk, 2, "061-group-message-ops", 0);
	talk_edit(&talk, id, "group message, edited");
	expect_next(&talk, 3, "061-group-message-ops", 1);
	talk_erase(&talk, id);
	expect_next(&talk, 4, "061-group-message-ops", 2);
	must(&talk, "POST", "/members",
	    arena_printf(talk.arena,
		"{\"homeUserId\":\"%s\",\"homeInstance\":\"orbit.localhost\"}",
		erin));
	expect_next(&talk, 5, "062-group-add-member", 0);
	must(&talk, "POST", "/members",
	    arena_printf(
		talk.arena, "{\"userId\":\"%s\"}", id_of(&talk, "frank")));
	expect_next(&talk, 6, "062-group-add-member", 1);
	sent = talk_batch(&talk, 6);
	cr_expect(!strstr(sent.body.data, "avatarColor\":\"\""));
	talk_end(&talk);
}

Test(wire_group, what_nova_sends_064_and_065, .timeout = 300)
{
	struct talk talk;
	struct test_peer_request sent;

	talk_begin(&talk);
	people_come(&talk);
	make_group(&talk);
	talk_batch(&talk, 0);
	must(&talk, "DELETE",
	    arena_printf(talk.arena, "/members/%s", id_of(&talk, carol)), NULL);
	sent = talk_batch(&talk, 1);
	/* The record's was made by hand: other members, the same payload. */
	cr_expect(strstr(sent.body.data,
		      "\"membership\":{\"user\":{\"homeUserId\":"
		      "\"385898138440400896\",\"homeInstance\":"
		      "\"orbit.localhost\"},\"removedBy\":{\"homeUserId\":"),
	    "%s", sent.body.data);
	cr_expect(strstr(sent.body.data, "\"reason\":\"kick\"}}]}"));
	/* Both leave in one batch, as the record has it. */
	talk_sql(&talk,
	    "UPDATE federation_peers SET paused_until = now() +"
	    " interval '1 hour'");
	must(&talk, "DELETE", "/members", NULL);
	talk_sql(&talk, "UPDATE federation_peers SET paused_until = NULL");
	expect_next(&talk, 2, "065-group-owner-leaves", 0);
	talk_end(&talk);
}

Test(wire_group, what_nova_sends_063, .timeout = 300)
{
	struct talk talk;

	talk_begin(&talk);
	people_come(&talk);
	make_group(&talk);
	talk_batch(&talk, 0);
	/* Somebody who is not the owner leaves. */
	must(&talk, "PATCH", "",
	    arena_printf(
		talk.arena, "{\"ownerId\":\"%s\"}", id_of(&talk, "dave")));
	talk_batch(&talk, 1);
	must(&talk, "DELETE", "/members", NULL);
	expect_next(&talk, 2, "063-group-leave", 0);
	talk_end(&talk);
}
