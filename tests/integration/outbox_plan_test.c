#include <criterion/criterion.h>

#include "common/queue/dead.h"
#include "outboxd/drain.sql.h"
#include "outboxd/reading.sql.h"
#include "outboxd/settle.sql.h"
#include "tests/integration/delivery_site.h"

/* A plan that was made while the outbox was empty reads little of it later. */
enum { WAITING = 5000, BATCH = 20, READ_MAX = 300 };

static struct site site;
static struct conn *conn;
static int64_t peer;

static void script(const char *text)
{
	struct err err = { 0 };

	cr_assert(conn_script(conn, text, &err), "%s", err.text);
}

static void begin(void)
{
	if (!test_db_available())
		return;
	site = site_begin();
	conn = test_db_conn(site.db);
	/* As outboxd. */
	script("SET enable_seqscan = off; SET plan_cache_mode = "
	       "force_generic_plan");
	peer = site_peer(&site, "http://p.localhost:1");
	test_db_script(site.db,
	    "UPDATE federation_peers SET lease_until = 'infinity',"
	    " lease_token = '00000000-0000-0000-0000-000000000001'");
}

static void end(void)
{
	if (!conn)
		return;
	conn_free(&conn);
	site_end(&site);
}

TestSuite(outbox_plan, .init = begin, .fini = end, .timeout = 300);

struct row {
	int64_t id;
};

static const struct shape id_shape[] = {
	SHAPE(ID, struct row, id, NULL),
	SHAPE_END(struct row),
};

/* Entries in the middle of what waits. */
struct some {
	int64_t ids[BATCH];
	const char *words[BATCH];
	int64_t times[BATCH];
};

static struct val token(void)
{
	return v_text("00000000-0000-0000-0000-000000000001");
}

static bool set_aside(struct tx *tx, struct some *some, struct err *err)
{
	return sql_none(tx, &SQL_settle_set_aside, err, v_id(peer),
	    v_ids(some->ids, BATCH), v_texts(some->words, BATCH),
	    v_times(some->times, BATCH));
}

static bool bury(struct tx *tx, struct some *some, struct err *err)
{
	const struct dead_letters letters = { .peer = peer,
		.origin = "p",
		.ids = some->ids,
		.whys = some->words,
		.answers = some->words,
		.count = BATCH };

	return dead_from_outbox(tx, &letters, err);
}

static bool take_away(struct tx *tx, struct some *some, struct err *err)
{
	return sql_none(tx, &SQL_drain_remove, err, v_id(peer), token(),
	    v_ids(some->ids, BATCH));
}

static bool present(struct tx *tx, struct some *some, struct err *err)
{
	return sql_one(tx, &SQL_drain_present, NULL, NULL, err, v_id(peer),
	    token(), v_int(some->ids[0]), v_int(20000), v_int(256));
}

static bool read_on(struct tx *tx, struct some *some, struct err *err)
{
	struct rows rows;

	return sql_many(tx, &SQL_reading_next, id_shape, &rows, err, v_id(peer),
	    token(), v_int(some->ids[BATCH - 1]), v_int(BATCH),
	    v_ids(some->ids, BATCH), v_ids(NULL, 0), v_int(some->ids[0] - 1),
	    v_text("1:9:1"), v_int(some->ids[0]), v_int(some->ids[1]),
	    v_bool(false), v_int(0), v_int(0), v_int(0));
}

static int64_t entries_read(void)
{
	script("SELECT pg_stat_force_next_flush()");
	script("SELECT 1");
	return site_number(&site,
	    "SELECT idx_tup_read AS n FROM pg_stat_user_indexes WHERE "
	    "indexrelname = 'federation_outbox_pkey'");
}

typedef bool step(struct tx *tx, struct some *some, struct err *err);

static int64_t read_by(step *run, struct some *some)
{
	AUTO(tx_end) struct tx *tx = tx_new(conn, site.arena);
	int64_t before = entries_read();
	struct err err = { 0 };

	cr_assert(run(tx, some, &err) && tx_commit(tx, &err), "%s", err.text);
	return entries_read() - before;
}

/* They follow upon each other, as a batch that was refused does. */
static struct some some_from(int64_t first)
{
	struct some some = { 0 };

	for (int i = 0; i < BATCH; i++) {
		some.ids[i] = first + i;
		some.words[i] = "processing_error";
		some.times[i] = 1;
	}
	return some;
}

Test(outbox_plan, what_was_planned_for_nothing_reads_little_of_much)
{
	static const struct {
		const char *name;
		step *run;
	} steps[] = { { "set aside", set_aside }, { "bury", bury },
		{ "take away", take_away }, { "present", present },
		{ "read on", read_on } };
	struct some none;

	test_db_needed();
	none = some_from(1);
	for (size_t i = 0; i < COUNT(steps); i++)
		read_by(steps[i].run, &none);
	site_enqueue_many(&site, peer, "m", WAITING);
	for (size_t i = 0; i < COUNT(steps); i++) {
		struct some some = some_from(
		    site_number(
			&site, "SELECT min(id) AS n FROM federation_outbox") +
		    WAITING / 4 + (int64_t)i * 100);
		int64_t entries = read_by(steps[i].run, &some);

		cr_expect_lt(
		    entries, READ_MAX, "%s: %" PRId64, steps[i].name, entries);
	}
	cr_expect_eq(site_number(&site,
			 "SELECT count(*) AS n FROM federation_outbox WHERE "
			 "refusals > 0"),
	    BATCH);
	cr_expect_eq(
	    site_number(&site, "SELECT count(*) AS n FROM dead_letters"),
	    BATCH);
}
