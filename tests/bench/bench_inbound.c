/*
 * bench_inbound -- relay events a second through authentication, parsing and
 * the database, on one connection, next to the signature alone and to a bare
 * multi-row insert of the same content into a table with the same indexes.
 *
 * Batches of 50 creates into CONVERSATIONS existing conversations; each stage
 * runs for a second, in turns, ROUNDS times; the medians are printed.
 */
#include <unistd.h>

#include "common/base/clock.h"
#include "common/federation/relay.h"
#include "tests/lib/test_db.h"

enum { EVENTS = 50, CONVERSATIONS = 10, ROUNDS = 5, STAGE_MS = 1000 };

struct bench {
	struct arena *keep;  /* for the whole run */
	struct arena *arena; /* for one batch */
	char *conninfo;
	struct conn *conn;
	struct node node;
	struct peer peer;
	const char *secret;
	int64_t natives[CONVERSATIONS];
	int64_t next_id;
};

struct shot {
	struct bytes body;
	struct sign_headers headers;
};

static void must(bool good, const char *what, const struct err *err)
{
	if (good)
		return;
	fprintf(stderr, "bench_inbound: %s: %s\n", what, err->text);
	exit(1);
}

/* ---- the site ---- */

static void site_key(struct bench *bench, struct err *err)
{
	const char *file = arena_printf(
	    bench->keep, "/tmp/bench-inbound-%d.key", (int)getpid());

	must(node_key_create(file, err) &&
	        node_load(bench->keep, "https://nova.test", file, &bench->node,
	            err),
	    "node", err);
	unlink(file);
}

static void site_peer(struct bench *bench, struct err *err)
{
	static const struct stmt seal = { "bench_seal",
		"UPDATE federation_peers SET hmac_secret = $1 WHERE id = $2",
		SQL_NONE, 2 };
	AUTO(tx_end) struct tx *tx = tx_new(bench->conn, bench->keep);
	bool found;

	test_db_script(bench->conninfo,
	    "UPDATE instance_settings SET relay_requests_per_minute = "
	    "1000000000;"
	    "INSERT INTO federation_peers (origin, host, status, hmac_secret) "
	    "VALUES ('https://luna.test', 'luna.test', 'active', 'x')");
	must(peer_by_origin(
	         tx, "https://luna.test", &bench->peer, &found, err),
	    "peer", err);
	bench->secret = secret_fresh(bench->keep);
	must(sql_none(tx, &seal, err,
	         v_bytes(peer_seal(bench->keep, &bench->node, bench->peer.id,
	             bench->secret)),
	         v_id(bench->peer.id)) &&
	        tx_commit(tx, err),
	    "secret", err);
}

static void site_people(struct bench *bench)
{
	test_db_script(bench->conninfo,
	    "INSERT INTO users (username, display_name, password_hash) "
	    "SELECT 'user' || n, 'User', 'x' FROM generate_series(0, 9) n;"
	    "CREATE TABLE bare (LIKE dm_messages INCLUDING ALL)");
	for (int i = 0; i < CONVERSATIONS; i++)
		bench->natives[i] = test_db_number(bench->conninfo,
		    arena_printf(bench->keep,
		        "SELECT id AS n FROM users WHERE username = 'user%d'",
		        i));
}

/* ---- batches ---- */

static void put_event(struct bench *bench, struct buf *out, int place)
{
	int pair = place % CONVERSATIONS;
	int64_t now = clock_wall_ms();
	int64_t id = ++bench->next_id;

	buf_printf(out,
	    "%s{\"eventType\":\"create\",\"contextType\":\"dm\","
	    "\"messageId\":\"38589828%010" PRId64
	    "\",\"encryptionVersion\":0,\"timestamp\":%" PRId64
	    ",\"dmChannelId\":\"385898280765673472\",\"participants\":[{"
	    "\"homeUserId\":\"38589813374692966%d\",\"homeInstance\":"
	    "\"https://luna.test\",\"profile\":{\"username\":\"zed\","
	    "\"displayName\":\"Zed\",\"avatar\":null,\"avatarColor\":"
	    "\"amber\"}},{\"homeUserId\":\"%" PRId64
	    "\",\"homeInstance\":\"nova.test\",\"profile\":{\"username\":"
	    "\"%" PRId64 "@nova.test\",\"displayName\":\"User\","
	    "\"avatar\":null,\"avatarColor\":null}}],\"message\":{"
	    "\"userId\":\"385898133746929664\",\"homeUserId\":"
	    "\"38589813374692966%d\",\"homeInstance\":\"https://luna.test\","
	    "\"content\":\"a message of the usual length, number %" PRId64
	    "\",\"replyToId\":null,\"editedAt\":null,\"createdAt\":%" PRId64
	    "}}",
	    place ? "," : "", id, now, pair, bench->natives[pair],
	    bench->natives[pair], pair, id, now);
}

static struct shot shot_make(struct bench *bench)
{
	struct buf body;
	char signature[SIGN_TEXT_MAX];
	const char *timestamp =
	    arena_printf(bench->arena, "%" PRId64, clock_wall_ms());
	const char *nonce = nonce_fresh(bench->arena);
	struct shot shot;

	buf_init(&body, bench->arena, 1 << 20);
	buf_text(&body,
	    "{\"version\":1,\"sourceInstance\":\"https://luna.test\","
	    "\"events\":[");
	for (int i = 0; i < EVENTS; i++)
		put_event(bench, &body, i);
	buf_text(&body, "]}");
	shot.body = buf_bytes(&body);
	sign_make(bench->secret, timestamp, nonce, shot.body, signature);
	if (!sign_headers_parse(bench->arena, "https://luna.test", timestamp,
	        nonce, signature, &shot.headers))
		abort();
	return shot;
}

/* ---- stages: one batch each ---- */

static void run_hmac(struct bench *bench, const struct shot *shot)
{
	const struct sign_headers *h = &shot->headers;

	if (!sign_verify(bench->secret, h->timestamp, h->nonce, shot->body,
	        h->signature))
		abort();
}

static void run_bare(struct bench *bench, const struct shot *shot)
{
	static const struct stmt insert = { "bench_bare",
		"INSERT INTO bare (dm_channel_id, user_id, content, created_at,"
		" source_instance, source_message_id) SELECT * FROM "
		"unnest($1::bigint[], $2::bigint[], $3::text[],"
		" $4::timestamptz[], $5::text[], $6::text[]) "
		"ON CONFLICT DO NOTHING",
		SQL_NONE, 6 };
	AUTO(tx_end) struct tx *tx = tx_new(bench->conn, bench->arena);
	int64_t ids[EVENTS];
	int64_t times[EVENTS];
	const char *contents[EVENTS];
	const char *sources[EVENTS];
	const char *messages[EVENTS];
	struct err err = { 0 };

	(void)shot;
	for (int i = 0; i < EVENTS; i++) {
		int64_t id = ++bench->next_id;

		ids[i] = bench->natives[i % CONVERSATIONS];
		times[i] = clock_wall_ms();
		contents[i] = arena_printf(bench->arena,
		    "a message of the usual length, number %" PRId64, id);
		sources[i] = "https://luna.test";
		messages[i] =
		    arena_printf(bench->arena, "38589828%010" PRId64, id);
	}
	must(sql_none(tx, &insert, &err, v_ids(ids, EVENTS),
	         v_ids(ids, EVENTS), v_texts(contents, EVENTS),
	         v_times(times, EVENTS), v_texts(sources, EVENTS),
	         v_texts(messages, EVENTS)) &&
	        tx_commit(tx, &err),
	    "bare insert", &err);
}

static void run_relay(struct bench *bench, const struct shot *shot)
{
	AUTO(tx_end) struct tx *tx = tx_new(bench->conn, bench->arena);
	struct relay_batch *batch;
	struct settings settings;
	struct peer peer;
	struct buf answer;
	struct err err = { 0 };

	must(peer_authenticate(tx, &bench->node, &shot->headers, shot->body,
	         &peer, &err) &&
	        relay_parse(bench->arena, shot->body, &bench->node, &peer,
	            &batch, &err) &&
	        relay_apply(tx, batch, &err) &&
	        peer_seen(tx, &peer, true, &err) &&
	        settings_read(tx, &settings, &err) && tx_commit(tx, &err),
	    "relay", &err);
	buf_init(&answer, bench->arena, 1 << 20);
	relay_answer(batch, &settings, &answer);
	if (!strstr(answer.data, "\"rejected\":[]")) {
		fprintf(stderr, "bench_inbound: %s\n", answer.data);
		exit(1);
	}
}

/* ---- measuring ---- */

/* Events a second of a stage; making the batches doesn't count. */
static double measure(struct bench *bench,
    void (*run)(struct bench *bench, const struct shot *shot))
{
	int64_t spent = 0;
	int64_t batches = 0;

	while (spent < STAGE_MS * INT64_C(1000)) {
		struct shot shot = shot_make(bench);
		int64_t from = clock_steady_us();

		run(bench, &shot);
		spent += clock_steady_us() - from;
		batches++;
		arena_reset(bench->arena);
	}
	return (double)batches * EVENTS * 1e6 / (double)spent;
}

static int compare(const void *a, const void *b)
{
	double left = *(const double *)a;
	double right = *(const double *)b;

	return (left > right) - (left < right);
}

static double median(double *figures)
{
	qsort(figures, ROUNDS, sizeof(*figures), compare);
	return figures[ROUNDS / 2];
}

static void print(const char *name, double value, const char *baseline,
    double base)
{
	printf("figure=%s value=%.0f unit=events/s", name, value);
	if (baseline)
		printf(" baseline=%s ratio=%.2f", baseline, value / base);
	printf("\n");
}

int main(void)
{
	struct bench bench = { .keep = arena_new(), .arena = arena_new() };
	double hmac[ROUNDS];
	double bare[ROUNDS];
	double relay[ROUNDS];
	struct err err = { 0 };

	if (!test_db_available()) {
		fprintf(stderr, "bench_inbound: POSTRIDER_TEST_DB is not set\n");
		return 1;
	}
	bench.conninfo = test_db_create();
	bench.conn = conn_new(&(struct conn_def){
	    .conninfo = bench.conninfo,
	    .application = "bench_inbound",
	    .signals_after = getenv("BENCH_SIGNALS_AFTER") != NULL,
	});
	site_key(&bench, &err);
	site_peer(&bench, &err);
	site_people(&bench);
	run_relay(&bench, &(struct shot[]){ shot_make(&bench) }[0]);
	for (int i = 0; i < ROUNDS; i++) {
		hmac[i] = measure(&bench, run_hmac);
		bare[i] = measure(&bench, run_bare);
		relay[i] = measure(&bench, run_relay);
	}
	print("inbound_hmac_only", median(hmac), NULL, 0);
	print("inbound_bare_insert", median(bare), NULL, 0);
	print("inbound_relay", median(relay), "inbound_bare_insert",
	    median(bare));
	conn_free(&bench.conn);
	test_db_drop(&bench.conninfo);
	arena_free(&bench.arena);
	arena_free(&bench.keep);
	return 0;
}
