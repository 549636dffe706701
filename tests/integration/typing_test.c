/* Who types: shown at once, kept nowhere, told to those concerned only. */
#include <criterion/criterion.h>

#include "common/base/clock.h"
#include "common/pg/listen.h"
#include "common/pg/notify.h"
#include "tests/integration/relay_site.h"
#include "tests/lib/test_db.h"
#include "tests/lib/test_http.h"
#include "tests/lib/test_peer.h"
#include "tests/lib/test_trust.h"

enum { HEARD_MAX = 16, WAIT_MS = 5000 };

/* ---- what is shown: below HTTP ---- */

struct ear {
	struct loop *loop;
	struct listener *listener;
	struct loop_timer *timer;
	bool up;
	int count;
	int wanted;
	char heard[HEARD_MAX][256];
};

static struct relay_site site;
static struct notifier *notifier;
static struct conn *speaker;
static struct ear ear;
static const char *pair;

static void look(struct ear *e)
{
	if (e->up && e->count >= e->wanted)
		loop_stop(e->loop);
}

static void on_up(void *arg)
{
	struct ear *e = arg;

	e->up = true;
	look(e);
}

static void on_down(void *arg)
{
	(void)arg;
}

static void on_hint(void *arg, const char *channel, const char *payload)
{
	struct ear *e = arg;

	(void)channel;
	cr_assert(e->count < HEARD_MAX);
	snprintf(e->heard[e->count++], sizeof(e->heard[0]), "%s", payload);
	look(e);
}

static void too_late(void *arg)
{
	struct ear *e = arg;

	loop_stop(e->loop);
}

static void ear_wait(int count)
{
	ear.wanted = count;
	loop_timer_arm(ear.timer, WAIT_MS);
	if (!ear.up || ear.count < count)
		loop_run(ear.loop);
	loop_timer_disarm(ear.timer);
	cr_assert(
	    ear.up && ear.count >= count, "heard %d of %d", ear.count, count);
}

static void begin(void)
{
	static const char *const channels[] = { "postrider_ephemeral", NULL };
	struct conn_def def = { .application = "test/speaker",
		.signals_after = true,
		.statement_timeout_ms = 2000 };
	struct listener_def listen = { .application = "test/ear",
		.channels = channels,
		.on_up = on_up,
		.on_down = on_down,
		.hint = on_hint,
		.arg = &ear };

	test_db_needed();
	relay_site_begin(&site);
	relay_site_send(&site, relay_site_create(&site, "m1", "hello"));
	pair =
	    relay_site_text(&site, "SELECT federated_id AS t FROM dm_channels");
	def.conninfo = site.conninfo;
	speaker = conn_new(&def);
	notifier = notifier_new(site.conninfo, "test/notifier");
	conn_notifier_set(speaker, notifier);
	listen.conninfo = site.conninfo;
	ear = (struct ear){ .loop = loop_new() };
	ear.timer = loop_timer_new(ear.loop, too_late, &ear);
	ear.listener = listener_new(ear.loop, &listen);
	ear_wait(0);
}

static void end(void)
{
	if (!site.arena)
		return;
	listener_free(&ear.listener);
	loop_timer_free(&ear.timer);
	loop_free(&ear.loop);
	conn_free(&speaker);
	notifier_free(&notifier);
	relay_site_end(&site);
}

TestSuite(typing, .init = begin, .fini = end, .timeout = 300);

#define ACCEPTED(ids) \
	"{\"accepted\":[" ids "],\"rejected\":[],\"maxUploadSize\":7340032}"
#define REJECTED(id, why) \
	"{\"accepted\":[],\"rejected\":[{\"messageId\":\"" id \
	"\",\"reason\":\"" why "\"}],\"maxUploadSize\":7340032}"

static const char *typing(const char *what, const char *person,
    const char *home, const char *federated_id)
{
	return arena_printf(site.arena,
	    "{\"eventType\":\"dm_typing_%s\",\"contextType\":\"dm\","
	    "\"messageId\":\"t\",\"federatedId\":\"%s\",\"participants\":[],"
	    "\"encryptionVersion\":0,\"timestamp\":1,\"typing\":{"
	    "\"homeUserId\":\"%s\",\"homeInstance\":\"%s\",\"username\":"
	    "\"zed\"}}",
	    what, federated_id, person, home);
}

static void expect(const char *event, const char *answer)
{
	cr_expect_str_eq(
	    relay_site_apply(&site, speaker, &site.luna, event, false), answer);
}

/* The last of a series: what came before it has been heard, too. */
static void fence(void)
{
	AUTO(tx_end) struct tx *tx = tx_new(speaker, site.arena);
	struct err err = { 0 };

	signal_ephemeral(tx, 1, 1, "fence");
	cr_assert(tx_commit(tx, &err));
}

static const char *shown(const char *format)
{
	return relay_site_text(&site,
	    arena_printf(site.arena,
		"SELECT format('%s', c.id, u.id) AS t FROM dm_channels c,"
		" users u WHERE u.home_user_id = '700'",
		format));
}

Test(typing, is_shown_while_the_conversation_is_locked)
{
	struct conn *other = test_db_conn(site.conninfo);
	AUTO(tx_end) struct tx *tx = tx_new(other, site.arena);
	static const struct stmt lock = { "lock",
		"SELECT id FROM dm_channels FOR UPDATE", SQL_MANY, 0 };
	struct err err = { 0 };

	cr_assert(sql_many(tx, &lock, NULL, NULL, &err), "%s", err.text);
	expect(typing("start", "700", "luna.test", pair), ACCEPTED("\"t\""));
	ear_wait(1);
	expect(typing("stop", "700", "https://luna.test", pair),
	    ACCEPTED("\"t\""));
	ear_wait(2);
	cr_expect_str_eq(ear.heard[0],
	    shown("{\"kind\":\"dm_typing\",\"conversation\":\"%s\",\"user\":"
		  "\"%s\",\"username\":\"zed\"}"));
	cr_expect_str_eq(ear.heard[1],
	    shown("{\"kind\":\"dm_typing_stop\",\"conversation\":\"%s\","
		  "\"user\":\"%s\"}"));
	tx_end(&tx);
	conn_free(&other);
}

Test(typing, of_unknown_people_and_conversations_nothing_is_shown_or_made)
{
	expect(typing("start", "799", "luna.test", pair), ACCEPTED("\"t\""));
	expect(
	    typing("start", "700", "luna.test", "nowhere"), ACCEPTED("\"t\""));
	expect("{\"eventType\":\"dm_typing_start\",\"messageId\":\"t\","
	       "\"typing\":{\"homeUserId\":\"700\",\"homeInstance\":"
	       "\"luna.test\"}}",
	    ACCEPTED("\"t\""));
	fence();
	ear_wait(1);
	cr_expect_str_eq(ear.heard[0], "fence");
	cr_expect_eq(
	    relay_site_number(&site, "SELECT count(*) AS n FROM users"), 3);
	cr_expect_eq(
	    relay_site_number(&site, "SELECT count(*) AS n FROM dm_channels"),
	    1);
	cr_expect_eq(relay_site_number(&site,
			 "SELECT count(*) AS n FROM conversation_events"
			 " WHERE kind LIKE '%typing%'"),
	    0);
}

Test(typing, nobody_types_for_another)
{
	const char *alice = arena_printf(site.arena, "%" PRId64, site.alice);

	expect(typing("start", "5", "orbit.test", pair),
	    REJECTED("t", "attribution_mismatch"));
	expect(typing("stop", "700", "luna.test.evil.test", pair),
	    REJECTED("t", "attribution_mismatch"));
	expect(typing("start", alice, "nova.test", pair),
	    REJECTED("t", "attribution_mismatch"));
	test_db_script(site.conninfo,
	    "UPDATE users SET replicated_instances = '[{\"origin\":"
	    "\"https://luna.test\",\"username\":\"a\"}]' "
	    "WHERE username = 'alice'");
	expect(typing("start", alice, "nova.test", pair), ACCEPTED("\"t\""));
	expect(typing("start", arena_printf(site.arena, "%" PRId64, site.bob),
		   "nova.test", pair),
	    REJECTED("t", "attribution_mismatch"));
	fence();
	ear_wait(2);
	cr_expect(strstr(ear.heard[0], alice));
	cr_expect_str_eq(ear.heard[1], "fence");
}

/* Beside durable events it is taken with them. */
Test(typing, may_share_a_batch_with_messages)
{
	cr_expect_str_eq(relay_site_apply(&site, speaker, &site.luna,
			     arena_printf(site.arena, "%s,%s,%s",
				 typing("stop", "700", "luna.test", pair),
				 relay_site_create(&site, "m2", "done"),
				 typing("start", "700", "luna.test", pair)),
			     false),
	    ACCEPTED("\"t\",\"m2\",\"t\""));
	ear_wait(1);
	cr_expect(strstr(ear.heard[0], "\"dm_typing\""));
}

/* ---- what is told: with real daemons ---- */

#define RELAY "/api/federation/relay"
static const char bob_id[] = "310000000000000777";

static struct world *nova;
static struct test_peer *luna;
static struct test_person alice;
static const char *channel;

static const char *open_channel(const char *json)
{
	struct test_reply reply = test_post(
	    nova->arena, nova->node->port, "/api/dm", alice.token, json);

	cr_assert_eq(reply.status, 201, "%s", reply.body);
	return test_text(nova->arena, &reply, "id");
}

static void told_begin(void)
{
	struct test_reply reply;

	test_db_needed();
	nova = world_new("nova.localhost", "open", NULL);
	luna = test_peer_new("luna.localhost", NULL, NULL);
	reply = world_initiate(nova, test_peer_origin(luna));
	cr_assert_eq(reply.status, 200, "%s", reply.body);
	alice = test_person(nova->node, nova->node->port, "alice");
	channel = open_channel(arena_printf(nova->arena,
	    "{\"homeUserId\":\"%s\",\"homeInstance\":\"luna.localhost\"}",
	    bob_id));
}

static void told_end(void)
{
	world_free(&nova);
	test_peer_free(&luna);
}

TestSuite(typing_told, .init = told_begin, .fini = told_end, .timeout = 300);

static int say(const char *conversation, const char *json)
{
	return test_post(nova->arena, nova->node->port,
	    arena_printf(nova->arena, "/api/dm/%s/typing", conversation),
	    alice.token, json)
	    .status;
}

static void write_message(void)
{
	struct test_reply reply = test_post(nova->arena, nova->node->port,
	    arena_printf(nova->arena, "/api/dm/%s/messages", channel),
	    alice.token, "{\"content\":\"hello\"}");

	cr_assert_eq(reply.status, 201, "%s", reply.body);
}

static int64_t asked(void)
{
	return test_db_number(nova->node->database,
	    "SELECT count(*) AS n FROM s2s_requests WHERE ephemeral");
}

/* The event types of the first count requests, in the order they came. */
static const char *told(size_t count)
{
	const char *all = "";

	cr_assert(test_peer_got(luna, RELAY, count, test_patience_ms(10000)),
	    "%zu did not come", count);
	for (size_t i = 0; i < count; i++) {
		struct test_peer_request request =
		    test_peer_nth(luna, RELAY, i);
		const char *type =
		    strstr(request.body.data, "\"eventType\":\"");

		cr_assert_not_null(type);
		type += strlen("\"eventType\":\"");
		all = arena_printf(nova->arena, "%s%.*s ", all,
		    (int)strcspn(type, "\""), type);
	}
	return all;
}

Test(typing_told, a_start_and_its_stop_reach_the_node_concerned)
{
	cr_expect_eq(say(channel, NULL), 200);
	cr_expect_str_eq(told(1), "dm_typing_start ");
	cr_expect_eq(say(channel, "{\"typing\":false}"), 200);
	cr_expect_str_eq(told(2), "dm_typing_start dm_typing_stop ");
	cr_expect_eq(say(channel, "{\"typing\":false}"), 200);
	cr_expect_eq(asked(), 2, "a second stop ends nothing");
}

Test(typing_told, a_message_ends_it_and_costs_nothing_otherwise)
{
	write_message();
	cr_expect_eq(asked(), 0);
	cr_expect_str_eq(told(1), "create ");
	cr_expect_eq(say(channel, "{\"typing\":true}"), 200);
	cr_expect_str_eq(told(2), "create dm_typing_start ");
	write_message();
	write_message();
	cr_expect_eq(asked(), 2);
	cr_assert(test_peer_got(luna, RELAY, 4, test_patience_ms(10000)));
	cr_expect_eq(test_db_number(nova->node->database,
			 "SELECT count(*) AS n FROM s2s_requests WHERE"
			 " convert_from(body, 'UTF8') LIKE '%dm_typing_stop%'"),
	    1);
}

Test(typing_told, starts_in_a_row_are_one)
{
	cr_expect_eq(say(channel, NULL), 200);
	cr_expect_eq(asked(), 1);
	test_db_script(nova->node->database,
	    "DELETE FROM s2s_requests; UPDATE typing_told SET told_at = now()"
	    " + interval '1 hour'");
	cr_expect_eq(say(channel, NULL), 200);
	cr_expect_eq(asked(), 0);
	test_db_script(nova->node->database,
	    "UPDATE typing_told SET told_at = now() - interval '1 minute'");
	cr_expect_eq(say(channel, NULL), 200);
	cr_expect_eq(asked(), 1);
	test_db_script(nova->node->database,
	    "UPDATE typing_told SET told_at = now() - interval '1 minute'");
	cr_expect_eq(say(channel, "{\"typing\":false}"), 200);
	write_message();
	cr_expect_eq(asked(), 1, "nobody shows it any more");
}

Test(typing_told, strangers_and_locals_ask_nobody)
{
	struct test_person carol =
	    test_person(nova->node, nova->node->port, "carol");
	const char *local = open_channel(
	    arena_printf(nova->arena, "{\"userId\":\"%s\"}", carol.id));

	cr_expect_eq(say(local, NULL), 200);
	cr_expect_eq(say("99", NULL), 403);
	cr_expect_eq(say(channel, "{\"typing\":1}"), 400);
	alice = carol;
	cr_expect_eq(say(channel, NULL), 403);
	cr_expect_eq(asked(), 0);
}

Test(typing_told, a_closed_relay_and_a_revoked_peer_hear_nothing)
{
	test_db_script(nova->node->database,
	    "UPDATE instance_settings SET federation_relay_enabled = false");
	cr_expect_eq(say(channel, NULL), 200);
	test_db_script(nova->node->database,
	    "DELETE FROM typing_told;"
	    "UPDATE instance_settings SET federation_relay_enabled = true;"
	    "UPDATE federation_peers SET status = 'revoked'");
	cr_expect_eq(say(channel, NULL), 200);
	cr_expect_eq(asked(), 0);
}
