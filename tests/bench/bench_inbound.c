/*
 * bench_inbound -- relay events a second into one real frontd, next to the
 * signature alone and to a bare multi-row insert of the same content into a
 * table with the same indexes, in the same run and by as many senders.
 *
 * SENDERS peers send signed batches of 50 creates into existing conversations,
 * each on its own kept-alive connection. Stages run in turns, ROUNDS times:
 * medians are printed, of a ratio that of the rounds' ratios, since whatever
 * else the machine does moves the stages of a round alike. Making a batch
 * counts for nobody: the batches of a stage are made before it.
 *
 * Then every type of event by one sender, a batch of 50 at a time, each about
 * another person and conversation.
 */
#include <pthread.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/crypto/sign.h"
#include "common/pg/sql.h"
#include "tests/lib/test_db.h"
#include "tests/lib/test_events.h"
#include "tests/lib/test_http.h"
#include "tests/lib/test_node.h"

enum {
	EVENTS = 50,
	CONVERSATIONS = 10,
	SENDERS = 4,
	ROUNDS = 9,
	STAGE_MS = 800
};
enum { SHOTS_MAX = 400, TYPES_MAX = 64 };

struct shot {
	struct bytes body;
	struct bytes request;
	const char *timestamp;
	const char *nonce;
	char signature[SIGN_TEXT_MAX];
};

struct sender {
	pthread_t thread;
	int number;
	struct arena *arena;
	struct conn *conn;
	int socket;
	const char *origin;
	const char *secret;
	const struct site *site;
	void (*stage)(struct sender *sender, struct shot *shot);
	struct shot *shots;
	size_t shot_count;
	int64_t next_id;
	double rate;   /* batches a second */
	int64_t *took; /* us of each batch, of this stage */
	size_t took_count;
};

struct site {
	struct arena *arena;
	struct test_node *node;
	struct test_daemon *frontd;
	int64_t natives[CONVERSATIONS];
	struct sender senders[SENDERS];
	double batch_ms[SENDERS * SHOTS_MAX * ROUNDS]; /* of the relay */
	size_t batch_count;
};

static void must(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "bench_inbound: %s\n", what);
	exit(1);
}

/* ---- batches ---- */

static void put_event(struct sender *sender, struct buf *out, int place)
{
	int pair = place % CONVERSATIONS;
	int64_t native = sender->site->natives[pair];
	int64_t now = clock_wall_ms();
	int64_t id = ++sender->next_id;

	buf_printf(out,
	    "%s{\"eventType\":\"create\",\"contextType\":\"dm\","
	    "\"messageId\":\"38589828%010" PRId64
	    "\",\"encryptionVersion\":0,\"timestamp\":%" PRId64
	    ",\"dmChannelId\":\"385898280765673472\",\"participants\":[{"
	    "\"homeUserId\":\"38589813374692966%d\",\"homeInstance\":"
	    "\"%s\",\"profile\":{\"username\":\"zed\","
	    "\"displayName\":\"Zed\",\"avatar\":null,\"avatarColor\":"
	    "\"amber\"}},{\"homeUserId\":\"%" PRId64
	    "\",\"homeInstance\":\"nova.localhost\",\"profile\":{"
	    "\"username\":\"%" PRId64 "@nova\",\"displayName\":\"User\","
	    "\"avatar\":null,\"avatarColor\":null}}],\"message\":{"
	    "\"userId\":\"385898133746929664\",\"homeUserId\":"
	    "\"38589813374692966%d\",\"homeInstance\":\"%s\","
	    "\"content\":\"a message of the usual length, number %" PRId64
	    "\",\"replyToId\":null,\"editedAt\":null,\"createdAt\":%" PRId64
	    "}}",
	    place ? "," : "", id, now, pair, sender->origin, native, native,
	    pair, sender->origin, id, now);
}

/* The request around a body. */
static void shot_sign(struct sender *sender, struct shot *shot)
{
	struct buf request;

	shot->timestamp =
	    arena_printf(sender->arena, "%" PRId64, clock_wall_ms());
	shot->nonce = nonce_fresh(sender->arena);
	sign_make(sender->secret, shot->timestamp, shot->nonce, shot->body,
	    shot->signature);
	buf_init(&request, sender->arena, 1 << 20);
	buf_printf(&request,
	    "POST /api/federation/relay HTTP/1.1\r\nHost: nova.localhost\r\n"
	    "Content-Type: application/json\r\nContent-Length: %zu\r\n"
	    "X-Federation-Origin: %s\r\nX-Federation-Timestamp: %s\r\n"
	    "X-Federation-Nonce: %s\r\nX-Federation-Signature: %s\r\n\r\n",
	    shot->body.len, sender->origin, shot->timestamp, shot->nonce,
	    shot->signature);
	buf_add(&request, shot->body.data, shot->body.len);
	shot->request = buf_bytes(&request);
}

static void shot_make(struct sender *sender, struct shot *shot)
{
	struct buf body;

	buf_init(&body, sender->arena, 1 << 20);
	buf_printf(&body,
	    "{\"version\":1,\"sourceInstance\":\"%s\",\"events\":[",
	    sender->origin);
	for (int i = 0; i < EVENTS; i++)
		put_event(sender, &body, i);
	buf_text(&body, "]}");
	shot->body = buf_bytes(&body);
	shot_sign(sender, shot);
}

/* ---- stages: one batch each ---- */

static void stage_hmac(struct sender *sender, struct shot *shot)
{
	must(sign_verify(sender->secret, shot->timestamp, shot->nonce,
		 shot->body, shot->signature),
	    "a signature does not verify");
}

static void stage_bare(struct sender *sender, struct shot *shot)
{
	static const struct stmt insert = { "bench_bare",
		"INSERT INTO bare (dm_channel_id, user_id, content, created_at,"
		" source_instance, source_message_id) SELECT * FROM "
		"unnest($1::bigint[], $2::bigint[], $3::text[],"
		" $4::timestamptz[], $5::text[], $6::text[]) "
		"ON CONFLICT DO NOTHING",
		SQL_NONE, 6 };
	AUTO(tx_end) struct tx *tx = tx_new(sender->conn, sender->arena);
	int64_t ids[EVENTS];
	int64_t times[EVENTS];
	const char *texts[3][EVENTS];
	struct err err = { 0 };

	(void)shot;
	for (int i = 0; i < EVENTS; i++) {
		int64_t id = ++sender->next_id;

		ids[i] = sender->site->natives[i % CONVERSATIONS];
		times[i] = clock_wall_ms();
		texts[0][i] = arena_printf(sender->arena,
		    "a message of the usual length, number %" PRId64, id);
		texts[1][i] = sender->origin;
		texts[2][i] =
		    arena_printf(sender->arena, "38589828%010" PRId64, id);
	}
	must(sql_none(tx, &insert, &err, v_ids(ids, EVENTS), v_ids(ids, EVENTS),
		 v_texts(texts[0], EVENTS), v_times(times, EVENTS),
		 v_texts(texts[1], EVENTS), v_texts(texts[2], EVENTS)) &&
		tx_commit(tx, &err),
	    err.text);
}

static void stage_relay(struct sender *sender, struct shot *shot)
{
	struct test_reply reply;

	must(test_http_write(
		 sender->socket, shot->request.data, shot->request.len),
	    "the connection is gone");
	reply = test_http_read(sender->arena, sender->socket);
	must(reply.status == 200 && strstr(reply.body, "\"rejected\":[]"),
	    reply.body ? reply.body : "no answer");
}

/* ---- measuring ---- */

static void *sender_run(void *arg)
{
	struct sender *sender = arg;
	int64_t from = clock_steady_us();
	int64_t spent = 0;
	size_t sent = 0;

	while (spent < STAGE_MS * INT64_C(1000) && sent < sender->shot_count) {
		int64_t before = spent;

		sender->stage(sender, &sender->shots[sent]);
		spent = clock_steady_us() - from;
		sender->took[sent++] = spent - before;
	}
	sender->took_count = sent;
	sender->rate = (double)sent * 1e6 / (double)spent;
	return NULL;
}

/* Events a second of all senders together. */
static double measure(
    struct site *site, void (*stage)(struct sender *sender, struct shot *shot))
{
	double batches = 0;

	for (int i = 0; i < SENDERS; i++) {
		struct sender *sender = &site->senders[i];

		arena_reset(sender->arena);
		sender->stage = stage;
		sender->shot_count = SHOTS_MAX;
		sender->shots = arena_array(
		    sender->arena, SHOTS_MAX, sizeof(*sender->shots));
		sender->took = arena_array(
		    sender->arena, SHOTS_MAX, sizeof(*sender->took));
		for (size_t j = 0; j < SHOTS_MAX; j++)
			shot_make(sender, &sender->shots[j]);
	}
	for (int i = 0; i < SENDERS; i++)
		must(pthread_create(&site->senders[i].thread, NULL, sender_run,
			 &site->senders[i]) == 0,
		    "no thread");
	for (int i = 0; i < SENDERS; i++) {
		pthread_join(site->senders[i].thread, NULL);
		batches += site->senders[i].rate;
	}
	return batches * EVENTS;
}

static void latencies_keep(struct site *site)
{
	for (int i = 0; i < SENDERS; i++)
		for (size_t j = 0; j < site->senders[i].took_count; j++)
			site->batch_ms[site->batch_count++] =
			    (double)site->senders[i].took[j] / 1000;
}

static int compare(const void *a, const void *b)
{
	double left = *(const double *)a;
	double right = *(const double *)b;

	return (left > right) - (left < right);
}

static double percentile(double *figures, size_t count, size_t percent)
{
	qsort(figures, count, sizeof(*figures), compare);
	return figures[count * percent / 100];
}

static double median(double *figures)
{
	return percentile(figures, ROUNDS, 50);
}

/* ---- every type of event, one batch after the other ---- */

/* Milliseconds of a batch of EVENTS of this type. */
static double type_batch(struct sender *sender, const struct test_crowd *crowd,
    const char *type, int round)
{
	struct shot shot;
	const char *body;
	int64_t from;

	test_events_prepare(crowd, type);
	body = arena_printf(sender->arena,
	    "{\"version\":1,\"sourceInstance\":\"%s\",\"events\":[%s]}",
	    sender->origin, test_events_of(crowd, type, round, EVENTS));
	shot.body = (struct bytes){ body, strlen(body) };
	shot_sign(sender, &shot);
	from = clock_steady_us();
	stage_relay(sender, &shot);
	return (double)(clock_steady_us() - from) / 1000;
}

static void types_measure(struct site *site)
{
	struct sender *sender = &site->senders[0];
	struct test_crowd crowd = {
		.arena = site->arena,
		.origin = sender->origin,
		.host = "nova.localhost",
		.conninfo = site->node->database,
	};
	double ms[TYPES_MAX][ROUNDS];

	test_crowd_begin(&crowd);
	/* The first round makes people and conversations, and counts not. */
	for (int round = 0; round <= ROUNDS; round++) {
		arena_reset(sender->arena);
		for (size_t i = 0; test_events_type(i); i++) {
			double took = type_batch(
			    sender, &crowd, test_events_type(i), round);

			must(i < TYPES_MAX, "more types than expected");
			if (round)
				ms[i][round - 1] = took;
		}
	}
	for (size_t i = 0; test_events_type(i); i++)
		printf("figure=inbound_%s value=%.0f unit=events/s\n",
		    test_events_type(i), EVENTS * 1000 / median(ms[i]));
}

/* ---- the site ---- */

static void site_people(struct site *site)
{
	test_db_script(site->node->database,
	    "UPDATE instance_settings SET peer_accept_policy = 'open', "
	    "relay_requests_per_minute = 1000000000;"
	    "INSERT INTO users (username, display_name, password_hash) "
	    "SELECT 'user' || n, 'User', 'x' FROM generate_series(0, 9) n;"
	    "CREATE TABLE bare (LIKE dm_messages INCLUDING ALL)");
	for (int i = 0; i < CONVERSATIONS; i++)
		site->natives[i] = test_db_number(site->node->database,
		    arena_printf(site->arena,
			"SELECT id AS n FROM users WHERE username = 'user%d'",
			i));
}

static void sender_begin(struct site *site, int number)
{
	struct sender *sender = &site->senders[number];
	struct shot first;

	sender->site = site;
	sender->number = number;
	sender->arena = arena_new();
	sender->conn = test_db_conn(site->node->database);
	sender->socket = test_http_connect(site->frontd->port);
	sender->origin =
	    arena_printf(site->arena, "https://peer%d.test", number);
	sender->secret = secret_fresh(site->arena);
	must(test_post(site->arena, site->frontd->port,
		 "/api/federation/peer/accept", NULL,
		 arena_printf(site->arena,
		     "{\"sourceOrigin\":\"%s\",\"hmacSecret\":\"%s\"}",
		     sender->origin, sender->secret))
		    .status == 200,
	    "the peer was not taken");
	/* The people and conversations of this peer. */
	shot_make(sender, &first);
	stage_relay(sender, &first);
}

static void site_begin(struct site *site)
{
	static const char *const settings[] = { "log_level=warn", NULL };

	site->arena = arena_new();
	site->node = test_node_new("nova.localhost");
	site->frontd = test_frontd(site->node, settings);
	site_people(site);
	for (int i = 0; i < SENDERS; i++)
		sender_begin(site, i);
}

static void site_end(struct site *site)
{
	for (int i = 0; i < SENDERS; i++) {
		close(site->senders[i].socket);
		conn_free(&site->senders[i].conn);
		arena_free(&site->senders[i].arena);
	}
	test_node_free(&site->node);
	arena_free(&site->arena);
}

static void print_all(
    struct site *site, double *hmac, double *bare, double *relay)
{
	double ratios[ROUNDS];

	for (int i = 0; i < ROUNDS; i++)
		ratios[i] = relay[i] / bare[i];
	printf("figure=inbound_hmac_only value=%.0f unit=events/s\n",
	    median(hmac));
	printf("figure=inbound_bare_insert value=%.0f unit=events/s\n",
	    median(bare));
	printf("figure=inbound_relay value=%.0f unit=events/s"
	       " baseline=inbound_bare_insert ratio=%.2f\n",
	    median(relay), median(ratios));
	printf("figure=inbound_batch_p50 value=%.2f unit=ms\n",
	    percentile(site->batch_ms, site->batch_count, 50));
	printf("figure=inbound_batch_p99 value=%.2f unit=ms\n",
	    percentile(site->batch_ms, site->batch_count, 99));
}

int main(void)
{
	static struct site site;
	double hmac[ROUNDS];
	double bare[ROUNDS];
	double relay[ROUNDS];

	must(test_db_available(), "POSTRIDER_TEST_DB is not set");
	site_begin(&site);
	for (int i = 0; i < ROUNDS; i++) {
		hmac[i] = measure(&site, stage_hmac);
		bare[i] = measure(&site, stage_bare);
		relay[i] = measure(&site, stage_relay);
		latencies_keep(&site);
	}
	print_all(&site, hmac, bare, relay);
	types_measure(&site);
	site_end(&site);
	return 0;
}
