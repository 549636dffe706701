#include "tests/chaos/pressure.h"

#include "common/base/clock.h"
#include "common/pg/sql.h"
#include "tests/chaos/check.h"
#include "tests/lib/test_db.h"

enum {
	READERS = 4,
	DRAIN_MS = 600000,
	LOOK_MS = 5,
	SMALLEST = 500,
	FEED_PIECE = 5000
};

struct pressure {
	struct site *site;
	struct side *side; /* who sends */
	const struct options *options;
	struct arena *arena;
	int share; /* events of a phase */
	int64_t fed;
	int64_t applied_before;
	_Atomic bool reading;
	_Atomic int64_t reads;
};

/*
 * Messages with all that belongs to them, out of the one that is there: $1
 * how many. What follows the outbox's own order is drawn in it.
 */
static const char feed_query[] =
    "WITH seed AS (SELECT * FROM chaos.seed),"
    " new AS (INSERT INTO dm_messages (dm_channel_id, user_id, content,"
    "  created_at) SELECT dm_channel_id, user_id, 'pressure-' || snowflake(),"
    "  date_trunc('milliseconds', clock_timestamp())"
    "  FROM seed, generate_series(1, %d) RETURNING id, content),"
    " owed AS (INSERT INTO federation_outbox (peer_id, context_type,"
    "  context_id, event_type, entity_id, payload, expires_at)"
    "  SELECT peer_id, context_type, context_id, event_type, new.id::text,"
    "  replace(payload, 'pressure-seed', new.content), expires_at"
    "  FROM seed, new RETURNING 1)"
    " SELECT count(*) AS n FROM owed";

static const char seed_script[] =
    "ALTER TABLE federation_outbox DISABLE TRIGGER keep;"
    "CREATE TABLE chaos.seed AS SELECT m.dm_channel_id, m.user_id, o.*"
    " FROM federation_outbox o JOIN dm_messages m ON m.id = o.entity_id::bigint"
    " WHERE m.content = 'pressure-seed';";

static const char *const readings[READERS] = {
	"SELECT count(*) AS n FROM ops.queue",
	"SELECT count(*) AS n FROM ops.peers",
	"SELECT count(*) AS n FROM federation_outbox WHERE payload LIKE '%zz%'",
	"SELECT count(DISTINCT content) AS n FROM dm_messages",
};

static int64_t entries(const struct pressure *p)
{
	return side_number(
	    p->side, "SELECT count(*) AS n FROM federation_outbox");
}

/* Events that the other node has applied: cheap to ask for, however many dead
 * rows the outbox has. */
static int64_t applied(const struct pressure *p)
{
	return side_number(&p->site->sides[1],
	    "SELECT sum(seq)::bigint AS n FROM dm_channels");
}

static int64_t waiting(const struct pressure *p)
{
	return p->fed - (applied(p) - p->applied_before);
}

/* ---- one message to copy ---- */

static bool seed_make(struct pressure *p)
{
	AUTO(arena_free) struct arena *arena = arena_new();
	const char *there = proxy_origin(p->site->sides[1].proxy);
	const char *pause = arena_printf(arena,
	    "SELECT count(*) AS n FROM ops.peer_pause('%s', 'pressure')",
	    there);
	const char *resume = arena_printf(
	    arena, "SELECT count(*) AS n FROM ops.peer_resume('%s')", there);

	return side_number(p->side, pause) == 1 &&
	    people_say(p->side, "pressure-seed") && entries(p) == 1 &&
	    side_script(p->side, seed_script) &&
	    side_number(p->side, "SELECT count(*) AS n FROM chaos.seed") == 1 &&
	    side_number(p->side, resume) == 1;
}

/* In pieces, so that an interruption ends it. */
static bool feed(struct pressure *p, int count)
{
	AUTO(arena_free) struct arena *arena = arena_new();

	for (int piece; count > 0; count -= piece) {
		piece = count < FEED_PIECE ? count : FEED_PIECE;
		if (chaos_interrupted() ||
		    side_number(p->side,
			arena_printf(arena, feed_query, piece)) != piece)
			return false;
		p->fed += piece;
	}
	return side_script(p->side, "NOTIFY postrider_outbox, ''");
}

static bool drained(const struct pressure *p)
{
	int64_t until = clock_steady_ms() + DRAIN_MS;

	while (waiting(p) != 0) {
		if (clock_steady_ms() > until || chaos_interrupted())
			return false;
		site_supervise(p->site);
		pause_ms(LOOK_MS);
	}
	return true;
}

static bool say(const char *name, double value, const char *unit)
{
	printf("figure=pressure_%s value=%.1f unit=%s\n", name, value, unit);
	fflush(stdout);
	return true;
}

static bool say_sizes(const struct pressure *p, const char *when)
{
	AUTO(arena_free) struct arena *arena = arena_new();

	return say(arena_printf(arena, "table_%s", when),
		   (double)side_number(p->side,
		       "SELECT pg_table_size('federation_outbox') AS n") /
		       1024,
		   "kB") &&
	    say(arena_printf(arena, "index_%s", when),
		(double)side_number(p->side,
		    "SELECT pg_indexes_size('federation_outbox') AS n") /
		    1024,
		"kB");
}

/* How fast they leave, once all of them are there. */
static bool measure(struct pressure *p, const char *name, int count)
{
	int64_t start;
	int64_t left;

	if (!feed(p, count))
		return false;
	start = clock_steady_us();
	left = waiting(p);
	return drained(p) &&
	    say(name, (double)left * 1e6 / (double)(clock_steady_us() - start),
		"events/s");
}

/* ---- what makes it hard ---- */

static bool held_snapshot(struct pressure *p)
{
	AUTO(conn_free) struct conn *conn = test_db_conn(p->side->database);
	int64_t until = clock_steady_ms() + p->options->snapshot_s * 1000;
	int64_t start = clock_steady_us();
	int64_t count = 0;
	struct err err = { 0 };

	if (!conn_script(conn,
		"SET idle_in_transaction_session_timeout = 0;"
		"BEGIN ISOLATION LEVEL REPEATABLE READ;"
		"SELECT count(*) FROM federation_outbox",
		&err))
		return false;
	while (clock_steady_ms() < until) {
		if (!feed(p, p->share) || !drained(p))
			return false;
		count += p->share;
	}
	say("rate_snapshot",
	    (double)count * 1e6 / (double)(clock_steady_us() - start),
	    "events/s");
	return measure(p, "rate_snapshot_end", p->share) &&
	    conn_script(conn, "COMMIT", &err);
}

static void *reader_run(void *arg)
{
	struct pressure *p = arg;

	while (p->reading)
		side_number(p->side, readings[p->reads++ % READERS]);
	return NULL;
}

static bool heavy_readers(struct pressure *p)
{
	pthread_t threads[READERS];
	bool ok;

	p->reading = true;
	p->reads = 0;
	for (int i = 0; i < READERS; i++)
		if (pthread_create(&threads[i], NULL, reader_run, p))
			abort();
	ok = measure(p, "rate_readers", p->share);
	p->reading = false;
	for (int i = 0; i < READERS; i++)
		pthread_join(threads[i], NULL);
	return ok && say("reads", (double)p->reads, "statements");
}

/* More comes than leaves: twice a share waits all the time. */
static bool overload(struct pressure *p)
{
	int64_t until = clock_steady_ms() + p->options->snapshot_s * 1000;
	int64_t start = clock_steady_us();
	int64_t fed = 0;
	int64_t left = 0;

	while (clock_steady_ms() < until && !chaos_interrupted()) {
		if (left < 2 * p->share) {
			if (!feed(p, p->share))
				return false;
			fed += p->share;
		}
		site_supervise(p->site);
		pause_ms(LOOK_MS);
		left = waiting(p);
	}
	say("rate_overload",
	    (double)(fed - left) * 1e6 / (double)(clock_steady_us() - start),
	    "events/s");
	return drained(p);
}

bool pressure_run(struct site *site, const struct options *options)
{
	struct pressure p = {
		.site = site,
		.side = &site->sides[0],
		.options = options,
		.share = options->burst / 20 < SMALLEST ? SMALLEST
							: options->burst / 20,
	};
	struct verdict verdict = { 0 };
	struct err err = { 0 };
	bool good;

	for (int s = 0; s < SIDES; s++)
		proxy_set_log(site->sides[s].proxy, false);
	p.applied_before = applied(&p);
	p.fed = 1;
	good = seed_make(&p) && drained(&p) &&
	    measure(&p, "rate_warm", p.share) && say_sizes(&p, "before") &&
	    measure(&p, "rate_before", p.share) && held_snapshot(&p) &&
	    say_sizes(&p, "snapshot") && heavy_readers(&p) && overload(&p) &&
	    measure(&p, "rate_burst", options->burst) &&
	    say_sizes(&p, "burst") && measure(&p, "rate_after", p.share) &&
	    side_script(p.side, "VACUUM federation_outbox") &&
	    say_sizes(&p, "after");
	if (!good || !check_same(site, &verdict, &err))
		fprintf(stderr, "chaos: pressure did not end: %s\n", err.text);
	printf("scenario=pressure seed=%" PRIu64 " messages=%" PRId64
	       " missing=%d doubled=%d differing=%d dead=%d unexpected=%d"
	       " verdict=%s\n",
	    options->seed, verdict.messages, verdict.missing, verdict.doubled,
	    verdict.differing, verdict.dead, site->unexpected,
	    good && verdict_is_good(&verdict) && !site->unexpected ? "good"
								   : "bad");
	return good && verdict_is_good(&verdict) && !site->unexpected;
}
