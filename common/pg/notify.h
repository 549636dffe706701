/*
 * notify -- signals after commit (DESIGN 2).
 *
 * A transaction that notifies takes a server-wide lock through its commit, so
 * our daemons signal afterwards: signal_* collects during the transaction. If
 * the process has sent no signal for half a millisecond, the NOTIFY leaves
 * right behind the COMMIT, as the next transaction of the same connection,
 * which nobody waits for: two threads and a round trip less until it is heard.
 * Else tx_commit hands the list to the notifier, whose own thread and
 * connection (synchronous_commit off) sends one coalesced NOTIFY per channel
 * and key a millisecond. For one key the highest seq wins. A signal that is
 * lost costs at most the second until everyone looks anyway, and one for a
 * commit that failed a look for nothing.
 *
 * signal_* : the worker that owns the transaction. notifier_*: any thread.
 */
#ifndef POSTRIDER_NOTIFY_H
#define POSTRIDER_NOTIFY_H

#include "common/pg/sql.h"

struct notifier;

struct notifier *notifier_new(const char *conninfo, const char *application);
/* Sends what is left (bounded by a second). */
void notifier_free(struct notifier **notifier);

/* Transactions of this connection signal through it. Set once. */
void conn_notifier_set(struct conn *conn, struct notifier *notifier);

/* postrider_conversation {"c":"<id>","s":<seq>}, postrider_user likewise. */
void signal_conversation(struct tx *tx, int64_t conversation, int64_t seq);
void signal_user(struct tx *tx, int64_t user, int64_t seq);
/* postrider_outbox: the peer there is something for, or an empty payload: any
 * of them. postrider_activity, postrider_files: empty. */
void signal_outbox(struct tx *tx);
void signal_outbox_peer(struct tx *tx, int64_t peer);
void signal_activity(struct tx *tx);
void signal_files(struct tx *tx);
/* postrider_request, postrider_reply, postrider_inbox: an id;
 * postrider_control: a word. */
void signal_request(struct tx *tx, int64_t id);
void signal_reply(struct tx *tx, int64_t id);
void signal_inbox(struct tx *tx, int64_t id);
void signal_control(struct tx *tx, const char *what);
/* postrider_ephemeral: what is of use only now (typing, calls). The latest of
 * a conversation and a person wins. payload is JSON of less than
 * EPHEMERAL_MAX bytes in the transaction's arena. */
enum { EPHEMERAL_MAX = 7000 };
void signal_ephemeral(
    struct tx *tx, int64_t conversation, int64_t person, const char *payload);

#endif
