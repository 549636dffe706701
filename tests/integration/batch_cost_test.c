/* What a batch costs: statements by kinds of event, one transaction; and two
 * batches that meet. */
#include <pthread.h>

#include <criterion/criterion.h>

#include "common/base/clock.h"
#include "common/federation/relay.h"
#include "tests/integration/relay_site.h"
#include "tests/lib/test_db.h"
#include "tests/lib/test_events.h"

static struct relay_site site;
static struct test_crowd crowd;

static void begin(void)
{
	test_db_needed();
	relay_site_begin(&site);
	crowd = (struct test_crowd){
		.arena = site.arena,
		.origin = site.luna.origin,
		.host = "nova.test",
		.conninfo = site.conninfo,
	};
	test_crowd_begin(&crowd);
}

static void end(void)
{
	relay_site_end(&site);
}

TestSuite(batch_cost, .init = begin, .fini = end, .timeout = 300);

/* Statements for a batch of so many events; all must be accepted. */
static int64_t cost(const char *type, int round, int count)
{
	const char *events = test_events_of(&crowd, type, round, count);
	int64_t before = conn_statements(site.conn);
	const char *answer;

	answer = relay_site_send(&site, events);
	cr_expect(strstr(answer, "\"rejected\":[]"), "%s: %s", type, answer);
	return conn_statements(site.conn) - before;
}

/* A round of every type, so that the crowd is known and all has its place. */
static void round_of_all(int round)
{
	for (size_t i = 0; test_events_type(i); i++) {
		test_events_prepare(&crowd, test_events_type(i));
		cost(test_events_type(i), round, TEST_CROWD);
	}
}

Test(batch_cost, statements_are_bounded_by_kinds_of_event)
{
	round_of_all(0);
	for (size_t i = 0; test_events_type(i); i++) {
		const char *type = test_events_type(i);
		int64_t few;
		int64_t many;

		test_events_prepare(&crowd, type);
		few = cost(type, 1, 2);
		test_events_prepare(&crowd, type);
		many = cost(type, 2, TEST_CROWD);
		cr_expect_leq(many, few,
		    "%s: %" PRId64 " statements for 2, %" PRId64 " for %d",
		    type, few, many, TEST_CROWD);
	}
}

/* ---- one transaction ---- */

Test(batch_cost, a_batch_is_one_transaction)
{
	struct buf all;
	int64_t xids;

	buf_init(&all, site.arena, 1 << 22);
	buf_printf(&all, "%s,%s,%s", test_events_of(&crowd, "create", 0, 20),
	    test_events_of(&crowd, "member_add", 0, 20),
	    test_events_of(&crowd, "friend_request_create", 0, 10));
	relay_site_send(&site, all.data);
	/* Whatever it wrote, it wrote in one. */
	xids = relay_site_number(&site,
	    "SELECT count(DISTINCT x)::bigint AS n FROM ("
	    "SELECT xmin::text AS x FROM dm_messages UNION ALL "
	    "SELECT xmin::text FROM dm_channels UNION ALL "
	    "SELECT xmin::text FROM friend_requests UNION ALL "
	    "SELECT xmin::text FROM users WHERE home_instance = 'luna.test' "
	    "UNION ALL SELECT xmin::text FROM conversation_events) AS t");
	cr_expect_eq(xids, 1);
	cr_expect_eq(
	    relay_site_number(&site,
		"SELECT (SELECT count(*) FROM dm_messages) + (SELECT count(*) "
		"FROM friend_requests) + (SELECT count(*) FROM dm_channels "
		"WHERE is_group) AS n"),
	    50);
}

/* ---- two that meet ---- */

struct sender {
	pthread_t thread;
	pthread_barrier_t *start;
	struct peer peer;
	bool backwards;
	int rounds;
	int64_t slowest_ms;
	const char *fault;
};

/* The same people and conversations in one order or the other. */
static const char *crossing(
    struct arena *arena, const struct sender *sender, int round)
{
	struct buf out;

	buf_init(&out, arena, 1 << 20);
	for (int n = 0; n < 10; n++) {
		int i = sender->backwards ? 9 - n : n;

		buf_printf(&out,
		    "%s{\"eventType\":\"create\",\"contextType\":\"dm\","
		    "\"messageId\":\"%d-%d\",\"encryptionVersion\":0,"
		    "\"timestamp\":1,\"federatedId\":\"group-0-%d\","
		    "\"dmChannelId\":\"9\",\"participants\":[{"
		    "\"homeUserId\":\"90%d\",\"homeInstance\":\"%s\"},{"
		    "\"homeUserId\":\"%" PRId64
		    "\",\"homeInstance\":\"nova.test\"}],\"message\":{"
		    "\"userId\":\"1\",\"homeUserId\":\"90%d\","
		    "\"homeInstance\":\"%s\",\"content\":\"x\","
		    "\"replyToId\":null,\"editedAt\":null,"
		    "\"createdAt\":1796072519784}}",
		    n ? "," : "", round, i, i, i, sender->peer.origin,
		    crowd.natives[i], i, sender->peer.origin);
	}
	return out.data;
}

static bool send_crossing(
    struct sender *sender, struct conn *conn, struct arena *arena, int round)
{
	const char *body = arena_printf(arena,
	    "{\"version\":1,\"sourceInstance\":\"%s\",\"events\":[%s]}",
	    sender->peer.origin, crossing(arena, sender, round));
	AUTO(tx_end) struct tx *tx = tx_new(conn, arena);
	struct relay_batch *batch;
	struct err err = { 0 };
	struct buf answer;

	if (!relay_parse(arena, (struct bytes){ body, strlen(body) },
		&site.node, &sender->peer, &batch, &err) ||
	    !relay_apply(tx, batch, &err) || !tx_commit(tx, &err)) {
		sender->fault = strdup(err.text);
		return false;
	}
	buf_init(&answer, arena, 1 << 20);
	relay_answer(batch, &answer);
	if (!strstr(answer.data, "\"rejected\":[]"))
		sender->fault = strdup(answer.data);
	return !sender->fault;
}

static void *sender_run(void *arg)
{
	struct sender *sender = arg;
	struct conn *conn = test_db_conn(site.conninfo);
	struct arena *arena = arena_new();

	for (int i = 0; i < sender->rounds && !sender->fault; i++) {
		int64_t from;

		arena_reset(arena);
		pthread_barrier_wait(sender->start);
		from = clock_steady_ms();
		if (!send_crossing(sender, conn, arena, i))
			break;
		if (clock_steady_ms() - from > sender->slowest_ms)
			sender->slowest_ms = clock_steady_ms() - from;
	}
	conn_free(&conn);
	arena_free(&arena);
	return NULL;
}

/* Ten groups with a person of luna and one of orbit in each. */
static void meeting_place(void)
{
	cost("member_add", 0, 10);
	for (int i = 0; i < 10; i++)
		test_db_script(site.conninfo,
		    arena_printf(site.arena,
			"WITH p AS (INSERT INTO users (username, "
			"password_hash, home_instance, home_user_id) VALUES "
			"('90%d@orbit.test', '!federation-replicated', "
			"'orbit.test', '90%d') RETURNING id) "
			"INSERT INTO dm_members (dm_channel_id, user_id) "
			"SELECT c.id, p.id FROM dm_channels c, p "
			"WHERE c.federated_id = 'group-0-%d'",
			i, i, i));
}

Test(batch_cost, batches_in_opposite_order_neither_deadlock_nor_wait_long)
{
	enum { ROUNDS = 40 };
	pthread_barrier_t start;
	struct sender senders[2] = {
		{ .start = &start, .peer = site.luna, .rounds = ROUNDS },
		{ .start = &start,
		    .peer = relay_site_peer(&site, "orbit.test"),
		    .backwards = true,
		    .rounds = ROUNDS },
	};

	meeting_place();
	pthread_barrier_init(&start, NULL, COUNT(senders));
	for (size_t i = 0; i < COUNT(senders); i++)
		cr_assert_eq(pthread_create(&senders[i].thread, NULL,
				 sender_run, &senders[i]),
		    0);
	for (size_t i = 0; i < COUNT(senders); i++) {
		pthread_join(senders[i].thread, NULL);
		cr_expect(!senders[i].fault, "%s", senders[i].fault);
		cr_expect_lt(senders[i].slowest_ms, test_patience_ms(1000),
		    "%" PRId64 " ms", senders[i].slowest_ms);
	}
	pthread_barrier_destroy(&start);
	cr_expect_eq(relay_site_number(&site,
			 "SELECT deadlocks AS n FROM pg_stat_database "
			 "WHERE datname = current_database()"),
	    0);
	cr_expect_eq(
	    relay_site_number(&site, "SELECT count(*) AS n FROM dm_messages"),
	    (int64_t)COUNT(senders) * ROUNDS * 10);
}
