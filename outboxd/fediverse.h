/*
 * fediverse -- the loop's side of ActivityPub delivery
 * (common/fediverse/outbound.h).
 *
 * Domains that have something due are leased, the longest unserved first; of
 * each a few rows are read, signed by workers and sent, at most
 * FEDIVERSE_PER_DOMAIN at a time; what became of them is written in one
 * transaction, which reads the next ones. A domain gives its lease back when
 * nothing is due, when its breaker says so, or, where others wait, after a
 * turn. Nothing here knows how a row travels: delivery.h does.
 *
 * Loop thread only. fediverse_wake is cheap and is called for every hint. At
 * the end: fediverse_abort, then free the work pool, then fediverse_free.
 */
#ifndef POSTRIDER_OUTBOXD_FEDIVERSE_H
#define POSTRIDER_OUTBOXD_FEDIVERSE_H

#include "common/base/work.h"
#include "common/fediverse/home.h"
#include "common/net/client.h"
#include "common/queue/worker.h"

enum { FEDIVERSE_PER_DOMAIN = 4 };

struct fediverse;

struct fediverse_def {
	struct loop *loop;
	struct work_pool *pool;	  /* its state is struct outboxd_worker */
	struct client_def client; /* how it may connect */
	const struct home *home;
	const struct worker_self *self; /* read at every claim */
	const int64_t *at_once_max; /* activities on the way, a live setting */
};

struct fediverse *fediverse_new(const struct fediverse_def *def);
/* Sends nothing more, forgets what is on the way. */
void fediverse_abort(struct fediverse *fediverse);
void fediverse_free(struct fediverse **fediverse);

/* Our lock: only while it is held are leases ours. */
void fediverse_up(struct fediverse *fediverse);
void fediverse_down(struct fediverse *fediverse);

void fediverse_wake(struct fediverse *fediverse);
/* Claims nothing more, and gives back what it has. */
void fediverse_drain(struct fediverse *fediverse);
bool fediverse_drained(const struct fediverse *fediverse);

#endif
