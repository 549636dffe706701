/*
 * pace -- how fast a peer lets us send.
 *
 * Nobody is slowed down until it answers 429. Then what it took in the minute
 * before is its ceiling: we stay a tenth below, and come a little nearer each
 * minute. An hour after the last refusal the limit is forgotten by and by. How
 * long a refusal itself lasts is the answer's to say (answer.h).
 *
 * The ceiling and when it was met say all; they stand in the peer's row, where
 * whoever holds the lease next finds them. What persons ask of a peer goes
 * beside it and waits for nobody: it is in what the peer did not take from us.
 * No header is believed that tells of a limit; the reference's is of another
 * one.
 *
 * Loop thread only; steady milliseconds.
 */
#ifndef POSTRIDER_PACE_H
#define POSTRIDER_PACE_H

#include "common/base/base.h"

enum {
	PACE_LEAST = 30, /* requests a minute: never slower */
	PACE_MOST = 6000 /* faster is no limit at all */
};

struct pace;

struct pace *pace_new(void);
void pace_free(struct pace **pace);

void pace_sent(struct pace *pace, int64_t peer, int64_t now);
/* Its row knows of a limit that was met then; ceiling 0: of none. */
void pace_know(
    struct pace *pace, int64_t peer, int64_t ceiling, int64_t refused_at);
/* It answered 429. */
void pace_refused(struct pace *pace, int64_t peer, int64_t now);
/* How long the next request has to wait; 0: not at all. */
int64_t pace_wait_ms(struct pace *pace, int64_t peer, int64_t now);

/* What it took in a minute before it refused; 0: it never did. */
int64_t pace_ceiling(const struct pace *pace, int64_t peer);
/* Requests a minute; 0: no limit is known. For tests. */
int64_t pace_limit(const struct pace *pace, int64_t peer, int64_t now);

#endif
