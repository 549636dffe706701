/*
 * pressure -- how fast the outbox drains when the database is used hard.
 *
 * Rates before, while a snapshot is held, while others read, while more comes
 * than leaves, for a burst, and after; sizes of the queue before and after.
 */
#ifndef POSTRIDER_CHAOS_PRESSURE_H
#define POSTRIDER_CHAOS_PRESSURE_H

#include "tests/chaos/site.h"

/* False: something is missing or never drained. */
MUST_CHECK bool pressure_run(struct site *site, const struct options *options);

#endif
