/*
 * inbound -- activities that our inbox took, for the application.
 *
 * Only what was verified comes here. An activity is stored once by its id,
 * exactly as it was received, and signalled by postrider_inbox; the same one
 * in a second inbox adds whom it is for. What we look after ourselves is done
 * in the same transaction: who follows, who is gone, that the sender's server
 * lives. A Follow is accepted at once unless its actor does that itself.
 *
 * Worker threads.
 */
#ifndef POSTRIDER_INBOUND_H
#define POSTRIDER_INBOUND_H

#include "common/fediverse/activity.h"
#include "common/fediverse/actor.h"
#include "common/fediverse/home.h"
#include "common/fediverse/remote_key.h"

struct inbound {
	const struct activity *activity;
	const struct remote_key *sender; /* whose key verified it */
	const struct actor *recipient;	 /* NULL: the shared inbox */
	const struct home *home;
};

/* What it needs of the sender besides the key: a Follow wants its inbox. */
bool inbound_needs_inbox(const struct inbound *in);

/* A repeat changes nothing and is true as well. */
MUST_CHECK bool inbound_take(
    struct tx *tx, const struct inbound *in, struct err *err);

#endif
