/*
 * heard -- events that must not be applied twice, though the world moved on.
 *
 * A message is known by its id, a friendship by its people. Who joined or left
 * a group or got it may do so again, so a repeated event is only known by its
 * own id. Kept for as long as its sender may repeat it.
 *
 * Worker threads, while the peer's lock is held.
 */
#ifndef POSTRIDER_HEARD_H
#define POSTRIDER_HEARD_H

#include "common/federation/range.h"

/* Accepts those events of the run that were heard before. */
MUST_CHECK bool heard_skip(struct relay_range *run, struct err *err);
/* Remembers what was accepted about a conversation (channel). */
MUST_CHECK bool heard_keep(struct relay_range *run, struct err *err);

#endif
