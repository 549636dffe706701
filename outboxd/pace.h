/*
 * pace -- how fast a peer lets us send.
 *
 * Nobody is slowed down until it answers 429. Then what it took in the minute
 * before is its limit: we stay a tenth below, and come a little nearer each
 * minute. After an hour without a refusal the limit is forgotten by and
 * by. How long a refusal itself lasts is the answer's to say (answer.h).
 *
 * Known while this process lives. Loop thread only; steady milliseconds.
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
/* It answered 429. */
void pace_refused(struct pace *pace, int64_t peer, int64_t now);
/* How long the next request has to wait; 0: not at all. */
int64_t pace_wait_ms(struct pace *pace, int64_t peer, int64_t now);

/* Requests a minute; 0: no limit is known. For tests. */
int64_t pace_limit(const struct pace *pace, int64_t peer);

#endif
