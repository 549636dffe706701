#include "common/base/build.h"
#include "common/base/clock.h"
#include "common/base/daemon.h"
#include "common/base/work.h"
#include "common/federation/node.h"
#include "common/net/metrics_page.h"
#include "common/pg/listen.h"
#include "common/pg/notify.h"
#include "common/pg/schema.h"
#include "common/queue/lease.h"
#include "common/queue/worker.h"
#include "outboxd/asks.h"
#include "outboxd/deliver.h"
#include "outboxd/fediverse.h"
#include "outboxd/fediverse_figures.h"
#include "outboxd/figures.h"
#include "outboxd/outboxd.h"

enum {
	BOOT_AGAIN_MS = 1000,
	TICK_MS = 1000,
	SEEN_EVERY = 5, /* reaps */
	STATEMENT_TIMEOUT_MS = 20000,
	QUEUE_MAX = 4096
};

#define CONF outboxd_conf

struct outboxd_conf outboxd_conf;

/* clang-format off */
static const struct conf_key outboxd_keys[] = {
	KEY(SPAN, answer_timeout, "30s", "1s", "5min", LIVE,
		"How long a peer may take to answer a batch."),
	KEY(INT, peers_max, "64", "1", "1024", LIVE,
		"Peers that are delivered to at once."),
	KEY(INT, activities_max, "128", "1", "1024", LIVE,
		"ActivityPub deliveries that are under way at once."),
	KEY(TEXT, webhook_secret_file, "", NULL, NULL, BOOT,
		"File with the secret that signs webhooks; empty: none is sent."),
	{ 0 },
};
/* clang-format on */

struct outboxd {
	struct loop *loop;
	struct arena *arena; /* the process's own */
	struct node node;
	struct worker_self self;
	struct work_pool *pool;
	struct client *client;
	struct notifier *notifier;
	struct listener *listener;
	struct deliverer *deliverer;
	struct asks *asks;
	struct home home;
	struct fediverse *fediverse;
	struct http_server *figures;
	struct loop_timer *boot;
	struct loop_timer *tick;
	const char *application;
	const char *agent; /* who calls, and where to ask about it */
	bool ready;
	/* of the worker's unit under way */
	bool failed;
	int64_t freed;
	int64_t reaps;
	struct worker_pace pace;
	struct worker_pace activity_pace;
	int64_t ticks;
	struct err err;
	bool reaping;
	int64_t reap_began; /* steady ms: the proof of work */
};

/* ---- workers ---- */

static void *worker_begin(void *ctx)
{
	const struct outboxd *outboxd = ctx;
	const struct conn_def def = {
		.conninfo = outboxd_conf.common.database,
		.application = outboxd->application,
		.signals_after = true,
		.statement_timeout_ms = STATEMENT_TIMEOUT_MS,
		.by_index = true,
	};
	struct outboxd_worker *worker = calloc(1, sizeof(*worker));

	if (!worker)
		abort();
	worker->conn = conn_new(&def);
	worker->arena = arena_new();
	conn_notifier_set(worker->conn, outboxd->notifier);
	return worker;
}

static void worker_end(void *state)
{
	struct outboxd_worker *worker = state;

	conn_free(&worker->conn);
	arena_free(&worker->arena);
	free(worker);
}

/* ---- freeing what the dead held, being seen ---- */

static const char *rates(struct outboxd *outboxd, struct arena *arena)
{
	int64_t entries = worker_pace_per_minute(
	    &outboxd->pace, metric_total(&figure_removed));
	int64_t activities = worker_pace_per_minute(
	    &outboxd->activity_pace, metric_total(&figure_activities_ended));

	return arena_printf(arena,
	    "{\"outbox\":%" PRId64 ",\"fediverse\":%" PRId64 "}", entries,
	    activities);
}

static void reap_run(void *item, void *state)
{
	struct outboxd *outboxd = item;
	struct outboxd_worker *worker = state;
	AUTO(tx_end) struct tx *tx = outboxd_tx(worker);
	bool seen = outboxd->reaps++ % SEEN_EVERY == 0;

	tx_lazy(tx);
	outboxd->err = (struct err){ 0 };
	outboxd->freed = 0;
	outboxd->failed = !lease_reap(tx, &outboxd->freed, &outboxd->err) ||
	    (seen &&
		!worker_seen(tx, &outboxd->self, rates(outboxd, tx_arena(tx)),
		    &outboxd->err)) ||
	    (seen && !worker_sweep(tx, &outboxd->err)) ||
	    !tx_commit(tx, &outboxd->err);
}

static void reap_done(void *item)
{
	struct outboxd *outboxd = item;

	outboxd->reaping = false;
	if (outboxd->failed) {
		log_warn("worker.unseen", F("err", v_text(outboxd->err.text)));
		return;
	}
	if (outboxd->freed == 0)
		return;
	metric_add(&figure_leases_taken_over, 0, outboxd->freed);
	log_info("lease.freed", F("events", v_int(outboxd->freed)));
	deliver_wake(outboxd->deliverer);
	fediverse_wake(outboxd->fediverse);
}

static void reap(struct outboxd *outboxd)
{
	if (outboxd->reaping || !listener_is_up(outboxd->listener))
		return;
	outboxd->reap_began = clock_steady_ms();
	outboxd->reaping =
	    work_submit(outboxd->pool, reap_run, reap_done, outboxd);
}

static void on_tick(void *arg)
{
	struct outboxd *outboxd = arg;

	if (outboxd->ticks++ % (WORKER_REAP_MS / TICK_MS) == 0)
		reap(outboxd);
	asks_wake(outboxd->asks);
	loop_timer_arm(outboxd->tick, TICK_MS);
}

/* ---- hints ---- */

static void on_up(void *arg)
{
	struct outboxd *outboxd = arg;

	deliver_up(outboxd->deliverer);
	fediverse_up(outboxd->fediverse);
	asks_wake(outboxd->asks);
}

static void on_down(void *arg)
{
	struct outboxd *outboxd = arg;

	log_warn("listener.down");
	deliver_down(outboxd->deliverer);
	fediverse_down(outboxd->fediverse);
}

static void on_outbox(struct outboxd *outboxd, const char *payload)
{
	int64_t peer = strtoll(payload, NULL, 10);

	if (peer > 0)
		deliver_wake_peer(outboxd->deliverer, peer);
	else
		deliver_wake(outboxd->deliverer);
}

static void on_hint(void *arg, const char *channel, const char *payload)
{
	struct outboxd *outboxd = arg;

	if (strcmp(channel, "postrider_request") == 0) {
		asks_wake(outboxd->asks);
		return;
	}
	if (strcmp(channel, "postrider_control") == 0 &&
	    strcmp(payload, "peer") == 0)
		deliver_recheck(outboxd->deliverer);
	/* One queue's signal is no work for the other. */
	if (strcmp(channel, "postrider_outbox") == 0)
		on_outbox(outboxd, payload);
	else if (strcmp(channel, "postrider_activity") != 0)
		deliver_wake(outboxd->deliverer);
	if (strcmp(channel, "postrider_outbox") != 0)
		fediverse_wake(outboxd->fediverse);
}

static void listen_begin(struct outboxd *outboxd)
{
	static const char *const channels[] = { "postrider_outbox",
		"postrider_activity", "postrider_request", "postrider_control",
		NULL };
	const struct listener_def def = {
		.conninfo = outboxd_conf.common.database,
		.application = outboxd->application,
		.channels = channels,
		.lock_key = outboxd->self.id,
		.on_up = on_up,
		.on_down = on_down,
		.hint = on_hint,
		.arg = outboxd,
	};

	outboxd->listener = listener_new(outboxd->loop, &def);
	loop_timer_arm(outboxd->tick, TICK_MS);
}

/* ---- start: the database may not be there yet ---- */

static void boot_run(void *item, void *state)
{
	struct outboxd *outboxd = item;
	struct outboxd_worker *worker = state;
	AUTO(tx_end) struct tx *tx = outboxd_tx(worker);

	outboxd->err = (struct err){ 0 };
	outboxd->failed = !schema_check(tx, &outboxd->err) ||
	    !worker_register(tx, &outboxd->self, &outboxd->err) ||
	    !tx_commit(tx, &outboxd->err);
}

static void boot_done(void *item)
{
	struct outboxd *outboxd = item;

	if (outboxd->failed && outboxd->err.code != ERR_BUSY)
		daemon_refuse(&outboxd->err);
	if (outboxd->failed) {
		outboxd->self.id = 0;
		log_warn("daemon.waiting", F("err", v_text(outboxd->err.text)));
		daemon_status("waiting: %s", outboxd->err.text);
		loop_timer_arm(outboxd->boot, BOOT_AGAIN_MS);
		return;
	}
	listen_begin(outboxd);
	outboxd->ready = true;
	daemon_status("delivering");
	daemon_ready();
}

static void on_boot(void *arg)
{
	struct outboxd *outboxd = arg;

	if (!work_submit(outboxd->pool, boot_run, boot_done, outboxd))
		loop_timer_arm(outboxd->boot, BOOT_AGAIN_MS);
}

static void parts_begin(struct outboxd *outboxd)
{
	const struct conf_common *conf = &outboxd_conf.common;
	const struct client_def client = {
		.allow_private_addresses = conf->allow_private_addresses,
		.ca_file = conf->ca_file,
		.resolve = conf->resolve,
		.user_agent = outboxd->agent,
		.connections_per_host_max = 4,
	};
	const struct work_def work = {
		.threads = (int)conf->workers,
		.queue_max = QUEUE_MAX,
		.worker_begin = worker_begin,
		.worker_end = worker_end,
		.ctx = outboxd,
	};

	outboxd->notifier = notifier_new(conf->database, outboxd->application);
	outboxd->client = client_new(outboxd->loop, &client);
	outboxd->pool = work_pool_new(outboxd->loop, &work);
	outboxd->boot = loop_timer_new(outboxd->loop, on_boot, outboxd);
	outboxd->tick = loop_timer_new(outboxd->loop, on_tick, outboxd);
}

static void fediverse_begin(struct outboxd *outboxd)
{
	const struct conf_common *conf = &outboxd_conf.common;

	fediverse_figures_register();
	outboxd->fediverse = fediverse_new(&(const struct fediverse_def){
	    .loop = outboxd->loop,
	    .pool = outboxd->pool,
	    .client = {
		.allow_private_addresses = conf->allow_private_addresses,
		.ca_file = conf->ca_file,
		.resolve = conf->resolve,
		.user_agent = outboxd->agent,
		.connections_per_host_max = FEDIVERSE_PER_DOMAIN,
	    },
	    .home = &outboxd->home,
	    .self = &outboxd->self,
	    .at_once_max = &outboxd_conf.activities_max,
	});
}

static bool home_load(struct outboxd *outboxd, struct err *err)
{
	const char *file = outboxd_conf.webhook_secret_file;

	outboxd->home.origin = outboxd->node.origin;
	outboxd->home.key = outboxd->node.key;
	return !file[0] ||
	    secret_file_read(
		outboxd->arena, file, &outboxd->home.webhook_secret, err);
}

static bool outboxd_start(struct daemon *daemon, struct err *err)
{
	const struct conf_common *conf = &outboxd_conf.common;
	struct arena *arena = arena_new();
	struct outboxd *outboxd = ARENA_NEW(arena, struct outboxd);
	const char *name = conf->instance[0] ? conf->instance : daemon_run_id();

	daemon->state = outboxd;
	daemon->ready_later = true;
	outboxd->arena = arena;
	outboxd->loop = daemon->loop;
	outboxd->application = arena_printf(arena, "outboxd/%s", name);
	outboxd->self.daemon = "outboxd";
	outboxd->self.instance = name;
	figures_register();
	if (!node_load(arena, conf->origin, conf->node_key_file, &outboxd->node,
		err) ||
	    !home_load(outboxd, err))
		return false;
	if (conf->metrics_listen[0]) {
		outboxd->figures = metrics_page_serve(
		    outboxd->loop, conf->metrics_listen, err);
		if (!outboxd->figures)
			return false;
	}
	outboxd->agent =
	    arena_printf(arena, "Postrider/" POSTRIDER_VERSION " (+%s/)",
		outboxd->node.origin.text);
	parts_begin(outboxd);
	outboxd->deliverer = deliver_new(&(const struct deliver_def){
	    .loop = outboxd->loop,
	    .pool = outboxd->pool,
	    .client = outboxd->client,
	    .node = &outboxd->node,
	    .self = &outboxd->self,
	});
	outboxd->asks = asks_new(&(const struct asks_def){
	    .loop = outboxd->loop,
	    .pool = outboxd->pool,
	    .client = outboxd->client,
	    .node = &outboxd->node,
	    .self = &outboxd->self,
	});
	fediverse_begin(outboxd);
	on_boot(outboxd);
	return true;
}

/* ---- the rest of its life ---- */

static void outboxd_drain(struct daemon *daemon)
{
	struct outboxd *outboxd = daemon->state;

	loop_timer_disarm(outboxd->boot);
	loop_timer_disarm(outboxd->tick);
	deliver_drain(outboxd->deliverer);
	asks_drain(outboxd->asks);
	fediverse_drain(outboxd->fediverse);
}

static bool outboxd_drained(struct daemon *daemon)
{
	struct outboxd *outboxd = daemon->state;

	return deliver_drained(outboxd->deliverer) && !outboxd->reaping &&
	    asks_drained(outboxd->asks) &&
	    fediverse_drained(outboxd->fediverse);
}

/* A stalled database is no reason to be restarted; stuck workers are. */
static bool outboxd_alive(struct daemon *daemon)
{
	struct outboxd *outboxd = daemon->state;

	return !outboxd->reaping ||
	    clock_steady_ms() - outboxd->reap_began <
	    3 * (int64_t)STATEMENT_TIMEOUT_MS;
}

static void outboxd_stop(struct daemon *daemon)
{
	struct outboxd *outboxd = daemon->state;
	struct arena *arena = outboxd->arena;

	listener_free(&outboxd->listener);
	client_free(&outboxd->client);
	fediverse_abort(outboxd->fediverse);
	work_pool_free(&outboxd->pool);
	fediverse_free(&outboxd->fediverse);
	asks_free(&outboxd->asks);
	deliver_free(&outboxd->deliverer);
	notifier_free(&outboxd->notifier);
	loop_timer_free(&outboxd->boot);
	loop_timer_free(&outboxd->tick);
	http_server_free(&outboxd->figures);
	node_key_free(&outboxd->node.key);
	arena_free(&arena);
}

/* outboxd -- carries what we owe to peers and inboxes. Manual:
 * postrider-outboxd(8). */
int main(int argc, char **argv)
{
	static const struct daemon_def outboxd = {
		.name = "outboxd",
		.keys = outboxd_keys,
		.conf = &outboxd_conf,
		.start = outboxd_start,
		.drain = outboxd_drain,
		.drained = outboxd_drained,
		.alive = outboxd_alive,
		.stop = outboxd_stop,
	};

	return daemon_main(&outboxd, argc, argv);
}
