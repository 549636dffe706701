#include <event2/event.h>
#include <libpq-fe.h>

#include "common/base/buf.h"
#include "common/base/log.h"
#include "common/pg/listen.h"
#include "common/pg/pg_figures.h"

enum {
	BACKOFF_MIN_MS = 100,
	BACKOFF_MAX_MS = 2000,
	CONNECT_MAX_MS = 5000,
	SETUP_MAX = 4096
};

/*
 * DOWN: nothing but the timer. CONNECTING: libpq says what to wait for.
 * SETTING_UP: settings, lock and LISTEN were sent. UP: all answered.
 */
enum listener_state { DOWN, CONNECTING, SETTING_UP, UP };

struct listener {
	struct loop *loop;
	struct listener_def def;
	enum listener_state state;
	PGconn *pg;
	struct event *event;
	struct loop_timer *timer; /* the next try, or the end of this one */
	int64_t backoff_ms;
	bool been_up;
};

static void on_socket(evutil_socket_t fd, short what, void *arg);

static void wait_for(struct listener *listener, short what)
{
	if (listener->event)
		event_free(listener->event);
	listener->event = event_new(loop_base(listener->loop),
	    PQsocket(listener->pg), what, on_socket, listener);
	if (!listener->event || event_add(listener->event, NULL))
		abort();
}

static void hang_up(struct listener *listener)
{
	if (listener->event)
		event_free(listener->event);
	listener->event = NULL;
	PQfinish(listener->pg);
	listener->pg = NULL;
	listener->state = DOWN;
	metric_set(&figure_listener_up, 0, 0);
}

/* Gives up this connection; the timer tries again. */
static void go_down(struct listener *listener, const char *why)
{
	bool was_up = listener->state == UP;

	log_warn("listener.down", F("err", v_text(why)));
	metric_set(&figure_db_up, 0, 0);
	hang_up(listener);
	if (was_up)
		listener->backoff_ms = 0;
	else if (listener->backoff_ms < BACKOFF_MIN_MS)
		listener->backoff_ms = BACKOFF_MIN_MS;
	else if (listener->backoff_ms * 2 <= BACKOFF_MAX_MS)
		listener->backoff_ms *= 2;
	loop_timer_arm(listener->timer, listener->backoff_ms);
	if (was_up && listener->def.on_down)
		listener->def.on_down(listener->def.arg);
}

static const char *why(const struct listener *listener)
{
	return listener->pg ? PQerrorMessage(listener->pg) : "out of memory";
}

/* ---- setting up ---- */

static void add_listen(struct buf *script, PGconn *pg, const char *channel)
{
	char *name = PQescapeIdentifier(pg, channel, strlen(channel));

	if (!name)
		abort();
	buf_printf(script, "LISTEN %s;", name);
	PQfreemem(name);
}

/* Waiting for the lock may last until the server has noticed that the
 * connection which held it before is dead. */
static void set_up(struct listener *listener)
{
	const struct listener_def *def = &listener->def;
	struct buf script;
	bool sent;

	buf_init(&script, NULL, SETUP_MAX);
	buf_text(&script,
	    "SET statement_timeout = 0; SET lock_timeout = 0;"
	    "SET idle_session_timeout = 0;"
	    "SET client_connection_check_interval = '2s';");
	if (def->lock_key)
		buf_printf(&script, "SELECT pg_advisory_lock(%" PRId64 ");",
		    def->lock_key);
	for (const char *const *c = def->channels; c && *c; c++)
		add_listen(&script, listener->pg, *c);
	assert(buf_ok(&script));
	sent = PQsendQuery(listener->pg, script.data);
	buf_done(&script);
	if (!sent) {
		go_down(listener, why(listener));
		return;
	}
	listener->state = SETTING_UP;
	loop_timer_disarm(listener->timer);
	wait_for(listener, EV_READ | EV_PERSIST);
}

/* False while more is to come, or when it failed (and is down then). */
static bool set_up_answered(struct listener *listener)
{
	while (!PQisBusy(listener->pg)) {
		PGresult *result = PQgetResult(listener->pg);
		ExecStatusType status = PQresultStatus(result);

		PQclear(result);
		if (!result)
			return true;
		if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
			go_down(listener, why(listener));
			return false;
		}
	}
	return false;
}

static void come_up(struct listener *listener)
{
	listener->state = UP;
	listener->backoff_ms = 0;
	log_info("listener.up");
	metric_set(&figure_db_up, 0, 1);
	metric_set(&figure_listener_up, 0, 1);
	metric_add(&figure_listener_reconnects, 0, listener->been_up);
	listener->been_up = true;
	if (listener->def.on_up)
		listener->def.on_up(listener->def.arg);
}

/* ---- being up ---- */

/* A hint's consumer may free the listener. */
static void hand_out(struct listener *listener)
{
	PGnotify *notify;

	while (listener->state == UP &&
	    (notify = PQnotifies(listener->pg)) != NULL) {
		listener->def.hint(
		    listener->def.arg, notify->relname, notify->extra);
		PQfreemem(notify);
	}
}

static void on_input(struct listener *listener)
{
	if (!PQconsumeInput(listener->pg)) {
		go_down(listener, why(listener));
		return;
	}
	if (listener->state == SETTING_UP && set_up_answered(listener))
		come_up(listener);
	if (listener->state != UP)
		return;
	hand_out(listener);
	/* A server that ends says so in a result nobody asked for. */
	while (listener->state == UP && !PQisBusy(listener->pg)) {
		PGresult *result = PQgetResult(listener->pg);

		if (!result)
			break;
		PQclear(result);
	}
	if (listener->state == UP && PQstatus(listener->pg) != CONNECTION_OK)
		go_down(listener, why(listener));
}

/* ---- connecting ---- */

static void connect_more(struct listener *listener)
{
	switch (PQconnectPoll(listener->pg)) {
	case PGRES_POLLING_READING:
		wait_for(listener, EV_READ);
		break;
	case PGRES_POLLING_WRITING:
		wait_for(listener, EV_WRITE);
		break;
	case PGRES_POLLING_OK:
		set_up(listener);
		break;
	default:
		go_down(listener, why(listener));
	}
}

static void on_socket(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct listener *listener = arg;

	if (listener->state == CONNECTING)
		connect_more(listener);
	else
		on_input(listener);
}

static void ignore_notice(UNUSED void *arg, UNUSED const PGresult *notice)
{
}

static void dial(struct listener *listener)
{
	const char *const names[] = { "dbname", "application_name",
		"client_encoding", "keepalives", "keepalives_idle",
		"keepalives_interval", "keepalives_count", "tcp_user_timeout",
		NULL };
	const char *const values[] = { listener->def.conninfo,
		listener->def.application, "UTF8", "1", "5", "2", "3", "10000",
		NULL };

	listener->pg = PQconnectStartParams(names, values, 1);
	if (!listener->pg || PQstatus(listener->pg) == CONNECTION_BAD) {
		go_down(listener, why(listener));
		return;
	}
	PQsetNoticeReceiver(listener->pg, ignore_notice, NULL);
	listener->state = CONNECTING;
	loop_timer_arm(listener->timer, CONNECT_MAX_MS);
	wait_for(listener, EV_WRITE);
}

static void on_timer(void *arg)
{
	struct listener *listener = arg;

	if (listener->state == DOWN)
		dial(listener);
	else
		go_down(listener, "connecting took too long");
}

/* ---- life ---- */

struct listener *listener_new(struct loop *loop, const struct listener_def *def)
{
	struct listener *listener = calloc(1, sizeof(*listener));

	if (!listener)
		abort();
	listener->loop = loop;
	listener->def = *def;
	listener->timer = loop_timer_new(loop, on_timer, listener);
	loop_timer_arm(listener->timer, 0);
	return listener;
}

void listener_free(struct listener **listener)
{
	struct listener *l = *listener;

	if (!l)
		return;
	*listener = NULL;
	hang_up(l);
	loop_timer_free(&l->timer);
	loop_after_turn(l->loop, free, l);
}

bool listener_is_up(const struct listener *listener)
{
	return listener->state == UP;
}
