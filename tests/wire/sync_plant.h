/*
 * sync_plant -- what the recorded server had when it was asked what had been
 * missed, put into a database of ours: its people, conversations, messages and
 * log, with its ids and times, as far as its answers tell.
 */
#ifndef POSTRIDER_SYNC_PLANT_H
#define POSTRIDER_SYNC_PLANT_H

#include "tests/wire/recording.h"

/* Answers that asker got from us (both hosts) in this recording. */
void sync_plant(const char *conninfo, const struct recording *recording,
    const char *asker, const char *us);

/* Is this one of them? */
bool sync_plant_is_answer(
    const struct exchange *exchange, const char *asker, const char *us);

/* A recorded text without the members that only the newer version has. */
const char *sync_plant_plain(struct arena *arena, const char *text);

#endif
