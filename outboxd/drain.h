/*
 * drain -- emptying one peer's outbox under its lease, a step at a time.
 *
 * A step books the answer that was no plain acceptance, acknowledges and reads
 * on in one fenced statement, chooses the next batches, makes durable that
 * they are being presented, and leaves a load of signed requests; or it gives
 * the lease back. A step ahead is taken while batches of the last load are
 * still on their way: it acknowledges and reads on, and leaves its load to be
 * signed by drain_seal, while the next step ahead reads already. No transaction
 * is open between two steps. A step that fails has lost its lease or the
 * database: drain_release tries to give the lease back, and nothing that was
 * not booked is lost.
 *
 * Steps run on worker threads; between them the drain is the loop's. What it
 * may read during a step ahead is named below.
 */
#ifndef POSTRIDER_DRAIN_H
#define POSTRIDER_DRAIN_H

#include "common/federation/node.h"
#include "common/pg/sql.h"
#include "outboxd/answer.h"
#include "outboxd/claim.h"
#include "outboxd/horizon.h"
#include "outboxd/load.h"

enum {
	DRAIN_WINDOW = 200, /* entries read at first; more during a backlog */
	DRAIN_WINDOW_MAX = 800,
	DRAIN_WINDOW_BYTES = 512 * 1024, /* and fewer when they are large */
	DRAIN_WINDOWS_MAX = 10,
	DRAIN_AHEAD = 20000, /* presented ahead of a backlog */
	/* Ids of the whole outbox that count as presented beforehand while a
	 * peer takes what comes: what is next need not wait for the disk. */
	DRAIN_RESERVE = 20000,
	/* Ids of the whole outbox that a peer's empty_through may lag behind:
	 * raising it takes a reading more. */
	DRAIN_LOW_LAG = 256,
	DRAIN_RESCAN_MS = 1000,
	DRAIN_WHOLLY_MS = 60 * 1000, /* then from the very start */
	DRAIN_CULPRITS_MAX = 3, /* in a row; then it is the peer, not them */
	/* After so many entries that have to wait the lease is kept, and they
	 * are read again after a millisecond each, half a minute at most. */
	DRAIN_LINGER_AT = 1000,
	DRAIN_LINGER_MAX_MS = 30 * 1000
};

struct drain {
	struct peer_lease lease;
	const struct node *node;
	struct arena *keep;    /* as long as the lease */
	struct arena *scratch; /* of a step */
	const char *secret;    /* NULL: it does not open */
	const char *url;
	struct blocks *blocks;
	size_t window; /* entries to read next */
	int64_t cursor;
	struct horizon horizon; /* what may appear behind it */
	int64_t low;	     /* nothing at or below it is there or can appear */
	int64_t lowered_at;  /* steady ms: last time that was not relied on */
	int64_t scanned_at;  /* steady ms: last reading from the start */
	int64_t rescan_ms;   /* how long it holds */
	int64_t retry_at;    /* wall ms: the first that is set aside is due */
	int64_t passed;	     /* entries read since, that could not go */
	int64_t answered_at; /* steady ms: last time the peer's row heard so */
	int64_t culprits;
	bool whole;	/* this reading began at the start */
	bool dry;	/* it came to the end of what was there */
	bool lingering; /* it found nothing that may go, and much that waits */

	/* Set by the loop before a step. */
	struct load *load;	 /* empty, or NULL */
	struct owed owed;	 /* accepted since the last step */
	int status;		 /* of the last answer that was an acceptance */
	int64_t max_upload_size; /* it named */
	int64_t took_ms;	 /* it took */
	int64_t limit_per_minute; /* what it took before it asked us to wait */
	struct parcel *out;	  /* its answer is to be booked */
	struct answer answer;
	bool ahead;	   /* batches are out: only acknowledge and read on */
	bool brief;	   /* others wait: one window, then another step */
	bool leaving;	   /* book, then give the lease back */
	bool may_linger;   /* nobody waits for our room */
	bool warm;	   /* it may take more at once: keep the lease */
	bool fresh_secret; /* told of a change: read it and entries again */
	bool uncounted;	   /* a failure is ours, not the peer's */

	/* Left by a step; the load is empty when there is nothing to send. */
	bool freed;  /* the lease went back with the reading */
	bool again;  /* there was so much to pass over: one more step */
	bool linger; /* not given back: one more step, a second later at most */
	bool more;   /* the load may be followed by a step ahead */
};

/* Copies the lease. */
struct drain *drain_new(
    const struct peer_lease *lease, const struct node *node);
void drain_free(struct drain **drain);

/* Is it time to read from the start again? Not during a step. */
bool drain_rescan_due(const struct drain *drain);

MUST_CHECK bool drain_step(
    struct conn *conn, struct drain *drain, struct err *err);
/* Writes and signs what a step ahead left; during the next one, if need be. */
void drain_seal(const struct drain *drain, struct load *load);
MUST_CHECK bool drain_release(
    struct conn *conn, struct drain *drain, struct err *err);

#endif
