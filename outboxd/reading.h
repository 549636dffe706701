/*
 * reading -- acknowledges what is settled and reads a peer's outbox on.
 *
 * One statement, fenced by the lease's token, in a transaction of its own that
 * leaves and commits in one trip. It also keeps two bounds. The cursor is a
 * hint, since entries commit late: when one has appeared behind it the reading
 * is late, and the next one begins at the start. The start is the drain's low:
 * below it everybody who drew an id has ended and nothing is left, so that rows
 * which are dead but cannot be removed yet are not met again and again. A
 * reading from there that finds nothing may give the lease back at once.
 *
 * When nothing is settled and the lease is to be kept, a statement that writes
 * nothing does the reading: it takes no lock, and its fence is that the lease
 * was ours in its snapshot. The first reading of a peer that has little came
 * with its claim.
 *
 * Worker threads, as drain.h.
 */
#ifndef POSTRIDER_READING_H
#define POSTRIDER_READING_H

#include "outboxd/settle.h"

struct reading {
	size_t most;	    /* 0: only acknowledge */
	bool may_free;	    /* give the lease back when nothing is there */
	struct rows window; /* of struct entry; in the transaction's arena */
	bool late;  /* something appeared behind the cursor; window is none */
	bool freed; /* the lease is no longer ours, and nothing is left */
};

/* Takes the ids of settled; ERR_CONFLICT when the lease is lost. Commits. */
MUST_CHECK bool reading_next(struct tx *tx, struct drain *drain,
    struct settled *settled, struct reading *reading, struct err *err);

#endif
