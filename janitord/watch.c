#include "janitord/watch.h"

#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/log.h"
#include "janitord/figures.h"
#include "janitord/janitord.h"
#include "janitord/watch.sql.h"

enum {
	EVERY_MS = 10 * 1000,
	SNAPSHOT_MAX_S = 30 * 60,
	DEAD_ROWS_MAX = 100 * 1000 /* and more of them than of living ones */
};
static const double notify_usage_max = 0.1;

struct queue {
	const char *queue;
	int64_t waiting;
	int64_t leased;
	int64_t set_aside;
	int64_t dead;
	double oldest_s;
};

static const struct shape queue_shape[] = {
	SHAPE(TEXT, struct queue, queue, NULL),
	SHAPE(INT, struct queue, waiting, NULL),
	SHAPE(INT, struct queue, leased, NULL),
	SHAPE(INT, struct queue, set_aside, NULL),
	SHAPE(INT, struct queue, dead, NULL),
	SHAPE(REAL, struct queue, oldest_s, NULL),
	SHAPE_END(struct queue),
};

struct state {
	const char *state;
	int64_t peers;
};

static const struct shape state_shape[] = {
	SHAPE(TEXT, struct state, state, NULL),
	SHAPE(INT, struct state, peers, NULL),
	SHAPE_END(struct state),
};

struct server {
	double notify_usage;
	double snapshot_age_s;
};

static const struct shape server_shape[] = {
	SHAPE(REAL, struct server, notify_usage, NULL),
	SHAPE(REAL, struct server, snapshot_age_s, NULL),
	SHAPE_END(struct server),
};

struct churn {
	const char *table;
	int64_t dead;
	int64_t live;
};

static const struct shape churn_shape[] = {
	SHAPE(TEXT, struct churn, table, NULL),
	SHAPE(INT, struct churn, dead, NULL),
	SHAPE(INT, struct churn, live, NULL),
	SHAPE_END(struct churn),
};

struct watch {
	struct work_pool *pool;
	struct arena *arena; /* of the look under way */
	int64_t next_ms;     /* steady */
	bool leads;
	bool looking;
	bool failed;
	struct err err;
	struct server server;
	struct rows queues;
	struct rows states;
	struct rows churns;
	/* which limits are passed */
	bool notify_full;
	bool snapshot_old;
	bool rows_dead;
};

/* ---- looking ---- */

static size_t count_of(const char *const *texts)
{
	size_t count = 0;

	while (texts[count])
		count++;
	return count;
}

/* The transaction's arena is ours: what it read outlives it. */
static void look_run(void *item, void *state)
{
	struct watch *watch = item;
	struct janitord_worker *worker = state;
	AUTO(tx_end) struct tx *tx = tx_new(worker->conn, watch->arena);
	const char *const *tables = figure_dead_rows.values;
	struct err *err = &watch->err;

	*err = (struct err){ 0 };
	watch->failed = !sql_one(tx, &SQL_watch_server, server_shape,
			    &watch->server, err) ||
	    !sql_many(
		tx, &SQL_watch_queues, queue_shape, &watch->queues, err) ||
	    !sql_many(tx, &SQL_watch_peers, state_shape, &watch->states, err) ||
	    !sql_many(tx, &SQL_watch_dead_rows, churn_shape, &watch->churns,
		err, v_texts(tables, count_of(tables))) ||
	    !tx_commit(tx, err);
}

/* ---- showing ---- */

static void show_queues(const struct rows *rows)
{
	const struct queue *queues = rows->items;

	for (size_t i = 0; i < rows->count; i++) {
		const struct queue *q = &queues[i];
		size_t queue = metric_place(&figure_queue_age, q->queue);
		size_t first = queue * QUEUE_STATES;

		metric_set(&figure_queue_age, queue, q->oldest_s);
		metric_set(
		    &figure_queue, first + QUEUE_WAITING, (double)q->waiting);
		metric_set(
		    &figure_queue, first + QUEUE_LEASED, (double)q->leased);
		metric_set(&figure_queue, first + QUEUE_SET_ASIDE,
		    (double)q->set_aside);
		metric_set(&figure_queue, first + QUEUE_DEAD, (double)q->dead);
	}
}

static void show_peers(const struct rows *rows)
{
	const struct state *states = rows->items;

	for (size_t i = 0; figure_peers.values[i]; i++)
		metric_set(&figure_peers, i, 0);
	for (size_t i = 0; i < rows->count; i++)
		metric_add(&figure_peers,
		    metric_place(&figure_peers, states[i].state),
		    states[i].peers);
}

static const struct churn *show_dead_rows(const struct rows *rows)
{
	const struct churn *churns = rows->items;
	const struct churn *worst = NULL;

	for (size_t i = 0; i < rows->count; i++) {
		const struct churn *c = &churns[i];

		metric_set(&figure_dead_rows,
		    metric_place(&figure_dead_rows, c->table), (double)c->dead);
		if (c->dead > DEAD_ROWS_MAX && c->dead > c->live &&
		    (!worst || c->dead > worst->dead))
			worst = c;
	}
	return worst;
}

/* True when it has just become so. */
static bool passed(bool *was, bool is)
{
	bool news = is && !*was;

	*was = is;
	return news;
}

static void show(struct watch *watch)
{
	const struct server *server = &watch->server;
	const struct churn *worst = show_dead_rows(&watch->churns);

	show_queues(&watch->queues);
	show_peers(&watch->states);
	metric_set(&figure_notify_usage, 0, server->notify_usage);
	metric_set(&figure_snapshot_age, 0, server->snapshot_age_s);
	if (passed(
		&watch->notify_full, server->notify_usage > notify_usage_max))
		log_warn("database.notifications_pile_up",
		    F("ratio", v_real(server->notify_usage)),
		    F("reason", v_text("a listener does not read")));
	if (passed(
		&watch->snapshot_old, server->snapshot_age_s > SNAPSHOT_MAX_S))
		log_warn("database.snapshot_old",
		    F("ms", v_int((int64_t)server->snapshot_age_s * 1000)),
		    F("reason", v_text("vacuum waits for a transaction")));
	if (passed(&watch->rows_dead, worst != NULL))
		log_warn("database.rows_dead",
		    F("table", v_text(worst ? worst->table : NULL)),
		    F("events", v_int(worst ? worst->dead : 0)),
		    F("reason", v_text("vacuum does not keep up")));
}

static void look_done(void *item)
{
	struct watch *watch = item;

	watch->looking = false;
	if (watch->failed)
		log_warn("watch.failed", F("err", v_text(watch->err.text)));
	else if (watch->leads)
		show(watch);
	arena_reset(watch->arena);
}

void watch_look(struct watch *watch)
{
	watch->leads = true;
	if (watch->looking || clock_steady_ms() < watch->next_ms)
		return;
	watch->next_ms = clock_steady_ms() + EVERY_MS;
	watch->looking = work_submit(watch->pool, look_run, look_done, watch);
}

void watch_stop(struct watch *watch)
{
	watch->leads = false;
	watch->next_ms = 0;
	janitor_figures_forget();
}

/* ---- life ---- */

struct watch *watch_new(struct work_pool *pool)
{
	struct watch *watch = calloc(1, sizeof(*watch));

	if (!watch)
		abort();
	watch->pool = pool;
	watch->arena = arena_new();
	return watch;
}

void watch_free(struct watch **watch)
{
	if (!*watch)
		return;
	arena_free(&(*watch)->arena);
	free(*watch);
	*watch = NULL;
}
