/*
 * follower -- who follows our actors.
 *
 * One row an actor and follower, with the inboxes to deliver to. A row that
 * nobody has accepted yet is no follower.
 *
 * Worker threads.
 */
#ifndef POSTRIDER_FOLLOWER_H
#define POSTRIDER_FOLLOWER_H

#include "common/pg/sql.h"

/* How many an actor (its UUID) has. */
MUST_CHECK bool followers_count(
    struct tx *tx, const char *actor, int64_t *total, struct err *err);

#endif
