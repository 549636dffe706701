#include <pthread.h>
#include <time.h>

#include "common/pg/sql_conn.h"
#include "common/pg/notify.h"
#include "common/base/clock.h"
#include "common/pg/notify.sql.h"
#include "common/pg/waiting.h"

enum {
	EVERY_US = 1000,     /* between two sends */
	RIDE_EVERY_US = 500, /* before another rides */
	RIDE_MAX = 16,	     /* signals behind a commit */
	LAST_SEND_S = 1,     /* of a notifier that ends */
	STATEMENT_TIMEOUT_MS = 10000
};

struct notifier {
	struct conn *conn;
	struct arena *arena;
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t more;
	/* Under the mutex. */
	struct waiting *waiting;
	int64_t sent_us; /* when signals left last */
	bool sending;	 /* its thread is at it */
	bool ending;
	bool failing; /* its own thread: a failure is logged once */
};

/* clang-format off */
static const char *const channel_names[] = {
	[SIGNAL_CONVERSATION] = "postrider_conversation",
	[SIGNAL_USER]         = "postrider_user",
	[SIGNAL_OUTBOX]       = "postrider_outbox",
	[SIGNAL_ACTIVITY]     = "postrider_activity",
	[SIGNAL_FILES]        = "postrider_files",
	[SIGNAL_REQUEST]      = "postrider_request",
	[SIGNAL_REPLY]        = "postrider_reply",
	[SIGNAL_INBOX]        = "postrider_inbox",
	[SIGNAL_CONTROL]      = "postrider_control",
	[SIGNAL_EPHEMERAL]    = "postrider_ephemeral",
};
/* clang-format on */

/* ---- collecting in a transaction ---- */

static void signal_add(struct tx *tx, const struct signal *signal)
{
	struct signal_list *list = tx_signals(tx);

	if (list->count == list->room) {
		list->room = list->room ? list->room * 2 : 16;
		list->items =
		    realloc(list->items, list->room * sizeof(*list->items));
		if (!list->items)
			abort();
	}
	list->items[list->count++] = *signal;
}

static void signal_plain(
    struct tx *tx, enum signal_channel channel, int64_t key, int64_t seq)
{
	struct signal signal = { .channel = channel, .key = key, .seq = seq };

	signal_add(tx, &signal);
}

void signal_conversation(struct tx *tx, int64_t conversation, int64_t seq)
{
	signal_plain(tx, SIGNAL_CONVERSATION, conversation, seq);
}

void signal_user(struct tx *tx, int64_t user, int64_t seq)
{
	signal_plain(tx, SIGNAL_USER, user, seq);
}

void signal_outbox(struct tx *tx)
{
	signal_plain(tx, SIGNAL_OUTBOX, 0, 0);
}

void signal_outbox_peer(struct tx *tx, int64_t peer)
{
	signal_plain(tx, SIGNAL_OUTBOX, peer, 0);
}

void signal_activity(struct tx *tx)
{
	signal_plain(tx, SIGNAL_ACTIVITY, 0, 0);
}

void signal_files(struct tx *tx)
{
	signal_plain(tx, SIGNAL_FILES, 0, 0);
}

void signal_request(struct tx *tx, int64_t id)
{
	signal_plain(tx, SIGNAL_REQUEST, id, 0);
}

void signal_reply(struct tx *tx, int64_t id)
{
	signal_plain(tx, SIGNAL_REPLY, id, 0);
}

void signal_inbox(struct tx *tx, int64_t id)
{
	signal_plain(tx, SIGNAL_INBOX, id, 0);
}

void signal_control(struct tx *tx, const char *what)
{
	struct signal signal = { .channel = SIGNAL_CONTROL };

	assert(strlen(what) < SIGNAL_WORD_MAX);
	memcpy(signal.word, what, strlen(what));
	signal_add(tx, &signal);
}

void signal_ephemeral(
    struct tx *tx, int64_t conversation, int64_t person, const char *payload)
{
	struct signal signal = { .channel = SIGNAL_EPHEMERAL,
		.key = conversation,
		.payload = payload };

	assert(strlen(payload) < EPHEMERAL_MAX);
	snprintf(signal.word, sizeof(signal.word), "%" PRId64, person);
	signal_add(tx, &signal);
}

/* ---- what a signal says ---- */

static const char *payload(struct arena *arena, const struct signal *signal)
{
	const int64_t key = signal->key;

	switch (signal->channel) {
	case SIGNAL_CONVERSATION:
		return arena_printf(arena,
		    "{\"c\":\"%" PRId64 "\",\"s\":%" PRId64 "}", key,
		    signal->seq);
	case SIGNAL_USER:
		return arena_printf(arena,
		    "{\"u\":\"%" PRId64 "\",\"s\":%" PRId64 "}", key,
		    signal->seq);
	case SIGNAL_OUTBOX:
		return key ? arena_printf(arena, "%" PRId64, key) : "";
	case SIGNAL_REQUEST:
	case SIGNAL_REPLY:
	case SIGNAL_INBOX:
		return arena_printf(arena, "%" PRId64, key);
	case SIGNAL_ACTIVITY:
	case SIGNAL_FILES:
	case SIGNAL_CONTROL:
		break;
	case SIGNAL_EPHEMERAL:
		return signal->payload ? signal->payload : "";
	}
	return arena_text(arena, signal->word);
}

/* ---- behind the commit ---- */

/* When nothing left just now and nothing waits, signals need not go by the
 * notifier's thread. What is of use only now does: it has to stay in order,
 * also with what somebody else commits next. */
static bool may_ride(const struct signal_list *signals)
{
	if (signals->count > RIDE_MAX)
		return false;
	for (size_t i = 0; i < signals->count; i++)
		if (signals->items[i].channel == SIGNAL_EPHEMERAL)
			return false;
	return true;
}

static bool ride_begin(struct notifier *notifier)
{
	int64_t now = clock_steady_us();
	bool idle;

	pthread_mutex_lock(&notifier->mutex);
	idle = !notifier->waiting && !notifier->sending &&
	    now - notifier->sent_us >= RIDE_EVERY_US;
	if (idle)
		notifier->sent_us = now;
	pthread_mutex_unlock(&notifier->mutex);
	return idle;
}

static bool ride_signals(void *arg, struct tx *tx)
{
	const struct signal_list *signals = tx_signals(tx);
	const char *channels[RIDE_MAX];
	const char *payloads[RIDE_MAX];

	if (!may_ride(signals) || !ride_begin(arg))
		return false;
	for (size_t i = 0; i < signals->count; i++) {
		channels[i] = channel_names[signals->items[i].channel];
		payloads[i] = payload(tx_arena(tx), &signals->items[i]);
	}
	return sql_ride(tx, &SQL_notify_ride,
	    SQL_VALS(v_texts(channels, signals->count),
		v_texts(payloads, signals->count)));
}

/* ---- waiting for the notifier's thread ---- */

static void take_signals(void *arg, const struct signal_list *signals)
{
	struct notifier *notifier = arg;

	pthread_mutex_lock(&notifier->mutex);
	for (size_t i = 0; i < signals->count; i++)
		waiting_put(&notifier->waiting, &signals->items[i]);
	pthread_cond_signal(&notifier->more);
	pthread_mutex_unlock(&notifier->mutex);
}

void conn_notifier_set(struct conn *conn, struct notifier *notifier)
{
	assert(!conn->signals_take);
	conn->signals_ride = ride_signals;
	conn->signals_take = take_signals;
	conn->signals_arg = notifier;
}

/* ---- sending ---- */

static bool send_once(struct notifier *notifier, const char *const *channels,
    const char *const *payloads, size_t count)
{
	AUTO(tx_end)
	struct tx *tx = tx_new(notifier->conn, notifier->arena);
	struct err err = { 0 };

	tx_lazy(tx);
	tx_closing(tx);
	if (sql_many(tx, &SQL_notify_send, NULL, NULL, &err,
		v_texts(channels, count), v_texts(payloads, count)) &&
	    tx_commit(tx, &err)) {
		notifier->failing = false;
		return true;
	}
	if (!notifier->failing)
		log_warn("notify.lost", F("err", v_text(err.text)),
		    F("sqlstate", v_text(conn_sqlstate(notifier->conn))));
	notifier->failing = true;
	return false;
}

/* A second try, since a connection may have died unseen. */
static void send_all(struct notifier *notifier, struct waiting *waiting)
{
	size_t count = waiting_count(waiting);
	const char **channels =
	    arena_array(notifier->arena, count, sizeof(*channels));
	const char **payloads =
	    arena_array(notifier->arena, count, sizeof(*payloads));
	size_t place = 0;

	for (struct waiting *w = waiting; w; w = w->hh.next) {
		struct signal signal = waiting_signal(w);

		channels[place] = channel_names[signal.channel];
		payloads[place++] = payload(notifier->arena, &signal);
	}
	if (!send_once(notifier, channels, payloads, count))
		send_once(notifier, channels, payloads, count);
	arena_reset(notifier->arena);
}

/* The pause in which signals meet their like. */
static void pause_us(int64_t left)
{
	struct timespec span = { 0, left * 1000 };

	if (left > 0 && left <= EVERY_US)
		nanosleep(&span, NULL);
}

/* Until there are signals, or it is time to end; how soon may they leave? */
static int64_t wait_for_signals(struct notifier *notifier)
{
	int64_t left;

	pthread_mutex_lock(&notifier->mutex);
	notifier->sending = false;
	while (!notifier->waiting && !notifier->ending)
		pthread_cond_wait(&notifier->more, &notifier->mutex);
	left = notifier->sent_us + EVERY_US - clock_steady_us();
	pthread_mutex_unlock(&notifier->mutex);
	return left;
}

/* False when it is time to end. */
static bool next_signals(struct notifier *notifier, struct waiting **taken)
{
	pause_us(wait_for_signals(notifier));
	pthread_mutex_lock(&notifier->mutex);
	*taken = notifier->waiting;
	notifier->waiting = NULL;
	notifier->sending = *taken != NULL;
	notifier->sent_us = clock_steady_us();
	pthread_mutex_unlock(&notifier->mutex);
	return *taken != NULL;
}

static void *notifier_run(void *arg)
{
	struct notifier *notifier = arg;
	struct waiting *taken = NULL;

	while (next_signals(notifier, &taken)) {
		send_all(notifier, taken);
		waiting_free(&taken);
	}
	return NULL;
}

/* ---- life ---- */

struct notifier *notifier_new(const char *conninfo, const char *application)
{
	struct notifier *notifier = calloc(1, sizeof(*notifier));
	const struct conn_def def = { .conninfo = conninfo,
		.application = application,
		.signals_after = true,
		.statement_timeout_ms = STATEMENT_TIMEOUT_MS };

	if (!notifier)
		abort();
	notifier->conn = conn_new(&def);
	notifier->arena = arena_new();
	pthread_mutex_init(&notifier->mutex, NULL);
	pthread_cond_init(&notifier->more, NULL);
	if (pthread_create(&notifier->thread, NULL, notifier_run, notifier))
		abort();
	return notifier;
}

static bool join_bounded(struct notifier *notifier)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += LAST_SEND_S;
	return pthread_timedjoin_np(notifier->thread, NULL, &until) == 0;
}

void notifier_free(struct notifier **notifier)
{
	struct notifier *n = *notifier;

	if (!n)
		return;
	pthread_mutex_lock(&n->mutex);
	n->ending = true;
	pthread_cond_signal(&n->more);
	pthread_mutex_unlock(&n->mutex);
	*notifier = NULL;
	if (!join_bounded(n)) {
		/* It hangs on the database; the process ends without it. */
		pthread_detach(n->thread);
		return;
	}
	waiting_free(&n->waiting);
	conn_free(&n->conn);
	arena_free(&n->arena);
	pthread_cond_destroy(&n->more);
	pthread_mutex_destroy(&n->mutex);
	free(n);
}
