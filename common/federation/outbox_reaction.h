/*
 * outbox_reaction -- reactions on their way to other nodes.
 *
 * A message is named as those know it who are told: by where it was born, or,
 * if it came homeward and its author's home sent it on, by the home's id; only
 * the node where it was written is told the id there.
 *
 * Worker threads, in the transaction of the change.
 */
#ifndef POSTRIDER_OUTBOX_REACTION_H
#define POSTRIDER_OUTBOX_REACTION_H

#include "common/chat/reaction.h"
#include "common/federation/node.h"

/*
 * reaction_add or reaction_remove of somebody who is at home here (or of one
 * of our people, relayed homeward). Targets as those of his messages, without
 * except_host (may be NULL). Words that changed nothing are passed over.
 */
MUST_CHECK bool outbox_add_reaction(struct tx *tx, const struct node *node,
    const char *event_type, const struct reaction_word *word,
    const char *except_host, struct err *err);

#endif
