/*
 * dead -- what could not be delivered, kept with the reason.
 *
 * A dead letter holds everything its entry held, so that an operator can look
 * at it and have it sent again. Moving is one statement: an entry is in its
 * queue or among the dead, never in both and never in neither.
 *
 * Worker threads, under the lease of the queue's row.
 */
#ifndef POSTRIDER_DEAD_H
#define POSTRIDER_DEAD_H

#include "common/pg/sql.h"

/* Entries of one peer's outbox, each with why we gave up and the peer's word
 * (NULL: it named none). */
struct dead_letters {
	int64_t peer;
	const char *origin;
	const int64_t *ids;
	const char *const *whys;
	const char *const *answers;
	size_t count;
};

MUST_CHECK bool dead_from_outbox(
    struct tx *tx, const struct dead_letters *letters, struct err *err);

#endif
