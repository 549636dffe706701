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

/* Once other hosts stand in his replicated_instances than before: his profile
 * for everybody, who learns from it where he has accounts; for those that are
 * new also the groups of ours he is in. */
MUST_CHECK bool outbox_introduce(struct tx *tx, const struct node *node,
    const struct user *user, const char *before, struct err *err);

/* Of ours who are in these conversations and have accounts elsewhere: where, to
 * the homes of the others in it. They tell those nodes, too, from then on. */
MUST_CHECK bool outbox_tell_accounts(struct tx *tx, const struct node *node,
    const int64_t *channels, size_t count, struct err *err);
/* The same of one of ours to some homes. */
MUST_CHECK bool outbox_tell_accounts_of(struct tx *tx, const struct node *node,
    int64_t person, const struct targets *homes, struct err *err);

#endif
