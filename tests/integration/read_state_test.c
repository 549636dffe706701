/* How far somebody has read: forward only, on all of his nodes, his own. */
#include <pthread.h>

#include <criterion/criterion.h>

#include "common/base/clock.h"
#include "tests/integration/relay_site.h"
#include "tests/lib/test_db.h"
#include "tests/lib/test_http.h"
#include "tests/lib/test_node.h"

static struct relay_site site;
static const char *pair;

static void alice_is_at(const char *origins)
{
	test_db_script(site.conninfo,
	    arena_printf(site.arena,
		"UPDATE users SET replicated_instances = '[%s]' "
		"WHERE username = 'alice'",
		origins));
}

#define AT(host) "{\"origin\":\"https://" host "\",\"username\":\"a\"}"

static void begin(void)
{
	test_db_needed();
	relay_site_begin(&site);
	for (int i = 1; i <= 3; i++)
		relay_site_send(&site,
		    relay_site_create(
			&site, arena_printf(site.arena, "m%d", i), "hello"));
	pair =
	    relay_site_text(&site, "SELECT federated_id AS t FROM dm_channels");
	alice_is_at(AT("luna.test"));
}

static void end(void)
{
	relay_site_end(&site);
}

TestSuite(read_state, .init = begin, .fini = end, .timeout = 300);

#define ACCEPTED(ids) \
	"{\"accepted\":[" ids "],\"rejected\":[],\"maxUploadSize\":7340032}"
#define REJECTED(id, why) \
	"{\"accepted\":[],\"rejected\":[{\"messageId\":\"" id \
	"\",\"reason\":\"" why "\"}],\"maxUploadSize\":7340032}"

static const char *mark(const char *person, const char *home,
    const char *federated_id, const char *host, const char *message, int64_t at)
{
	return arena_printf(site.arena,
	    "{\"eventType\":\"read_state_update\",\"contextType\":\"dm\","
	    "\"messageId\":\"rs\",\"federatedId\":\"%s\","
	    "\"encryptionVersion\":0,\"timestamp\":%" PRId64 ",\"readState\":{"
	    "\"user\":{\"homeUserId\":\"%s\",\"homeInstance\":\"%s\"},"
	    "\"messageRef\":{\"sourceInstance\":\"%s\",\"sourceMessageId\":"
	    "\"%s\"}}}",
	    federated_id, at, person, home, host, message);
}

/* Alice, at luna, has read a message of luna. */
static const char *alice_read(const char *message)
{
	return mark(arena_printf(site.arena, "%" PRId64, site.alice),
	    "https://nova.test", pair, "https://luna.test", message,
	    clock_wall_ms());
}

static void expect(const char *event, const char *answer)
{
	cr_expect_str_eq(relay_site_send(&site, event), answer);
}

/* What alice has read by now, by luna's names; NULL: nothing. */
static const char *reached(void)
{
	return relay_site_text(&site,
	    "SELECT string_agg(m.source_message_id, ' ') AS t"
	    " FROM read_states r JOIN dm_messages m"
	    " ON m.id = r.last_read_message_id JOIN users u"
	    " ON u.id = r.user_id WHERE u.username = 'alice'");
}

static int64_t count(const char *what)
{
	return relay_site_number(&site,
	    arena_printf(site.arena, "SELECT count(*) AS n FROM %s", what));
}

Test(read_state, moves_forward_only_whatever_order_it_comes_in)
{
	expect(alice_read("m2"), ACCEPTED("\"rs\""));
	cr_expect_str_eq(reached(), "m2");
	expect(alice_read("m1"), ACCEPTED("\"rs\""));
	expect(alice_read("m2"), ACCEPTED("\"rs\""));
	cr_expect_str_eq(reached(), "m2");
	cr_expect_eq(count("user_events WHERE kind = 'channel_ack'"), 1);
	/* In one batch, named alike and not. */
	cr_expect_str_eq(
	    relay_site_send(&site,
		arena_printf(site.arena, "%s,%s,%s", alice_read("m3"),
		    alice_read("m1"), alice_read("m3"))),
	    ACCEPTED("\"rs\",\"rs\",\"rs\""));
	cr_expect_str_eq(reached(), "m3");
	cr_expect_eq(count("user_events WHERE kind = 'channel_ack'"), 2);
	cr_expect_str_eq(
	    relay_site_text(&site,
		"SELECT string_agg((e.entity_id = c.id::text)::text, ' ')"
		" AS t FROM user_events e, dm_channels c"
		" WHERE kind = 'channel_ack'"),
	    "true true");
}

Test(read_state, what_came_late_is_unread_although_it_is_old)
{
	/* Written before m3, here after it: arrival counts. */
	relay_site_send(&site, relay_site_create(&site, "late", "late"));
	test_db_script(site.conninfo,
	    "UPDATE dm_messages SET created_at = created_at - interval '5 "
	    "minutes' WHERE source_message_id = 'late'");
	expect(alice_read("late"), ACCEPTED("\"rs\""));
	expect(alice_read("m3"), ACCEPTED("\"rs\""));
	cr_expect_str_eq(reached(), "late");
	/* The last that is shown is not beyond what was read. */
	cr_expect_eq(
	    relay_site_number(&site,
		"SELECT count(*) AS n FROM read_states r CROSS JOIN LATERAL ("
		"SELECT id FROM dm_messages m WHERE dm_channel_id ="
		" r.channel_id ORDER BY created_at DESC, id DESC LIMIT 1) l"
		" WHERE l.id <= r.last_read_message_id"),
	    1);
}

Test(read_state, names_that_are_unknown_or_of_elsewhere_move_nothing)
{
	/* zed writes to bob, too. */
	test_db_script(site.conninfo,
	    "INSERT INTO dm_channels (pair_low, pair_high, federated_id)"
	    " SELECT least(a.id, b.id), greatest(a.id, b.id), 'other'"
	    " FROM users a, users b WHERE a.username = 'bob'"
	    " AND b.home_user_id = '700';"
	    "INSERT INTO dm_messages (dm_channel_id, user_id,"
	    " source_instance, source_message_id) SELECT c.id, u.id,"
	    " 'https://luna.test', 'b1' FROM dm_channels c, users u"
	    " WHERE c.federated_id = 'other' AND u.home_user_id = '700'");
	expect(alice_read("b1"), REJECTED("rs", "invalid_read_state"));
	expect(alice_read("99"), ACCEPTED("\"rs\""));
	expect(alice_read("9223372036854775807"), ACCEPTED("\"rs\""));
	expect(mark(arena_printf(site.arena, "%" PRId64, site.alice),
		   "nova.test", "nowhere", "https://luna.test", "m1", 1),
	    ACCEPTED("\"rs\""));
	/* The pair of bob and zed is none of alice's. */
	expect(mark(arena_printf(site.arena, "%" PRId64, site.alice),
		   "nova.test", "other", "https://luna.test", "b1", 1),
	    ACCEPTED("\"rs\""));
	cr_expect_eq(count("read_states"), 0);
}

Test(read_state, both_forms_are_taken_and_a_form_without_place_is_not)
{
	expect(arena_printf(site.arena,
		   "{\"eventType\":\"read_state_update\",\"messageId\":\"rs\","
		   "\"federatedId\":\"%s\"}",
		   pair),
	    ACCEPTED("\"rs\""));
	expect("{\"eventType\":\"read_state_update\",\"messageId\":\"rs\"}",
	    REJECTED("rs", "missing_read_state_payload"));
	expect(arena_printf(site.arena,
		   "{\"eventType\":\"read_state_update\",\"messageId\":\"rs\","
		   "\"federatedId\":\"%s\",\"readState\":{\"user\":{"
		   "\"homeUserId\":\"1\",\"homeInstance\":\"luna.test\"}}}",
		   pair),
	    REJECTED("rs", "missing_read_state_payload"));
	expect(arena_printf(site.arena,
		   "{\"eventType\":\"read_state_update\",\"messageId\":\"rs\","
		   "\"federatedId\":\"%s\",\"readState\":{\"user\":{"
		   "\"homeUserId\":\"%" PRId64
		   "\",\"homeInstance\":\"nova.test\"},\"messageRef\":{"
		   "\"messageId\":\"m2\",\"sourceInstance\":null}}}",
		   pair, site.alice),
	    ACCEPTED("\"rs\""));
	cr_expect_str_eq(reached(), "m2");
}

Test(read_state, only_their_own_nodes_speak_for_people)
{
	struct peer orbit = relay_site_peer(&site, "orbit.test");

	cr_expect_str_eq(
	    relay_site_apply(&site, site.conn, &orbit, alice_read("m1"), false),
	    REJECTED("rs", "attribution_mismatch"), "no account there");
	expect(mark("5", "orbit.test", pair, "https://luna.test", "m1", 1),
	    REJECTED("rs", "attribution_mismatch"));
	/* Of a stub nothing is kept: he reads at home. */
	expect(mark("700", "luna.test", pair, "https://luna.test", "m1", 1),
	    ACCEPTED("\"rs\""));
	cr_expect_eq(count("read_states"), 0);
	test_db_script(site.conninfo,
	    "UPDATE users SET password_hash = 'x' WHERE home_user_id = '700'");
	expect(mark("700", "luna.test", pair, "https://luna.test", "m1", 1),
	    ACCEPTED("\"rs\""));
	cr_expect_eq(count("read_states"), 1);
}

Test(read_state, from_one_of_our_people_it_goes_on_to_his_other_nodes)
{
	relay_site_peer(&site, "orbit.test");
	relay_site_peer(&site, "moon.test");
	alice_is_at(AT("luna.test") "," AT("orbit.test"));
	expect(alice_read("m2"), ACCEPTED("\"rs\""));
	expect(alice_read("m1"), ACCEPTED("\"rs\""));
	expect(alice_read("m2"), ACCEPTED("\"rs\""));
	cr_expect_str_eq(
	    relay_site_text(&site,
		"SELECT string_agg(p.host || ' ' || o.event_type || ' ' ||"
		" (('{' || o.payload || '}')::json #>>"
		" '{readState,messageRef,sourceMessageId}'), ', ') AS t"
		" FROM federation_outbox o JOIN federation_peers p"
		" ON p.id = o.peer_id"),
	    "orbit.test read_state_update m2");
}

/* ---- through HTTP ---- */

struct api {
	struct test_node *node;
	struct arena *arena;
	struct test_person alice;
	struct test_person bob;
	struct test_person carol;
	const char *channel;
	const char *messages[3];
};

static struct api api;

static struct test_reply call(const struct test_person *who, const char *verb,
    const char *channel, const char *message)
{
	return test_post(api.arena, api.node->port,
	    arena_printf(api.arena, "/api/dm/%s/%s", channel, verb), who->token,
	    arena_printf(api.arena, "{\"messageId\":\"%s\"}", message));
}

static const char *channel_with(const struct test_person *other)
{
	struct test_reply reply =
	    test_post(api.arena, api.node->port, "/api/dm", api.alice.token,
		arena_printf(api.arena, "{\"userId\":\"%s\"}", other->id));

	return test_text(api.arena, &reply, "id");
}

static const char *write_to(const char *channel)
{
	struct test_reply reply = test_post(api.arena, api.node->port,
	    arena_printf(api.arena, "/api/dm/%s/messages", channel),
	    api.alice.token, "{\"content\":\"hello\"}");

	cr_assert_eq(reply.status, 201, "%s", reply.body);
	return test_text(api.arena, &reply, "id");
}

static void api_begin(void)
{
	test_db_needed();
	api = (struct api){ .arena = arena_new() };
	api.node = test_node_new("nova.localhost");
	test_frontd(api.node, NULL);
	api.alice = test_person(api.node, api.node->port, "alice");
	api.bob = test_person(api.node, api.node->port, "bob");
	api.carol = test_person(api.node, api.node->port, "carol");
	api.channel = channel_with(&api.bob);
	for (size_t i = 0; i < COUNT(api.messages); i++)
		api.messages[i] = write_to(api.channel);
}

static void api_end(void)
{
	test_node_free(&api.node);
	if (api.arena)
		arena_free(&api.arena);
}

TestSuite(read_state_api, .init = api_begin, .fini = api_end, .timeout = 300);

static void expect_reached(const struct test_person *who, const char *message)
{
	struct test_reply reply = test_get(
	    api.arena, api.node->port, "/api/dm/read-states", who->token);

	cr_assert_eq(reply.status, 200, "%s", reply.body);
	if (!message) {
		cr_expect_str_eq(reply.body, "[]");
		return;
	}
	cr_expect_str_eq(reply.body,
	    arena_printf(api.arena,
		"[{\"channelId\":\"%s\",\"lastReadMessageId\":\"%s\"}]",
		api.channel, message));
}

static int64_t told(const char *kind)
{
	return test_db_number(api.node->database,
	    arena_printf(api.arena,
		"SELECT count(*) AS n FROM user_events WHERE kind = '%s'",
		kind));
}

Test(read_state_api, a_delayed_call_takes_nothing_back)
{
	struct test_reply reply =
	    call(&api.bob, "ack", api.channel, api.messages[1]);

	cr_expect_eq(reply.status, 200, "%s", reply.body);
	reply = call(&api.bob, "ack", api.channel, api.messages[0]);
	cr_expect_eq(reply.status, 200);
	cr_expect_str_eq(
	    test_text(api.arena, &reply, "messageId"), api.messages[1]);
	expect_reached(&api.bob, api.messages[1]);
	expect_reached(&api.alice, NULL);
	cr_expect_eq(told("channel_ack"), 1);
}

Test(read_state_api, what_is_not_there_or_of_elsewhere_is_refused)
{
	static const char *const bad[] = { "", "0", "x", "-1",
		"99999999999999999999" };
	const char *other = write_to(channel_with(&api.carol));

	cr_expect_eq(call(&api.bob, "ack", api.channel, other).status, 404);
	cr_expect_eq(call(&api.bob, "ack", api.channel, "99").status, 404);
	cr_expect_eq(
	    call(&api.bob, "ack", api.channel, "9223372036854775807").status,
	    404);
	cr_expect_eq(
	    call(&api.carol, "ack", api.channel, api.messages[0]).status, 403);
	cr_expect_eq(
	    call(&api.carol, "mark-unread", api.channel, "0").status, 403);
	cr_expect_eq(
	    call(&api.bob, "mark-unread", api.channel, other).status, 404);
	for (size_t i = 0; i < COUNT(bad); i++)
		cr_expect_eq(call(&api.bob, "ack", api.channel, bad[i]).status,
		    400, "%s", bad[i]);
	cr_expect_eq(
	    call(&api.bob, "mark-unread", api.channel, "x").status, 400);
	expect_reached(&api.bob, NULL);
	cr_expect_eq(told("channel_ack") + told("mark_unread"), 0);
}

Test(read_state_api, a_deleted_message_leaves_the_mark_in_place)
{
	call(&api.bob, "ack", api.channel, api.messages[2]);
	test_delete(api.arena, api.node->port,
	    arena_printf(api.arena, "/api/dm/messages/%s", api.messages[2]),
	    api.alice.token);
	expect_reached(&api.bob, api.messages[2]);
	call(&api.bob, "ack", api.channel, api.messages[1]);
	expect_reached(&api.bob, api.messages[2]);
	api.messages[0] = write_to(api.channel);
	call(&api.bob, "ack", api.channel, api.messages[0]);
	expect_reached(&api.bob, api.messages[0]);
}

Test(read_state_api, marking_unread_goes_back_and_a_later_ack_forward)
{
	call(&api.bob, "ack", api.channel, api.messages[2]);
	cr_expect_eq(
	    call(&api.bob, "mark-unread", api.channel, api.messages[0]).status,
	    200);
	expect_reached(&api.bob, api.messages[0]);
	cr_expect_eq(
	    call(&api.bob, "mark-unread", api.channel, "0").status, 200);
	expect_reached(&api.bob, NULL);
	cr_expect_eq(told("mark_unread"), 2);
	call(&api.bob, "ack", api.channel, api.messages[1]);
	expect_reached(&api.bob, api.messages[1]);
}

/* ---- what is sent, and to whom ---- */

static const char *outbox(void)
{
	return test_db_text(api.arena, api.node->database,
	    "SELECT string_agg(p.host || ' ' || o.event_type, ', '"
	    " ORDER BY p.host, o.id) AS t FROM federation_outbox o"
	    " JOIN federation_peers p ON p.id = o.peer_id"
	    " WHERE o.event_type LIKE 'read%'");
}

Test(read_state_api, only_a_persons_own_nodes_are_told_and_only_of_progress)
{
	test_db_script(api.node->database,
	    "INSERT INTO federation_peers (origin, host, status, hmac_secret)"
	    " VALUES ('https://luna.test', 'luna.test', 'active', 'x'),"
	    " ('https://moon.test', 'moon.test', 'active', 'x');"
	    "UPDATE users SET replicated_instances = '[{\"origin\":"
	    "\"https://luna.test\",\"username\":\"a\"}]'"
	    " WHERE username = 'alice'");
	call(&api.bob, "ack", api.channel, api.messages[2]);
	cr_expect_null(outbox(), "what bob reads is no business of luna's");
	call(&api.alice, "ack", api.channel, api.messages[1]);
	call(&api.alice, "ack", api.channel, api.messages[0]);
	call(&api.alice, "ack", api.channel, api.messages[1]);
	call(&api.alice, "mark-unread", api.channel, "0");
	cr_expect_str_eq(outbox(), "luna.test read_state_update");
	/* An account of elsewhere: its home. */
	test_db_script(api.node->database,
	    "UPDATE users SET home_instance = 'moon.test', home_user_id = '5'"
	    " WHERE username = 'bob'; DELETE FROM read_states");
	call(&api.bob, "ack", api.channel, api.messages[2]);
	cr_expect_str_eq(outbox(),
	    "luna.test read_state_update, moon.test read_state_update");
	cr_expect_eq(test_db_number(api.node->database,
			 "SELECT count(*) AS n FROM federation_mutation_log"
			 " WHERE mutation_type = 'read_state_update'"),
	    2, "nor can anybody ask for it later");
}

/* ---- at once ---- */

enum { DEVICES = 6 };

struct device {
	pthread_t thread;
	struct arena *arena;
	int first;
	int bad;
};

static void *device_run(void *arg)
{
	struct device *device = arg;

	for (int i = 0; i < 12; i++) {
		const char *message = api.messages[(device->first + i) %
		    (int)COUNT(api.messages)];
		struct test_reply reply = test_post(device->arena,
		    api.node->port,
		    arena_printf(device->arena, "/api/dm/%s/ack", api.channel),
		    api.bob.token,
		    arena_printf(
			device->arena, "{\"messageId\":\"%s\"}", message));

		device->bad += reply.status != 200 ||
		    strcmp(test_text(device->arena, &reply, "messageId"),
			message) < 0;
	}
	return NULL;
}

Test(read_state_api, many_devices_at_once_end_at_the_newest)
{
	struct device devices[DEVICES];

	for (int i = 0; i < DEVICES; i++) {
		devices[i] =
		    (struct device){ .arena = arena_new(), .first = i };
		cr_assert_eq(pthread_create(&devices[i].thread, NULL,
				 device_run, &devices[i]),
		    0);
	}
	for (int i = 0; i < DEVICES; i++) {
		pthread_join(devices[i].thread, NULL);
		cr_expect_eq(devices[i].bad, 0);
		arena_free(&devices[i].arena);
	}
	expect_reached(&api.bob, api.messages[2]);
	cr_expect_leq(told("channel_ack"), 3);
}
