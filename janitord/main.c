#include "common/base/build.h"
#include "common/base/clock.h"
#include "common/base/daemon.h"
#include "common/base/work.h"
#include "common/net/client.h"
#include "common/net/metrics_page.h"
#include "common/net/url.h"
#include "common/pg/listen.h"
#include "common/pg/schema.h"
#include "common/queue/worker.h"
#include "janitord/figures.h"
#include "janitord/janitord.h"
#include "janitord/lead.h"
#include "janitord/probe.h"
#include "janitord/publish.h"
#include "janitord/rotate.h"
#include "janitord/sweep.h"
#include "janitord/watch.h"

enum {
	BOOT_AGAIN_MS = 1000,
	TICK_MS = 1000,
	SEEN_EVERY = 20, /* ticks */
	STATEMENT_TIMEOUT_MS = 20000,
	QUEUE_MAX = 1024
};

#define CONF janitord_conf

struct janitord_conf janitord_conf;

/* clang-format off */
static const struct conf_key janitord_keys[] = {
	KEY(INT, probes_max, "16", "1", "256", LIVE,
		"Silent peers that are asked for a sign of life at once."),
	KEY(SPAN, sweep_every, "1min", "1s", "1h", LIVE,
		"Between two rounds of taking away what is over."),
	KEY(SPAN, dead_letters_kept, "90d", "1h", "3650d", LIVE,
		"How long what could not be delivered is kept."),
	KEY(SPAN, events_kept, "30d", "1h", "3650d", LIVE,
		"How long clients may catch up with changes one by one."),
	{ 0 },
};
/* clang-format on */

struct janitord {
	struct loop *loop;
	struct arena *arena; /* the process's own */
	struct worker_self self;
	struct work_pool *pool;
	struct client *client;
	struct listener *listener;
	struct lead *lead;
	struct prober *prober;
	struct publisher *publisher;
	struct rotator *rotator;
	struct sweeper *sweeper;
	struct watch *watch;
	struct http_server *figures;
	struct loop_timer *boot;
	struct loop_timer *tick;
	const char *application;
	const char *origin;
	int64_t ticks;
	bool draining;
	/* of the unit under way: start, or being seen */
	bool seeing;
	int64_t seeing_began; /* steady ms: the proof of work */
	bool failed;
	struct err err;
};

/* ---- workers ---- */

void *janitord_worker_begin(void *ctx)
{
	const char *const *application = ctx;
	const struct conn_def def = {
		.conninfo = janitord_conf.common.database,
		.application = *application,
		.statement_timeout_ms = STATEMENT_TIMEOUT_MS,
	};
	struct janitord_worker *worker = calloc(1, sizeof(*worker));

	if (!worker)
		abort();
	worker->conn = conn_new(&def);
	worker->arena = arena_new();
	return worker;
}

void janitord_worker_end(void *state)
{
	struct janitord_worker *worker = state;

	conn_free(&worker->conn);
	arena_free(&worker->arena);
	free(worker);
}

/* ---- being seen ---- */

static void seen_run(void *item, void *state)
{
	struct janitord *janitord = item;
	struct janitord_worker *worker = state;
	AUTO(tx_end) struct tx *tx = janitord_tx(worker);

	tx_lazy(tx);
	janitord->err = (struct err){ 0 };
	janitord->failed =
	    !worker_seen(tx, &janitord->self, "{}", &janitord->err) ||
	    !worker_sweep(tx, &janitord->err) || !tx_commit(tx, &janitord->err);
}

static void seen_done(void *item)
{
	struct janitord *janitord = item;

	janitord->seeing = false;
	if (janitord->failed)
		log_warn("worker.unseen", F("err", v_text(janitord->err.text)));
}

static void be_seen(struct janitord *janitord)
{
	if (janitord->seeing || !listener_is_up(janitord->listener))
		return;
	janitord->seeing_began = clock_steady_ms();
	janitord->seeing =
	    work_submit(janitord->pool, seen_run, seen_done, janitord);
}

/* ---- leading ---- */

static void on_lead(void *arg, bool leads)
{
	struct janitord *janitord = arg;

	sweeper_run(janitord->sweeper, leads);
	if (!leads)
		watch_stop(janitord->watch);
	daemon_status(leads ? "leading" : "ready to lead");
}

static void on_tick(void *arg)
{
	struct janitord *janitord = arg;

	if (janitord->ticks++ % SEEN_EVERY == 0)
		be_seen(janitord);
	if (lead_is_ours(janitord->lead)) {
		prober_look(janitord->prober);
		publisher_look(janitord->publisher);
		rotator_look(janitord->rotator);
		watch_look(janitord->watch);
	}
	loop_timer_arm(janitord->tick, TICK_MS);
}

static void on_hint(
    void *arg UNUSED, const char *channel UNUSED, const char *payload UNUSED)
{
}

/* The listener holds our worker id; there is nothing it waits for. */
static void work_begin(struct janitord *janitord)
{
	static const char *const channels[] = { NULL };
	const struct listener_def listener = {
		.conninfo = janitord_conf.common.database,
		.application = janitord->application,
		.channels = channels,
		.lock_key = janitord->self.id,
		.hint = on_hint,
		.arg = janitord,
	};
	const struct lead_def lead = {
		.loop = janitord->loop,
		.application = janitord->application,
		.changed = on_lead,
		.arg = janitord,
	};

	janitord->listener = listener_new(janitord->loop, &listener);
	janitord->lead = lead_new(&lead);
	loop_timer_arm(janitord->tick, TICK_MS);
}

/* ---- start: the database may not be there yet ---- */

static void boot_run(void *item, void *state)
{
	struct janitord *janitord = item;
	struct janitord_worker *worker = state;
	AUTO(tx_end) struct tx *tx = janitord_tx(worker);

	janitord->err = (struct err){ 0 };
	janitord->failed = !schema_check(tx, &janitord->err) ||
	    !worker_register(tx, &janitord->self, &janitord->err) ||
	    !tx_commit(tx, &janitord->err);
}

static void boot_done(void *item)
{
	struct janitord *janitord = item;

	if (janitord->draining)
		return;
	if (janitord->failed && janitord->err.code != ERR_BUSY)
		daemon_refuse(&janitord->err);
	if (janitord->failed) {
		janitord->self.id = 0;
		log_warn(
		    "daemon.waiting", F("err", v_text(janitord->err.text)));
		daemon_status("waiting: %s", janitord->err.text);
		loop_timer_arm(janitord->boot, BOOT_AGAIN_MS);
		return;
	}
	work_begin(janitord);
	daemon_status("ready to lead");
	daemon_ready();
}

static void on_boot(void *arg)
{
	struct janitord *janitord = arg;

	if (!work_submit(janitord->pool, boot_run, boot_done, janitord))
		loop_timer_arm(janitord->boot, BOOT_AGAIN_MS);
}

static void parts_begin(struct janitord *janitord)
{
	const struct conf_common *conf = &janitord_conf.common;
	const struct client_def client = {
		.allow_private_addresses = conf->allow_private_addresses,
		.ca_file = conf->ca_file,
		.resolve = conf->resolve,
		.user_agent = "postrider/" POSTRIDER_VERSION,
		.connections_per_host_max = 1,
	};
	const struct work_def work = {
		.threads = (int)conf->workers,
		.queue_max = QUEUE_MAX,
		.worker_begin = janitord_worker_begin,
		.worker_end = janitord_worker_end,
		.ctx = &janitord->application,
	};

	janitord->client = client_new(janitord->loop, &client);
	janitord->pool = work_pool_new(janitord->loop, &work);
	janitord->boot = loop_timer_new(janitord->loop, on_boot, janitord);
	janitord->tick = loop_timer_new(janitord->loop, on_tick, janitord);
	janitord->prober = prober_new(&(const struct prober_def){
	    .loop = janitord->loop,
	    .pool = janitord->pool,
	    .client = janitord->client,
	    .origin = janitord->origin,
	});
	janitord->publisher = publisher_new(janitord->pool);
	janitord->rotator = rotator_new(janitord->pool);
	janitord->sweeper = sweeper_new(janitord->loop, janitord->pool);
	janitord->watch = watch_new(janitord->pool);
}

static bool janitord_start(struct daemon *daemon, struct err *err)
{
	const struct conf_common *conf = &janitord_conf.common;
	struct arena *arena = arena_new();
	struct janitord *janitord = ARENA_NEW(arena, struct janitord);
	const char *name = conf->instance[0] ? conf->instance : daemon_run_id();
	struct origin origin;

	daemon->state = janitord;
	daemon->ready_later = true;
	janitord->arena = arena;
	janitord->loop = daemon->loop;
	janitord->application = arena_printf(arena, "janitord/%s", name);
	janitord->self.daemon = "janitord";
	janitord->self.instance = name;
	janitor_figures_register();
	if (!origin_parse(arena, conf->origin, &origin))
		return err_set(err, ERR_INVALID, "origin is not an origin");
	janitord->origin = origin.text;
	if (conf->metrics_listen[0]) {
		janitord->figures = metrics_page_serve(
		    janitord->loop, conf->metrics_listen, err);
		if (!janitord->figures)
			return false;
	}
	parts_begin(janitord);
	on_boot(janitord);
	return true;
}

/* ---- the rest of its life ---- */

/* The lock goes at once: somebody else leads while we end. */
static void janitord_drain(struct daemon *daemon)
{
	struct janitord *janitord = daemon->state;

	janitord->draining = true;
	loop_timer_disarm(janitord->boot);
	loop_timer_disarm(janitord->tick);
	prober_stop(janitord->prober);
	sweeper_run(janitord->sweeper, false);
	lead_free(&janitord->lead);
	client_free(&janitord->client);
}

static bool janitord_drained(struct daemon *daemon)
{
	struct janitord *janitord = daemon->state;

	return work_running(janitord->pool) + work_waiting(janitord->pool) == 0;
}

/* A stalled database is no reason to be restarted; stuck workers are. */
static bool janitord_alive(struct daemon *daemon)
{
	struct janitord *janitord = daemon->state;

	return !janitord->seeing ||
	    clock_steady_ms() - janitord->seeing_began <
	    3 * (int64_t)STATEMENT_TIMEOUT_MS;
}

static void janitord_stop(struct daemon *daemon)
{
	struct janitord *janitord = daemon->state;
	struct arena *arena = janitord->arena;

	lead_free(&janitord->lead);
	listener_free(&janitord->listener);
	client_free(&janitord->client);
	work_pool_free(&janitord->pool);
	prober_free(&janitord->prober);
	publisher_free(&janitord->publisher);
	rotator_free(&janitord->rotator);
	sweeper_free(&janitord->sweeper);
	watch_free(&janitord->watch);
	loop_timer_free(&janitord->boot);
	loop_timer_free(&janitord->tick);
	http_server_free(&janitord->figures);
	arena_free(&arena);
}

/* janitord -- keeps order. Manual: postrider-janitord(8). */
int main(int argc, char **argv)
{
	static const struct daemon_def janitord = {
		.name = "janitord",
		.keys = janitord_keys,
		.conf = &janitord_conf,
		.start = janitord_start,
		.drain = janitord_drain,
		.drained = janitord_drained,
		.alive = janitord_alive,
		.stop = janitord_stop,
	};

	return daemon_main(&janitord, argc, argv);
}
