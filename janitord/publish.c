#include "janitord/publish.h"

#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/log.h"
#include "janitord/janitord.h"
#include "janitord/publish.sql.h"

enum { EVERY_MS = 2000, ROWS_AT_ONCE = 2000 };

struct publisher {
	struct work_pool *pool;
	bool busy;
	int64_t next_ms;
	/* of the turn under way */
	int64_t published;
	bool failed;
	struct err err;
};

static const struct shape published_shape[] = {
	SHAPE(INT, struct publisher, published, NULL),
	SHAPE_END(struct publisher),
};

static void publish_run(void *item, void *state)
{
	struct publisher *publisher = item;
	struct janitord_worker *worker = state;
	AUTO(tx_end) struct tx *tx = janitord_tx(worker);
	struct publisher turn = { 0 };

	publisher->err = (struct err){ 0 };
	publisher->failed = !sql_one(tx, &SQL_publish_next, published_shape,
				&turn, &publisher->err, v_int(ROWS_AT_ONCE)) ||
	    !tx_commit(tx, &publisher->err);
	publisher->published = turn.published;
}

static void publish_done(void *item)
{
	struct publisher *publisher = item;

	publisher->busy = false;
	if (publisher->failed)
		log_warn(
		    "sync.unpublished", F("err", v_text(publisher->err.text)));
	else if (publisher->published == ROWS_AT_ONCE)
		publisher->next_ms = 0;
}

void publisher_look(struct publisher *publisher)
{
	if (publisher->busy || clock_steady_ms() < publisher->next_ms)
		return;
	publisher->next_ms = clock_steady_ms() + EVERY_MS;
	publisher->busy =
	    work_submit(publisher->pool, publish_run, publish_done, publisher);
}

struct publisher *publisher_new(struct work_pool *pool)
{
	struct publisher *publisher = calloc(1, sizeof(*publisher));

	if (!publisher)
		abort();
	publisher->pool = pool;
	return publisher;
}

void publisher_free(struct publisher **publisher)
{
	free(*publisher);
	*publisher = NULL;
}
