/*
 * horizon -- which entries may still appear behind the cursor.
 *
 * Ids are drawn before commit, so that an entry may become visible after the
 * cursor has passed its place. Within a conversation ids are in commit order:
 * what matters is not to read on while something appeared behind. Each reading
 * remembers its snapshot; the next one asks for entries behind the cursor that
 * that snapshot did not see. Where no writer was at work then, none can come;
 * and below the floor everybody who drew an id has ended.
 *
 * One thread at a time.
 */
#ifndef POSTRIDER_HORIZON_H
#define POSTRIDER_HORIZON_H

#include "common/base/buf.h"

struct horizon {
	struct buf seen;    /* the last reading's snapshot, as text */
	bool busy;	    /* somebody was writing then */
	int64_t floor;	    /* nothing appears at or below it any more */
	int64_t mark;	    /* becomes the floor ... */
	int64_t mark_after; /* ... when all transactions before it have ended */
};

void horizon_init(struct horizon *horizon);
void horizon_done(struct horizon *horizon);

/* The snapshot to compare with; NULL: nothing can have appeared. */
const char *horizon_seen(const struct horizon *horizon);

/* A reading that began above cursor saw snapshot ("xmin:xmax:..."). */
void horizon_note(
    struct horizon *horizon, const char *snapshot, int64_t cursor);

#endif
