/*
 * outbox_profile -- profiles of our people on their way out (specification,
 * section 10).
 *
 * Told are the nodes that share a conversation or a friendship with a person,
 * or where he has declared an account; nobody else (DESIGN 7). What follows
 * quickly becomes one event a peer: outboxd folds it.
 *
 * Worker threads, in the transaction of the change.
 */
#ifndef POSTRIDER_OUTBOX_PROFILE_H
#define POSTRIDER_OUTBOX_PROFILE_H

#include "common/chat/user.h"
#include "common/federation/outbox.h"

MUST_CHECK bool outbox_add_profile(struct tx *tx, const struct node *node,
    const struct user *user, struct err *err);

/* For the hosts that now stand in his replicated_instances and did not stand
 * in those before: his profile as it is, and the groups of ours he is in. */
MUST_CHECK bool outbox_introduce(struct tx *tx, const struct node *node,
    const struct user *user, const char *before, struct err *err);

#endif
