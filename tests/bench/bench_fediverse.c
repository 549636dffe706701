/*
 * bench_fediverse -- signed activities a second that one and two real outboxd
 * bring to a hundred servers that take everything at once, next to what the
 * machine can sign at all and to a client that does nothing but sign and
 * POST, in turns on the same machine; then how long one activity takes at
 * twenty a second. One line a figure.
 *
 *     bench_fediverse [ACTIVITIES]
 *
 * The queue is filled before the clock starts; a drain is timed from the first
 * request to the last. Receivers are relay_sink, which counts what has a
 * messageId; ours have one. Nothing else should run.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/crypto/secret.h"
#include "common/fediverse/actor.h"
#include "common/fediverse/signature.h"
#include "common/pg/notify.h"
#include "tests/bench/relay_site.h"

enum {
	ACTIVITIES = 4000,
	ROUNDS = 3,
	HANDS_MAX = 64,
	SIGNATURES = 1000, /* each thread's */
	EVENTS = 200,
	PACE_US = 50000,
	ANSWER_MAX = 4096
};

struct fedi {
	struct bench bench;
	struct actor actor;
	struct pkey *key;
	int hands; /* processors */
};

/* ---- without a queue ---- */

struct hand {
	pthread_t thread;
	const struct fedi *fedi;
	int count;
	int socket; /* -1: only signs */
};

static const char payload_format[] =
    "{\"@context\":\"https://www.w3.org/ns/activitystreams\",\"id\":"
    "\"http://bench.localhost:1/a/%d\",\"type\":\"Create\",\"actor\":"
    "\"http://bench.localhost:1/users/bench\",\"object\":{\"messageId\":\"m\","
    "\"type\":\"Note\",\"content\":\"%0400d\"}}";

static int sink_connect(const struct fedi *fedi)
{
	struct sockaddr_in name = { .sin_family = AF_INET,
		.sin_port =
		    htons((uint16_t)relay_sink_port(fedi->bench.sink)) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int on = 1;

	name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (connect(fd, (struct sockaddr *)&name, sizeof(name)) != 0)
		abort();
	return fd;
}

static void post(struct hand *hand, struct arena *arena, int place)
{
	const char *body = arena_printf(arena, payload_format, place, place);
	struct http_header headers[2 + SIG_HEADERS_MAX] = {
		{ "Host", "p0.localhost" },
		{ "Content-Type", "application/activity+json" },
	};
	const struct sig_message message = { .method = "POST",
		.scheme = "http",
		.target = "/inbox",
		.headers = headers,
		.header_count = 2,
		.body = { body, strlen(body) } };
	const struct sig_maker maker = { .style = SIG_CAVAGE,
		.key = hand->fedi->key,
		.key_id = "http://bench.localhost:1/users/bench#main-key",
		.now_s = clock_wall_ms() / 1000 };
	size_t made = sig_make(arena, &message, &maker, headers + 2);
	char answer[ANSWER_MAX];
	struct buf out;

	buf_init(&out, arena, ANSWER_MAX);
	buf_text(&out, "POST /inbox HTTP/1.1\r\n");
	for (size_t i = 0; i < made + 2; i++)
		buf_printf(
		    &out, "%s: %s\r\n", headers[i].name, headers[i].value);
	buf_printf(&out, "Content-Length: %zu\r\n\r\n%s", strlen(body), body);
	if (send(hand->socket, out.data, out.len, MSG_NOSIGNAL) < 0)
		abort();
	for (size_t got = 0; got < 1 || !strstr(answer, "maxUploadSize");) {
		ssize_t more =
		    recv(hand->socket, answer + got, ANSWER_MAX - 1 - got, 0);

		if (more <= 0)
			abort();
		got += (size_t)more;
		answer[got] = '\0';
	}
}

static void *hand_work(void *arg)
{
	static const char text[] = "(request-target): post /inbox\nhost: far";
	struct hand *hand = arg;
	AUTO(arena_free) struct arena *arena = arena_new();

	for (int i = 0; i < hand->count; i++) {
		if (hand->socket < 0)
			pkey_sign(arena, hand->fedi->key,
			    (struct bytes){ text, sizeof(text) - 1 });
		else
			post(hand, arena, i);
		arena_reset(arena);
	}
	return NULL;
}

/* Processor time of this process, the sink's too. */
static double own_cpu_us(void)
{
	struct timespec used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return (double)used.tv_sec * 1e6 + (double)used.tv_nsec / 1e3;
}

/* Of so many threads, each with a connection of its own or none. */
static double by_hand(struct fedi *fedi, int hands, bool posts)
{
	struct hand all[HANDS_MAX];
	int64_t before;
	int64_t took;

	relay_sink_reset(fedi->bench.sink, INT64_MAX);
	for (int i = 0; i < hands; i++)
		all[i] = (struct hand){ .fedi = fedi,
			.count = SIGNATURES,
			.socket = posts ? sink_connect(fedi) : -1 };
	before = clock_steady_us();
	for (int i = 0; i < hands; i++)
		if (pthread_create(&all[i].thread, NULL, hand_work, &all[i]) !=
		    0)
			abort();
	for (int i = 0; i < hands; i++)
		pthread_join(all[i].thread, NULL);
	took = clock_steady_us() - before;
	for (int i = 0; i < hands; i++)
		if (posts)
			close(all[i].socket);
	return (double)hands * SIGNATURES * 1e6 / (double)took;
}

/* ---- with it ---- */

static void fedi_begin(struct fedi *fedi)
{
	const struct actor_draft draft = { .username = "bench",
		.kind = "Service" };
	struct bench *bench = &fedi->bench;
	struct err err = { 0 };

	site_begin(bench);
	fedi->hands = (int)sysconf(_SC_NPROCESSORS_ONLN);
	if (fedi->hands > HANDS_MAX)
		fedi->hands = HANDS_MAX;
	{
		AUTO(conn_free)
		struct conn *conn = test_db_conn(bench->conninfo);
		AUTO(tx_end) struct tx *tx = tx_new(conn, bench->arena);

		must(actor_make(
			 tx, bench->node.key, &draft, &fedi->actor, &err) &&
			tx_commit(tx, &err) &&
			actor_key(bench->arena, bench->node.key, &fedi->actor,
			    &fedi->key, &err),
		    "actor", &err);
	}
	test_db_script(
	    bench->conninfo, "UPDATE instance_settings SET fediverse = true");
}

static void fill(struct fedi *fedi, int activities)
{
	struct bench *bench = &fedi->bench;

	test_db_script(bench->conninfo,
	    arena_printf(bench->arena,
		"TRUNCATE fediverse_outbound_queue, fediverse_domains;"
		"SELECT fediverse_enqueue('a' || n, format('{\"id\":\"a%%s\","
		"\"type\":\"Create\",\"object\":{\"messageId\":\"m\","
		"\"content\":\"%%s\"}}', n, repeat('x', 450)),"
		" format('http://p%%s.localhost:%d/inbox', n %% %d),"
		" '%s') FROM generate_series(1, %d) n;"
		"ANALYZE fediverse_outbound_queue",
		relay_sink_port(bench->sink), SITE_PEERS, fedi->actor.id,
		activities));
}

static double drain(struct fedi *fedi, int activities, int daemons)
{
	struct bench *bench = &fedi->bench;
	double rate;

	fill(fedi, activities);
	relay_sink_reset(bench->sink, activities);
	site_start(bench, daemons);
	rate = relay_sink_rate(bench->sink);
	site_stop(bench);
	if (test_db_number(bench->conninfo,
		"SELECT count(*) AS n FROM fediverse_outbound_queue"
		" WHERE status <> 'delivered'") != 0)
		fputs("bench_fediverse: activities are left\n", stderr);
	return rate;
}

/* What a round found. Processor time, us an activity, tells more than rates
 * where the machine has other work. */
struct round {
	double signatures;
	double ceiling;
	double drains[SITE_DAEMONS_MAX];
	double ceiling_cpu;
	double outboxd_cpu;
	double database_cpu;
	double all_cpu; /* the sink's too */
};

static struct round take_round(struct fedi *fedi, int activities)
{
	const struct bench *bench = &fedi->bench;
	struct round round;
	double before;

	round.signatures = by_hand(fedi, fedi->hands, false);
	before = own_cpu_us();
	round.ceiling = by_hand(fedi, fedi->hands, true);
	round.ceiling_cpu =
	    (own_cpu_us() - before) / (fedi->hands * SIGNATURES);
	before = own_cpu_us();
	round.drains[0] = drain(fedi, activities, 1);
	round.outboxd_cpu = bench->cpu_us / activities;
	round.database_cpu = bench->database_cpu_us / activities;
	round.all_cpu = (own_cpu_us() - before) / activities +
	    round.outboxd_cpu + round.database_cpu;
	round.drains[1] = drain(fedi, activities, 2);
	return round;
}

/* Of one member of all rounds. */
static double middle(const struct round *rounds, size_t offset)
{
	double values[ROUNDS];

	for (int i = 0; i < ROUNDS; i++)
		values[i] =
		    *(const double *)((const char *)&rounds[i] + offset);
	return median(values, ROUNDS);
}

#define MIDDLE(rounds, member) middle((rounds), offsetof(struct round, member))

static void figure_rates(struct fedi *fedi, int activities)
{
	struct round rounds[ROUNDS];
	double signatures;
	double ceiling;
	double ceiling_cpu;

	for (int i = 0; i < ROUNDS; i++)
		rounds[i] = take_round(fedi, activities);
	signatures = MIDDLE(rounds, signatures);
	ceiling = MIDDLE(rounds, ceiling);
	ceiling_cpu = MIDDLE(rounds, ceiling_cpu);
	printf("figure=fediverse_signatures value=%.0f unit=signatures/s\n",
	    signatures);
	printf("figure=fediverse_sign_and_post value=%.0f unit=activities/s "
	       "baseline=fediverse_signatures ratio=%.2f\n",
	    ceiling, ceiling / signatures);
	for (size_t i = 0; i < SITE_DAEMONS_MAX; i++)
		printf("figure=fediverse_%zu_outboxd value=%.0f "
		       "unit=activities/s baseline=fediverse_sign_and_post "
		       "ratio=%.2f\n",
		    i + 1, MIDDLE(rounds, drains[i]),
		    MIDDLE(rounds, drains[i]) / ceiling);
	printf("figure=fediverse_sign_and_post_cpu value=%.0f "
	       "unit=us/activity\n",
	    ceiling_cpu);
	printf("figure=fediverse_cpu value=%.0f unit=us/activity outboxd=%.0f "
	       "database=%.0f baseline=fediverse_sign_and_post_cpu "
	       "ratio=%.2f\n",
	    MIDDLE(rounds, all_cpu), MIDDLE(rounds, outboxd_cpu),
	    MIDDLE(rounds, database_cpu),
	    ceiling_cpu / MIDDLE(rounds, all_cpu));
}

/* ---- one activity ---- */

/* clang-format off */
static const struct stmt enqueue = { "bench_enqueue",
	"SELECT FROM fediverse_enqueue($1, '{\"type\":\"Create\","
	"\"messageId\":\"m\"}', $2, $3::text::uuid)",
	SQL_NONE, 3 };
/* clang-format on */

static void enqueue_one(
    struct fedi *fedi, struct conn *conn, struct arena *arena, int place)
{
	AUTO(tx_end) struct tx *tx = tx_new(conn, arena);
	struct err err = { 0 };

	tx_closing(tx);
	must(sql_none(tx, &enqueue, &err,
		 v_text(arena_printf(arena, "one%d", place)),
		 v_text(arena_printf(arena, "http://p%d.localhost:%d/inbox",
		     place % SITE_PEERS, relay_sink_port(fedi->bench.sink))),
		 v_text(fedi->actor.id)) &&
		tx_commit(tx, &err),
	    "enqueue", &err);
}

/* From before the transaction to the receiver. */
static void figure_one(struct fedi *fedi)
{
	struct bench *bench = &fedi->bench;
	AUTO(conn_free) struct conn *conn = test_db_conn(bench->conninfo);
	AUTO(arena_free) struct arena *arena = arena_new();
	double took[EVENTS];
	double p50;

	test_db_script(bench->conninfo,
	    "TRUNCATE fediverse_outbound_queue, fediverse_domains");
	site_start(bench, 1);
	for (int i = 0; i < EVENTS; i++) {
		int64_t before;
		int64_t last;

		relay_sink_reset(bench->sink, 1);
		before = clock_steady_us();
		enqueue_one(fedi, conn, arena, i);
		last = relay_sink_last_us(bench->sink);
		took[i] = (double)(last - before) / 1000;
		arena_reset(arena);
		if (last - before < PACE_US)
			usleep((useconds_t)(PACE_US - (last - before)));
	}
	site_stop(bench);
	p50 = median(took, EVENTS);
	printf("figure=fediverse_enqueued_received_p50 value=%.2f unit=ms "
	       "baseline=4 ratio=%.2f\n",
	    p50, p50 / 4);
	printf("figure=fediverse_enqueued_received_p99 value=%.2f unit=ms\n",
	    took[EVENTS * 99 / 100]);
}

int main(int argc, char **argv)
{
	struct fedi fedi = { .key = NULL };
	int activities = argc > 1 ? (int)strtol(argv[1], NULL, 10) : ACTIVITIES;

	if (!test_db_available()) {
		puts("bench_fediverse: POSTRIDER_TEST_DB is not set");
		return 0;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	fedi_begin(&fedi);
	figure_rates(&fedi, activities);
	figure_one(&fedi);
	pkey_free(&fedi.key);
	site_end(&fedi.bench);
	return 0;
}
