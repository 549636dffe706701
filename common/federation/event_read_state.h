/*
 * event_read_state -- read_state_update from the other nodes of our people.
 *
 * Kept only for who has an account here; positions only move forward
 * (common/chat/read_state). The reference sends the event without its payload
 * and repeats it until it is accepted: so it is, and so is what concerns a
 * conversation or a message that is not here. From one of our own people it
 * is sent on to his other nodes.
 *
 * Worker threads.
 */
#ifndef POSTRIDER_EVENT_READ_STATE_H
#define POSTRIDER_EVENT_READ_STATE_H

#include "common/federation/range.h"

bool read_state_read(const struct relay_batch *batch, struct relay_event *event,
    struct err *err);
bool read_state_admit(const struct relay_range *range,
    struct relay_event *event, struct err *err);
MUST_CHECK bool read_state_apply(struct relay_range *run, struct err *err);

#endif
