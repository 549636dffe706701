/*
 * outbox -- what we owe our peers (DESIGN 4).
 *
 * Append-only: an enqueue inserts rows and touches nothing else. An entry is
 * the event's members after "timestamp" as JSON text; who sends it builds the
 * head (eventType, contextType, messageId, encryptionVersion, timestamp) and
 * splices the rest unparsed. Peers whose status is active, unreachable or
 * pending collect entries; revoked ones never.
 *
 * Enqueueing: worker threads, in the transaction of the change, after the
 * conversation's row lock (ids are drawn then, so that one conversation's
 * entries are in commit order).
 */
#ifndef POSTRIDER_OUTBOX_H
#define POSTRIDER_OUTBOX_H

#include "common/chat/message.h"
#include "common/federation/node.h"

/*
 * create, update or delete of a message of a native author (or of one of our
 * people relayed homeward, under our own id). Targets: the hosts of the
 * participants and of the instances where a participant has declared an
 * account, without ours and without except_host (may be NULL).
 * dm_relay_scope all_peers widens it. Does nothing when relay is disabled or
 * nobody else is concerned; hosts without a peer are logged
 * (outbox.no_peer) and show in ops.peers.
 */
MUST_CHECK bool outbox_add_message(struct tx *tx, const struct node *node,
    const char *event_type, const struct message *message,
    const char *except_host, struct err *err);

#endif
