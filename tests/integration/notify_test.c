#include <criterion/criterion.h>

#include "common/base/clock.h"
#include "common/pg/listen.h"
#include "common/pg/notify.h"
#include "tests/lib/test_db.h"

enum { HEARD_MAX = 64, WAIT_MS = 5000 };

/* ---- a listener that writes down what it hears ---- */

struct ear {
	struct loop *loop;
	struct listener *listener;
	struct loop_timer *timer;
	int ups;
	int downs;
	int count;
	int want_ups; /* the loop stops when all that is wanted is there */
	int want_count;
	char heard[HEARD_MAX][120];
};

static char *database;
static struct conn *conn;
static struct arena *arena;
static struct notifier *notifier;
static struct ear ear;

static void look(struct ear *e)
{
	if (e->ups >= e->want_ups && e->count >= e->want_count)
		loop_stop(e->loop);
}

static void on_up(void *arg)
{
	struct ear *e = arg;

	e->ups++;
	look(e);
}

static void on_down(void *arg)
{
	struct ear *e = arg;

	e->downs++;
}

static void on_hint(void *arg, const char *channel, const char *payload)
{
	struct ear *e = arg;

	cr_assert(e->count < HEARD_MAX);
	snprintf(e->heard[e->count++], sizeof(e->heard[0]), "%s %s", channel,
	    payload);
	look(e);
}

static void too_late(void *arg)
{
	struct ear *e = arg;

	loop_stop(e->loop);
}

static void ear_open(struct ear *e, int64_t lock_key)
{
	static const char *const channels[] = { "postrider_conversation",
		"postrider_user", "postrider_outbox", "postrider_activity",
		"postrider_files", "postrider_request", "postrider_reply",
		"postrider_control", "postrider_ephemeral", NULL };
	const struct listener_def def = { .conninfo = database,
		.application = "test/ear",
		.channels = channels,
		.lock_key = lock_key,
		.on_up = on_up,
		.on_down = on_down,
		.hint = on_hint,
		.arg = e };

	memset(e, 0, sizeof(*e));
	e->loop = loop_new();
	e->timer = loop_timer_new(e->loop, too_late, e);
	e->listener = listener_new(e->loop, &def);
}

static void ear_close(struct ear *e)
{
	listener_free(&e->listener);
	loop_timer_free(&e->timer);
	loop_free(&e->loop);
}

/* Runs until it has come up so often and heard so many, or too late. */
static void ear_wait(struct ear *e, int ups, int count)
{
	e->want_ups = ups;
	e->want_count = count;
	loop_timer_arm(e->timer, WAIT_MS);
	if (e->ups < ups || e->count < count)
		loop_run(e->loop);
	loop_timer_disarm(e->timer);
	cr_assert(e->ups >= ups && e->count >= count, "up %d times, heard %d",
	    e->ups, e->count);
}

static bool heard(const struct ear *e, const char *line)
{
	for (int i = 0; i < e->count; i++)
		if (strcmp(e->heard[i], line) == 0)
			return true;
	return false;
}

static void set_up(void)
{
	struct conn_def def = { .application = "test/writer",
		.signals_after = true };

	test_db_needed();
	database = test_db_create();
	def.conninfo = database;
	conn = conn_new(&def);
	arena = arena_new();
	notifier = notifier_new(database, "test/notifier");
	conn_notifier_set(conn, notifier);
	ear_open(&ear, 0);
	ear_wait(&ear, 1, 0);
}

static void tear_down(void)
{
	ear_close(&ear);
	conn_free(&conn);
	notifier_free(&notifier);
	arena_free(&arena);
	test_db_drop(&database);
}

TestSuite(notify, .init = set_up, .fini = tear_down);
TestSuite(listen, .init = set_up, .fini = tear_down);

static void terminate(const char *application)
{
	char script[200];

	snprintf(script, sizeof(script),
	    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
	    " WHERE application_name = '%s' AND datname = current_database()",
	    application);
	test_db_script(database, script);
}

/* ---- signals after commit ---- */

Test(notify, every_signal_has_its_channel_and_payload)
{
	AUTO(tx_end) struct tx *tx = tx_new(conn, arena);
	struct err err = { 0 };

	signal_conversation(tx, 9007199254740993, 12);
	signal_user(tx, 5, 6);
	signal_outbox(tx);
	signal_activity(tx);
	signal_files(tx);
	signal_request(tx, 77);
	signal_reply(tx, 78);
	signal_control(tx, "settings");
	signal_ephemeral(tx, 79, 80, "{\"kind\":\"x\"}");
	cr_assert(tx_commit(tx, &err));
	ear_wait(&ear, 1, 9);
	cr_expect(heard(&ear,
	    "postrider_conversation {\"c\":\"9007199254740993\",\"s\":12}"));
	cr_expect(heard(&ear, "postrider_user {\"u\":\"5\",\"s\":6}"));
	cr_expect(heard(&ear, "postrider_outbox "));
	cr_expect(heard(&ear, "postrider_activity "));
	cr_expect(heard(&ear, "postrider_files "));
	cr_expect(heard(&ear, "postrider_request 77"));
	cr_expect(heard(&ear, "postrider_reply 78"));
	cr_expect(heard(&ear, "postrider_control settings"));
	cr_expect(heard(&ear, "postrider_ephemeral {\"kind\":\"x\"}"));
}

Test(notify, the_latest_of_what_passes_wins)
{
	AUTO(tx_end) struct tx *tx = tx_new(conn, arena);
	struct err err = { 0 };

	signal_ephemeral(tx, 1, 2, "starts");
	signal_ephemeral(tx, 1, 3, "another");
	signal_ephemeral(tx, 1, 2, "stops");
	cr_assert(tx_commit(tx, &err));
	ear_wait(&ear, 1, 2);
	cr_expect(heard(&ear, "postrider_ephemeral stops"));
	cr_expect(heard(&ear, "postrider_ephemeral another"));
	cr_expect(!heard(&ear, "postrider_ephemeral starts"));
}

Test(notify, the_highest_seq_of_a_key_wins)
{
	AUTO(tx_end) struct tx *tx = tx_new(conn, arena);
	struct err err = { 0 };

	signal_conversation(tx, 1, 3);
	signal_conversation(tx, 1, 5);
	signal_conversation(tx, 1, 4);
	signal_conversation(tx, 2, 1);
	signal_outbox(tx);
	signal_outbox(tx);
	cr_assert(tx_commit(tx, &err));
	ear_wait(&ear, 1, 3);
	cr_expect(heard(&ear, "postrider_conversation {\"c\":\"1\",\"s\":5}"));
	cr_expect(heard(&ear, "postrider_conversation {\"c\":\"2\",\"s\":1}"));
	cr_expect_eq(ear.count, 3);
}

Test(notify, a_rollback_signals_nothing)
{
	AUTO(tx_end) struct tx *tx = tx_new(conn, arena);
	struct err err = { 0 };

	signal_user(tx, 1, 1);
	tx_rollback(tx);
	signal_user(tx, 2, 2);
	cr_assert(tx_commit(tx, &err));
	ear_wait(&ear, 1, 1);
	cr_expect_str_eq(ear.heard[0], "postrider_user {\"u\":\"2\",\"s\":2}");
}

Test(notify, a_dead_connection_is_replaced)
{
	AUTO(tx_end) struct tx *tx = tx_new(conn, arena);
	struct err err = { 0 };

	signal_user(tx, 1, 1);
	cr_assert(tx_commit(tx, &err));
	ear_wait(&ear, 1, 1);
	terminate("test/notifier");
	signal_user(tx, 1, 2);
	cr_assert(tx_commit(tx, &err));
	ear_wait(&ear, 1, 2);
	cr_expect_str_eq(ear.heard[1], "postrider_user {\"u\":\"1\",\"s\":2}");
}

/* What the notifier's own connection could not send was heard: it left behind
 * the commit, whether a statement took that along or not. */
Test(notify, a_signal_leaves_behind_its_commit)
{
	static const struct stmt any = { "any", "SELECT 1", SQL_NONE, 0 };
	const struct conn_def def = { .conninfo = database,
		.application = "test/rider",
		.signals_after = true };
	AUTO(conn_free) struct conn *rider = conn_new(&def);
	struct notifier *mute = notifier_new("host=/nowhere", "test/mute");
	AUTO(tx_end) struct tx *tx = NULL;
	struct err err = { 0 };

	conn_notifier_set(rider, mute);
	tx = tx_new(rider, arena);
	cr_assert(sql_none(tx, &any, &err));
	signal_outbox_peer(tx, 7);
	cr_assert(tx_commit(tx, &err));
	ear_wait(&ear, 1, 1);
	cr_expect_str_eq(ear.heard[0], "postrider_outbox 7");
	/* The next one rides too only a millisecond later. */
	clock_shift_ms(1);
	signal_outbox_peer(tx, 8);
	tx_closing(tx);
	cr_assert(sql_none(tx, &any, &err) && tx_commit(tx, &err));
	ear_wait(&ear, 1, 2);
	cr_expect_str_eq(ear.heard[1], "postrider_outbox 8");
	/* Dead with an answer that nobody has read: replaced unseen. */
	terminate("test/rider");
	cr_assert(
	    sql_none(tx, &any, &err) && tx_commit(tx, &err), "%s", err.text);
	notifier_free(&mute);
}

Test(notify, the_end_sends_what_is_left)
{
	AUTO(tx_end) struct tx *tx = tx_new(conn, arena);
	struct err err = { 0 };

	for (int64_t user = 1; user <= 20; user++)
		signal_user(tx, user, 1);
	cr_assert(tx_commit(tx, &err));
	notifier_free(&notifier);
	ear_wait(&ear, 1, 20);
}

/* The triggers serve whoever does not signal by himself. */
Test(notify, other_writers_are_served_by_triggers)
{
	const struct {
		const char *script;
		const char *line;
	} cases[] = {
		{ "INSERT INTO users (id, username, password_hash)"
		  " VALUES (7, 'ada', 'x');"
		  "INSERT INTO user_events (user_id, seq, kind)"
		  " VALUES (7, 1, 'k'), (7, 2, 'k')",
		    "postrider_user {\"u\":\"7\",\"s\":2}" },
		{ "INSERT INTO dm_channels (id, pair_low, pair_high)"
		  " VALUES (8, 7, 7);"
		  "INSERT INTO conversation_events"
		  " (conversation_id, seq, kind) VALUES (8, 4, 'k')",
		    "postrider_conversation {\"c\":\"8\",\"s\":4}" },
		{ "INSERT INTO federation_outbox (peer_id, context_type,"
		  " context_id, event_type, entity_id, payload, expires_at)"
		  " VALUES (1, 'dm', '1', 'create', '1', '', now())",
		    "postrider_outbox " },
		{ "SELECT fediverse_enqueue('https://a.test/1', '{}',"
		  " 'https://b.test/inbox', transport => 'noop')",
		    "postrider_activity " },
		{ "UPDATE instance_settings SET instance_name = 'N'",
		    "postrider_control settings" },
		/* Of a peer only what changed. */
		{ "INSERT INTO federation_peers (id, origin, host, status,"
		  " hmac_secret) VALUES (9, 'https://a.test', 'a.test',"
		  " 'active', 'x');"
		  "UPDATE federation_peers SET status = 'active';"
		  "UPDATE federation_peers SET status = 'revoked' WHERE false;"
		  "UPDATE federation_peers SET transport_failures = 3;"
		  "UPDATE instance_settings SET instance_name = 'M'",
		    "postrider_control settings" },
		{ "UPDATE federation_peers SET paused_until = now()",
		    "postrider_control peer" },
		{ "UPDATE federation_peers SET pending_hmac_secret = 'y',"
		  " secret_rotation_at = now()",
		    "postrider_control peer" },
		{ "UPDATE federation_peers SET secret_rotation_at ="
		  " now() - interval '1 hour'",
		    "postrider_control peer" },
	};

	for (int i = 0; i < (int)COUNT(cases); i++) {
		test_db_script(database, cases[i].script);
		ear_wait(&ear, 1, i + 1);
		cr_expect_str_eq(ear.heard[i], cases[i].line);
	}
}

/* ---- the listener ---- */

Test(listen, a_lost_connection_comes_back_and_says_so)
{
	terminate("test/ear");
	ear_wait(&ear, 2, 0);
	cr_expect_eq(ear.downs, 1);
	cr_expect(listener_is_up(ear.listener));
	test_db_script(database, "NOTIFY postrider_control, 'again'");
	ear_wait(&ear, 2, 1);
	cr_expect_str_eq(ear.heard[0], "postrider_control again");
}

Test(listen, it_holds_its_lock_while_it_is_up)
{
	static const char held[] =
	    "SELECT NOT pg_try_advisory_xact_lock(4611686018427387905) AS b";
	struct ear holder;

	ear_open(&holder, 4611686018427387905);
	ear_wait(&holder, 1, 0);
	cr_expect(test_db_until(database, held, 0));
	ear_close(&holder);
	cr_expect(test_db_until(database,
	    "SELECT pg_try_advisory_xact_lock(4611686018427387905) AS b",
	    WAIT_MS));
}

Test(listen, a_second_holder_waits_for_the_first)
{
	struct ear first, second;

	ear_open(&first, 99);
	ear_wait(&first, 1, 0);
	ear_open(&second, 99);
	loop_timer_arm(second.timer, 100);
	second.want_ups = 1;
	loop_run(second.loop);
	cr_expect(!listener_is_up(second.listener));
	ear_close(&first);
	ear_wait(&second, 1, 0);
	ear_close(&second);
}

static void free_itself(
    void *arg, UNUSED const char *channel, UNUSED const char *payload)
{
	struct ear *e = arg;

	e->count++;
	listener_free(&e->listener);
	loop_stop(e->loop);
}

Test(listen, a_hint_may_free_its_listener)
{
	static const char *const channels[] = { "postrider_control", NULL };
	struct listener_def def = { .conninfo = database,
		.application = "test/short",
		.channels = channels,
		.on_up = on_up,
		.hint = free_itself };
	struct ear short_lived = { .want_ups = 1 };

	def.arg = &short_lived;
	short_lived.loop = loop_new();
	short_lived.timer =
	    loop_timer_new(short_lived.loop, too_late, &short_lived);
	short_lived.listener = listener_new(short_lived.loop, &def);
	ear_wait(&short_lived, 1, 0);
	test_db_script(database,
	    "NOTIFY postrider_control, '1'; NOTIFY postrider_control, '2'");
	ear_wait(&short_lived, 1, 1);
	cr_expect_eq(short_lived.count, 1);
	ear_close(&short_lived);
}

Test(listen, an_absent_database_is_tried_again)
{
	static const char *const channels[] = { "postrider_control", NULL };
	struct ear lost = { .want_ups = 1 };
	const struct listener_def def = { .conninfo = "host=/nowhere",
		.application = "test/lost",
		.channels = channels,
		.on_up = on_up,
		.on_down = on_down,
		.hint = on_hint,
		.arg = &lost };

	lost.loop = loop_new();
	lost.timer = loop_timer_new(lost.loop, too_late, &lost);
	lost.listener = listener_new(lost.loop, &def);
	loop_timer_arm(lost.timer, 300);
	loop_run(lost.loop);
	cr_expect_eq(lost.ups, 0);
	cr_expect_eq(lost.downs, 0, "never up, never down");
	ear_close(&lost);
}
