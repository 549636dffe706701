/*
 * drain_one -- delivers the oldest row that is due, by hand.
 *
 * For tests, tools and small installations; outboxd has a fair order of its
 * own and many rows under way. It takes the same lease, so both may run at
 * once. Blocks for as long as the delivery takes, without a transaction.
 */
#ifndef POSTRIDER_DRAIN_ONE_H
#define POSTRIDER_DRAIN_ONE_H

#include "common/fediverse/delivery.h"

struct drain_one {
	struct conn *conn;
	struct arena *arena; /* the row's record lives there */
	const struct home *home;
	const struct client_def *client;
	/* NULL: what the row says, or the settings. */
	const struct outbound_delivery *delivery;
};

/* *found false: nothing was due. item is the row as it is afterwards. */
MUST_CHECK bool outbound_drain_one(const struct drain_one *drain, bool *found,
    struct outbound_item *item, struct err *err);

#endif
