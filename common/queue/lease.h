/*
 * lease -- who holds what, and for how long.
 *
 * A lease is three columns of the row it covers: lease_worker, lease_token,
 * lease_until. Taking it is a short committed transaction; nothing stays open
 * while the network is waited for. Every later write of the holder names the
 * token and changes nothing once somebody else has taken over. A lease is
 * renewed by timer and ends by itself, by its holder's death (worker.h), or
 * when it is given back.
 *
 * Here is what all holders need of peers (the relay's outbox) and of domains
 * (ActivityPub delivery); other queues add their tables.
 * Worker threads.
 */
#ifndef POSTRIDER_LEASE_H
#define POSTRIDER_LEASE_H

#include "common/pg/sql.h"

enum { LEASE_MS = 30 * 1000, LEASE_RENEW_MS = 10 * 1000 };

/* What is leased: peers by their ids, domains by their names. */
enum lease_of { LEASE_PEERS, LEASE_DOMAINS };

/* A lease that is still ours. may_go_on: nobody revoked or paused the peer; a
 * domain's pause is seen by whoever locks it. */
struct lease_kept {
	const char *token;
	bool may_go_on;
};

/* Renews those of count leases that still carry their token. */
MUST_CHECK bool lease_renew(struct tx *tx, enum lease_of of,
    const char *const *keys, const char *const *tokens, size_t count,
    struct rows *kept, struct err *err);

/* Gives back what this worker holds, all but the count tokens that it knows of:
 * none after losing its lock, its own after a claim whose outcome is unknown.
 */
MUST_CHECK bool lease_drop(struct tx *tx, enum lease_of of, int64_t worker,
    const char *const *known, size_t count, struct err *err);

/* Frees what workers held that are no longer alive; *freed counts it. */
MUST_CHECK bool lease_reap(struct tx *tx, int64_t *freed, struct err *err);

#endif
