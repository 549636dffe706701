/*
 * outbox_read_state -- how far somebody has read, for his own other nodes.
 *
 * Nobody else is told: read states are private. Our people: the nodes where
 * they have declared accounts; an account of elsewhere: its home.
 *
 * Worker threads, in the transaction of the change.
 */
#ifndef POSTRIDER_OUTBOX_READ_STATE_H
#define POSTRIDER_OUTBOX_READ_STATE_H

#include "common/chat/read_state.h"
#include "common/federation/node.h"

/* read_state_update, without except_host (may be NULL). Marks that moved
 * nothing are passed over. */
MUST_CHECK bool outbox_add_read_state(struct tx *tx, const struct node *node,
    const struct read_mark *mark, const char *except_host, struct err *err);

#endif
