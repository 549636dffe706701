/*
 * outbox_group -- who is in a group, on its way to other nodes.
 *
 * Only the home of whoever acts tells the others; an account that is at home
 * elsewhere is told to its home, which does the rest. Told are the homes of
 * the members and the nodes where they have declared accounts. A group that
 * concerns no other node has no federated id and is told to nobody.
 *
 * Worker threads, in the transaction of the change; the group's row is held.
 */
#ifndef POSTRIDER_OUTBOX_GROUP_H
#define POSTRIDER_OUTBOX_GROUP_H

#include "common/chat/group.h"
#include "common/federation/outbox.h"

/* The group as others are told of it; except_host may be NULL. */
struct outbox_group {
	const struct node *node;
	int64_t channel;
	const char *except_host;
};

/* member_add of each, once they are in it: with everybody who is. */
MUST_CHECK bool outbox_add_joins(struct tx *tx,
    const struct outbox_group *group, int64_t actor, const int64_t *people,
    size_t count, struct err *err);
/* The same for a group that has just begun: of everybody who is at home
 * elsewhere, or of one of the others when only accounts are. */
MUST_CHECK bool outbox_add_start(struct tx *tx,
    const struct outbox_group *group, int64_t owner, struct err *err);
/* Somebody has got accounts at these nodes: member_add of him, for the groups
 * that are ours to tell of. */
MUST_CHECK bool outbox_add_arrival(struct tx *tx, const struct node *node,
    int64_t person, const struct targets *fresh, struct err *err);
/* member_remove, before it is done: who leaves is among those told. */
MUST_CHECK bool outbox_add_leave(struct tx *tx,
    const struct outbox_group *group, const struct membership *leave,
    struct err *err);
/* ownership_transfer; also told to the home of who owned it. */
MUST_CHECK bool outbox_add_owner(struct tx *tx,
    const struct outbox_group *group, const struct ownership *change,
    struct err *err);

#endif
