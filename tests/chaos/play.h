/*
 * play -- people act, things go wrong, things come to rest.
 *
 * Main thread; the people have threads of their own and say when all of them
 * are done.
 */
#ifndef POSTRIDER_CHAOS_PLAY_H
#define POSTRIDER_CHAOS_PLAY_H

#include "tests/chaos/faults.h"

typedef bool play_done(const void *people);

/* Injects faults until the people are done or the time is over. */
MUST_CHECK bool play_faults(struct faults *faults, int ms, play_done *done,
    const void *people, struct err *err);

/* From the end of the faults until nothing waits any more: ms, or -1: not in
 * time. *people_ms: until nobody waited for an answer. */
int64_t play_recovery(struct site *site, const struct options *options,
    play_done *done, const void *people, int64_t *people_ms);

#endif
