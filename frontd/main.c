/* frontd -- what people and peers talk to. Manual: postrider-frontd(8). */
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/daemon.h"
#include "common/base/id.h"
#include "common/crypto/password.h"
#include "common/pg/listen.h"
#include "common/pg/pg_figures.h"
#include "frontd/database.h"
#include "frontd/park.h"
#include "frontd/server.h"

enum {
	QUEUE_PER_WORKER = 64,
	STATEMENT_MS = 15000,
	/* No unit of work takes this long: its statements end before. */
	WORKER_STUCK_MS = 300000
};

struct frontd_conf frontd_conf;

#define CONF frontd_conf
/* clang-format off */
static const struct conf_key frontd_keys[] = {
	KEY(TEXT, listen, "127.0.0.1:8101", NULL, NULL, BOOT,
		"Addresses to listen on, parted by commas."),
	KEY(TEXT, trusted_proxies, "", NULL, NULL, BOOT,
		"Addresses and networks whose X-Forwarded-For counts."),
	KEY(TEXT, spool_dir, "", NULL, NULL, BOOT,
		"Directory for large bodies on their way; empty: /tmp."),
	KEY(TEXT, tls_certificate, "", NULL, NULL, BOOT,
		"PEM file with the certificate chain; empty: plain HTTP."),
	KEY(TEXT, tls_key, "", NULL, NULL, BOOT,
		"PEM file with the key of the certificate."),
	KEY(SPAN, head_deadline, "10s", "100ms", "5min", BOOT,
		"How long the head of a request may take."),
	KEY(SPAN, idle_deadline, "75s", "100ms", "1h", BOOT,
		"How long a connection may wait for its next request."),
	KEY(SPAN, body_deadline, "30s", "100ms", "1h", BOOT,
		"How long a body may take, on top of its size at body_rate."),
	KEY(SIZE, body_rate, "16kB", "1", "1GB", BOOT,
		"Least bytes a second of a body."),
	KEY(SPAN, write_deadline, "30s", "100ms", "1h", BOOT,
		"How long a client may take nothing of its answer."),
	KEY(SIZE, spool_above, "256kB", "4kB", "64MB", BOOT,
		"Bodies above this go to a file in spool_dir."),
	KEY(INT, connections_max, "10000", "1", "1000000", BOOT,
		"Connections at once."),
	KEY(INT, connections_per_address_max, "200", "1", "1000000", BOOT,
		"Connections at once of one address."),
	KEY(INT, requests_per_connection_max, "1000", "1", "1000000", BOOT,
		"Requests after which a connection is closed."),
	KEY(BOOL, rate_limits, "on", NULL, NULL, BOOT,
		"Count requests per address; off only for load tests."),
	KEY(INT, rate_general, "200", "1", "1000000", LIVE,
		"Requests a minute and address on routes without a rate."),
	KEY(INT, password_slots, "2", "1", "64", BOOT,
		"Password hashes at once."),
	KEY(INT, password_ops, "2", "1", "10", BOOT,
		"Passes of a password hash (Argon2id)."),
	KEY(SIZE, password_memory, "19MB", "1MB", "1GB", BOOT,
		"Memory of a password hash."),
	KEY(SPAN, token_lifetime, "30d", "1min", "3650d", BOOT,
		"How long a log-in lasts."),
	KEY(SPAN, handshake_deadline, "4s", "100ms", "9s", BOOT,
		"How long a peer that wants to peer may take to answer."),
	{ 0 },
};
/* clang-format on */

struct frontd {
	struct daemon *daemon;
	struct arena *arena;
	const char *application;
	struct node node;
	struct notifier *notifier;
	struct dispatch *dispatch;
	struct work_pool *pool;
	struct database *database;
	struct listener *listener;
	struct servers *servers;
};

/* ---- workers ---- */

static void *worker_begin(void *ctx)
{
	const struct frontd *frontd = ctx;
	struct worker *worker = calloc(1, sizeof(*worker));
	const struct conn_def def = {
		.conninfo = frontd_conf.common.database,
		.application = frontd->application,
		.signals_after = true,
		.statement_timeout_ms = STATEMENT_MS,
	};

	if (!worker)
		abort();
	worker->conn = conn_new(&def);
	conn_notifier_set(worker->conn, frontd->notifier);
	return worker;
}

static void worker_end(void *state)
{
	struct worker *worker = state;

	conn_free(&worker->conn);
	free(worker);
}

static struct work_pool *workers_new(struct frontd *frontd)
{
	const struct work_def def = {
		.threads = (int)frontd_conf.common.workers,
		.queue_max =
		    (size_t)frontd_conf.common.workers * QUEUE_PER_WORKER,
		.worker_begin = worker_begin,
		.worker_end = worker_end,
		.ctx = frontd,
	};

	return work_pool_new(frontd->daemon->loop, &def);
}

/* ---- signals ---- */

static void on_up(void *arg)
{
	struct frontd *frontd = arg;

	parking_look(frontd->dispatch->parking);
}

static void on_hint(void *arg, const char *channel, const char *payload)
{
	struct frontd *frontd = arg;
	int64_t ask = id_parse(payload);

	if (strcmp(channel, "postrider_reply") == 0 && ask)
		parking_hint(frontd->dispatch->parking, ask);
}

static struct listener *listener_begin(struct frontd *frontd)
{
	static const char *const channels[] = { "postrider_reply",
		"postrider_control", NULL };
	const struct listener_def def = {
		.conninfo = frontd_conf.common.database,
		.application = frontd->application,
		.channels = channels,
		.on_up = on_up,
		.hint = on_hint,
		.arg = frontd,
	};

	return listener_new(frontd->daemon->loop, &def);
}

/* ---- life ---- */

/* The database is there and fits: open the doors. */
static void on_fits(void *arg)
{
	struct frontd *frontd = arg;
	struct err err = { 0 };

	if (!servers_listen(frontd->servers, &err)) {
		log_error("daemon.failed", F("err", v_text(err.text)));
		_exit(EXIT_FAILURE);
	}
	frontd->listener = listener_begin(frontd);
	daemon_ready();
}

static const char *application(struct arena *arena)
{
	const char *instance = frontd_conf.common.instance;

	return arena_printf(
	    arena, "frontd/%s", *instance ? instance : daemon_run_id());
}

static void frontd_stop(struct daemon *daemon)
{
	struct frontd *frontd = daemon->state;

	if (frontd->dispatch)
		frontd->dispatch->stopping = true;
	listener_free(&frontd->listener);
	database_free(&frontd->database);
	work_pool_free(&frontd->pool);
	dispatch_free(&frontd->dispatch);
	servers_free(&frontd->servers);
	notifier_free(&frontd->notifier);
	node_key_free(&frontd->node.key);
	arena_free(&frontd->arena);
	free(frontd);
}

static void frontd_begin(struct frontd *frontd)
{
	struct loop *loop = frontd->daemon->loop;
	const struct database_def database = {
		.conninfo = frontd_conf.common.database,
		.application = frontd->application,
		.fits = on_fits,
		.arg = frontd,
	};

	pg_figures_register();
	password_setup((int)frontd_conf.password_slots,
	    (uint64_t)frontd_conf.password_ops,
	    (uint64_t)frontd_conf.password_memory);
	frontd->notifier =
	    notifier_new(frontd_conf.common.database, frontd->application);
	frontd->dispatch = dispatch_new(loop, &frontd_conf, &frontd->node);
	frontd->pool = workers_new(frontd);
	frontd->dispatch->pool = frontd->pool;
	frontd->database = database_new(loop, &database);
}

static bool frontd_start(struct daemon *daemon, struct err *err)
{
	struct arena *arena = arena_new();
	struct frontd *frontd = calloc(1, sizeof(*frontd));

	if (!frontd)
		abort();
	frontd->daemon = daemon;
	frontd->arena = arena;
	frontd->application = application(arena);
	daemon->state = frontd;
	daemon->ready_later = true;
	if (!node_load(arena, frontd_conf.common.origin,
		frontd_conf.common.node_key_file, &frontd->node, err)) {
		frontd_stop(daemon);
		return false;
	}
	frontd_begin(frontd);
	frontd->servers =
	    servers_new(daemon->loop, frontd->dispatch, &frontd_conf, err);
	if (!frontd->servers)
		frontd_stop(daemon);
	return frontd->servers != NULL;
}

static void frontd_drain(struct daemon *daemon)
{
	struct frontd *frontd = daemon->state;

	servers_drain(frontd->servers);
}

static bool frontd_drained(struct daemon *daemon)
{
	const struct frontd *frontd = daemon->state;

	return frontd->dispatch->in_flight == 0 &&
	    servers_busy(frontd->servers) == 0;
}

static bool frontd_alive(struct daemon *daemon)
{
	const struct frontd *frontd = daemon->state;
	int64_t quiet_ms = clock_steady_ms() - frontd->dispatch->last_done_ms;

	if (!database_is_known(frontd->database))
		return false;
	return work_running(frontd->pool) == 0 || quiet_ms < WORKER_STUCK_MS ||
	    !database_answers(frontd->database);
}

int main(int argc, char **argv)
{
	static const struct daemon_def frontd = {
		.name = "frontd",
		.keys = frontd_keys,
		.conf = &frontd_conf,
		.start = frontd_start,
		.drain = frontd_drain,
		.drained = frontd_drained,
		.alive = frontd_alive,
		.stop = frontd_stop,
	};

	return daemon_main(&frontd, argc, argv);
}
