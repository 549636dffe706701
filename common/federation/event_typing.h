/*
 * event_typing -- who writes just now, from other nodes.
 *
 * Shown to whoever is connected and kept nowhere: no lock, nobody is made. Of
 * a conversation or a person that is not here nothing is shown, and the sender
 * is told yes. Whom the peer may not speak for is refused before any look-up.
 *
 * Worker threads.
 */
#ifndef POSTRIDER_EVENT_TYPING_H
#define POSTRIDER_EVENT_TYPING_H

#include "common/federation/range.h"

bool typing_read(const struct relay_batch *batch, struct relay_event *event,
    struct err *err);
bool typing_admit(const struct relay_range *range, struct relay_event *event,
    struct err *err);
MUST_CHECK bool typing_start_apply(struct relay_range *run, struct err *err);
MUST_CHECK bool typing_stop_apply(struct relay_range *run, struct err *err);

#endif
