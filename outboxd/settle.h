/*
 * settle -- booking what became of a batch.
 *
 * Everything happens in the caller's transaction and under the peer's lease:
 * accepted entries are left to the caller to acknowledge, refused ones are
 * set aside or become dead letters, the peer's row learns how the way to it
 * is. Nothing here ever changes a secret.
 *
 * Worker threads.
 */
#ifndef POSTRIDER_SETTLE_H
#define POSTRIDER_SETTLE_H

#include "outboxd/drain.h"

/* Ids to acknowledge. */
struct settled {
	int64_t *ids;
	size_t count;
	bool over; /* the lease is to be given back now */
};

/* A batch of entries that were not sent before leaves: the figures. */
void settle_sending(const struct parcel *parcel);
/* A batch that was answered: the log and the figures. Any thread. */
void settle_log(const struct peer_lease *lease, const struct parcel *parcel,
    const struct answer *answer);

/* What was accepted whole, and the batch that is out, if one is. */
MUST_CHECK bool settle(struct tx *tx, struct drain *drain,
    struct settled *settled, struct err *err);

/* A peer that cannot be sent to at all (its secret does not open). */
MUST_CHECK bool settle_unsendable(
    struct tx *tx, struct drain *drain, struct err *err);

#endif
