/*
 * follower -- who follows our actors, and what was answered to whom they
 * asked to follow (schema 0018 notes whom).
 *
 * One row an actor and follower, with the inboxes to deliver to. A row that
 * nobody has accepted yet is no follower.
 *
 * Worker threads.
 */
#ifndef POSTRIDER_FOLLOWER_H
#define POSTRIDER_FOLLOWER_H

#include "common/pg/sql.h"

struct follower {
	const char *actor; /* whom: UUID */
	const char *follower;
	const char *inbox;
	const char *shared_inbox; /* or NULL */
	const char *follow_id;
	bool accepted;
};

/* A repeated Follow changes nothing but inboxes and id; who was accepted
 * stays so. */
MUST_CHECK bool follower_add(
    struct tx *tx, const struct follower *follower, struct err *err);
/* By the Follow's id, or whom it was about (a UUID, or NULL). */
MUST_CHECK bool follower_remove(struct tx *tx, const char *follower,
    const char *follow_id, const char *actor, struct err *err);

/* How many an actor (its UUID) has. */
MUST_CHECK bool followers_count(
    struct tx *tx, const char *actor, int64_t *total, struct err *err);

/* The one who was asked says yes or no to a Follow, named by its id or by the
 * actor who asked (a UUID, or NULL). A no ends what was a yes. */
MUST_CHECK bool following_answer(struct tx *tx, const char *followed,
    const char *follow_id, const char *actor, bool yes, struct err *err);

#endif
