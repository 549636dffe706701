/*
 * park -- requests that wait for a peer's answer, or for a moment.
 *
 * A parked call holds neither worker nor connection. It goes on when
 * postrider_reply names its ask, when the look once a second finds the
 * answer, or at its deadline, whichever is first: a lost signal costs at most
 * that second. Their number is bounded.
 *
 * Loop thread only; the look itself runs on a worker.
 */
#ifndef POSTRIDER_PARK_H
#define POSTRIDER_PARK_H

#include "frontd/dispatch.h"

enum { PARKED_MAX = 1000 };

struct parking *parking_new(struct dispatch *dispatch);
void parking_free(struct parking **parking);

/* False when too many are parked. */
MUST_CHECK bool parking_add(struct parking *parking, struct call *call);
/* The finished answer waits until call->due_ms. */
void parking_hold(struct parking *parking, struct call *call);

/* A payload of postrider_reply. */
void parking_hint(struct parking *parking, int64_t ask);
/* Look now: signals may have been missed. */
void parking_look(struct parking *parking);

size_t parking_count(const struct parking *parking);

#endif
