/*
 * backoff -- when to try again.
 *
 * A peer that cannot be reached is tried along the schedule of section 5 of
 * the specification; an entry that was refused for now waits 30 s, doubling
 * to an hour, and is given up after BACKOFF_REFUSALS_MAX refusals.
 *
 * A delivery to an inbox is tried again after 5 minutes, then three times as
 * late each time, to two days (contract of ActivityPub delivery, section 4).
 *
 * Any thread, no state.
 */
#ifndef POSTRIDER_BACKOFF_H
#define POSTRIDER_BACKOFF_H

#include "common/base/base.h"

enum {
	BACKOFF_UNREACHABLE_AT = 10, /* failures in a row */
	BACKOFF_REFUSALS_MAX = 8
};

/* Seconds before the next attempt after the attempt-th failure in a row. */
int64_t backoff_s(int64_t attempt);

/* Seconds a refused entry waits after its count-th refusal. */
int64_t backoff_refusal_s(int64_t count);

/*
 * Milliseconds with up to a tenth added, so that what failed together does
 * not come back together. chance: any random number.
 */
int64_t backoff_jitter_ms(int64_t seconds, uint32_t chance);

/* The same with a fresh random number. */
int64_t backoff_spread_ms(int64_t seconds);

/*
 * Milliseconds before the next attempt after the attempt-th failed one of a
 * delivery to an inbox; up to a fifth is added, but never beyond two days.
 * chance: any random number.
 */
int64_t backoff_inbox_ms(int64_t attempt, uint32_t chance);

#endif
