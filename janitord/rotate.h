/*
 * rotate -- secrets whose time has come (common/federation/rotation).
 *
 * Every five seconds: rows whose grace is over are tidied, old secrets and
 * attempts of unknown outcome are asked of outboxd. The claim is in the row,
 * so a second leader asks no more often. Loop thread.
 */
#ifndef POSTRIDER_ROTATE_H
#define POSTRIDER_ROTATE_H

#include "common/base/work.h"

struct rotator;

struct rotator *rotator_new(struct work_pool *pool);
/* After work_pool_free. */
void rotator_free(struct rotator **rotator);

/* The leader calls it every second. */
void rotator_look(struct rotator *rotator);

#endif
