/*
 * worker -- who is alive.
 *
 * A daemon draws a fresh id, writes itself down in workers and holds the id
 * as a session advisory lock on its listener connection (pg/listen.h:
 * lock_key). Leases name the id. Whoever is not in pg_locks is dead, however
 * it died, and its leases are free (lease.h). A lock that is lost ends every
 * lease of its holder, who must stop what it sends.
 *
 * Worker threads.
 */
#ifndef POSTRIDER_WORKER_H
#define POSTRIDER_WORKER_H

#include "common/pg/sql.h"

enum { WORKER_REAP_MS = 2000 };

/* Who we are; texts must outlive their use. */
struct worker_self {
	int64_t id; /* 0 until worker_register */
	const char *daemon;
	const char *instance;
};

/* Draws the id and writes the row. */
MUST_CHECK bool worker_register(
    struct tx *tx, struct worker_self *self, struct err *err);

/* Still here: moves last_seen_at, and writes the row again if it is gone.
 * rates is what we took from each queue lately, a minute, as JSON text. */
MUST_CHECK bool worker_seen(struct tx *tx, const struct worker_self *self,
    const char *rates, struct err *err);

/* How fast a counter moves, from one look to the next. */
struct worker_pace {
	int64_t total;
	int64_t at_ms; /* steady; 0: never looked */
};
int64_t worker_pace_per_minute(struct worker_pace *pace, int64_t total);

/* A good end: takes the row away. */
MUST_CHECK bool worker_leave(
    struct tx *tx, const struct worker_self *self, struct err *err);

/* Rows of workers that died a minute ago or longer. */
MUST_CHECK bool worker_sweep(struct tx *tx, struct err *err);

#endif
