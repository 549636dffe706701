#include <pthread.h>
#include <time.h>

#include "common/pg/sql_conn.h"
#include "common/pg/notify.h"
#include "common/base/clock.h"
#include "common/pg/notify.sql.h"
#include "common/pg/waiting.h"

enum {
	EVERY_US = 1000, /* between two sends */
	LAST_SEND_S = 1, /* of a notifier that ends */
	STATEMENT_TIMEOUT_MS = 10000
};

struct notifier {
	struct conn *conn;
	struct arena *arena;
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t more;
	struct waiting *waiting; /* under the mutex, and ending */
	bool ending;
	bool failing; /* its own thread: a failure is logged once */
};

/* clang-format off */
static const char *const channel_names[] = {
	[SIGNAL_CONVERSATION] = "postrider_conversation",
	[SIGNAL_USER]         = "postrider_user",
	[SIGNAL_OUTBOX]       = "postrider_outbox",
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
	conn->signals_take = take_signals;
	conn->signals_arg = notifier;
}

/* ---- sending ---- */

static const char *payload(struct arena *arena, const struct waiting *entry)
{
	const int64_t key = entry->key.key;

	switch ((enum signal_channel)entry->key.channel) {
	case SIGNAL_CONVERSATION:
		return arena_printf(arena,
		    "{\"c\":\"%" PRId64 "\",\"s\":%" PRId64 "}", key,
		    entry->seq);
	case SIGNAL_USER:
		return arena_printf(arena,
		    "{\"u\":\"%" PRId64 "\",\"s\":%" PRId64 "}", key,
		    entry->seq);
	case SIGNAL_REQUEST:
	case SIGNAL_REPLY:
	case SIGNAL_INBOX:
		return arena_printf(arena, "%" PRId64, key);
	case SIGNAL_OUTBOX:
	case SIGNAL_FILES:
	case SIGNAL_CONTROL:
		break;
	case SIGNAL_EPHEMERAL:
		return entry->payload ? entry->payload : "";
	}
	return entry->key.word;
}

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
		channels[place] = channel_names[w->key.channel];
		payloads[place++] = payload(notifier->arena, w);
	}
	if (!send_once(notifier, channels, payloads, count))
		send_once(notifier, channels, payloads, count);
	arena_reset(notifier->arena);
}

/* Waits for signals and takes them; false when it is time to end. */
static bool next_signals(struct notifier *notifier, struct waiting **taken)
{
	pthread_mutex_lock(&notifier->mutex);
	while (!notifier->waiting && !notifier->ending)
		pthread_cond_wait(&notifier->more, &notifier->mutex);
	*taken = notifier->waiting;
	notifier->waiting = NULL;
	pthread_mutex_unlock(&notifier->mutex);
	return *taken != NULL;
}

/* The pause in which signals meet their like. */
static void pause_since(int64_t began_us)
{
	int64_t left = EVERY_US - (clock_steady_us() - began_us);
	struct timespec span = { 0, left * 1000 };

	if (left > 0 && left <= EVERY_US)
		nanosleep(&span, NULL);
}

static void *notifier_run(void *arg)
{
	struct notifier *notifier = arg;
	struct waiting *taken = NULL;

	while (next_signals(notifier, &taken)) {
		int64_t began_us = clock_steady_us();

		send_all(notifier, taken);
		waiting_free(&taken);
		pause_since(began_us);
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
