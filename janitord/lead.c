#include "janitord/lead.h"

#include "common/base/work.h"
#include "janitord/figures.h"
#include "janitord/janitord.h"
#include "janitord/lead.sql.h"

enum { ASK_EVERY_MS = 1000 };

/* The lock of whoever leads on this database. */
static const int64_t lead_key = 7236839004;

struct lead {
	struct lead_def def;
	struct work_pool *pool; /* one thread, whose session holds the lock */
	struct loop_timer *timer;
	bool ours;
	bool ending;
	/* of the question under way */
	bool took;
	struct err err;
};

struct taken {
	bool leads;
};

static const struct shape taken_shape[] = {
	SHAPE(BOOL, struct taken, leads, NULL),
	SHAPE_END(struct taken),
};

static void ask_run(void *item, void *state)
{
	struct lead *lead = item;
	struct janitord_worker *worker = state;
	AUTO(tx_end) struct tx *tx = janitord_tx(worker);
	struct taken taken = { 0 };

	lead->err = (struct err){ 0 };
	lead->took = sql_one(tx, &SQL_lead_take, taken_shape, &taken,
			 &lead->err, v_id(lead_key)) &&
	    tx_commit(tx, &lead->err) && taken.leads;
}

static void ask_done(void *item)
{
	struct lead *lead = item;
	bool changed = lead->took != lead->ours;

	loop_timer_arm(lead->timer, ASK_EVERY_MS);
	if (!changed || lead->ending)
		return;
	lead->ours = lead->took;
	metric_set(&figure_leader, 0, lead->ours);
	log_info("leader.changed", F("leads", v_bool(lead->ours)),
	    F("err", v_text(lead->err.code ? lead->err.text : NULL)));
	lead->def.changed(lead->def.arg, lead->ours);
}

static void on_timer(void *arg)
{
	struct lead *lead = arg;

	if (!work_submit(lead->pool, ask_run, ask_done, lead))
		loop_timer_arm(lead->timer, ASK_EVERY_MS);
}

struct lead *lead_new(const struct lead_def *def)
{
	struct lead *lead = calloc(1, sizeof(*lead));
	struct work_def work = {
		.threads = 1,
		.queue_max = 1,
		.worker_begin = janitord_worker_begin,
		.worker_end = janitord_worker_end,
	};

	if (!lead)
		abort();
	lead->def = *def;
	work.ctx = &lead->def;
	lead->pool = work_pool_new(def->loop, &work);
	lead->timer = loop_timer_new(def->loop, on_timer, lead);
	loop_timer_arm(lead->timer, 0);
	return lead;
}

void lead_free(struct lead **lead)
{
	struct lead *old = *lead;

	if (!old)
		return;
	*lead = NULL;
	old->ending = true;
	work_pool_free(&old->pool);
	loop_timer_free(&old->timer);
	free(old);
}

bool lead_is_ours(const struct lead *lead)
{
	return lead && lead->ours;
}
