/*
 * event_reaction -- reaction_add and reaction_remove from other nodes.
 *
 * A message is named by where it was born, ours by its id here; what its
 * author's home has sent on also by where it was written. Who reacts must be
 * known and in the conversation. The latest word counts (common/chat/reaction),
 * so nothing comes back by being repeated. A removal that finds nothing is
 * accepted. What comes homeward from one of our people is sent on.
 *
 * Worker threads.
 */
#ifndef POSTRIDER_EVENT_REACTION_H
#define POSTRIDER_EVENT_REACTION_H

#include "common/federation/range.h"

bool reaction_add_read(const struct relay_batch *batch,
    struct relay_event *event, struct err *err);
bool reaction_remove_read(const struct relay_batch *batch,
    struct relay_event *event, struct err *err);

bool reaction_add_admit(const struct relay_range *range,
    struct relay_event *event, struct err *err);
bool reaction_remove_admit(const struct relay_range *range,
    struct relay_event *event, struct err *err);

MUST_CHECK bool reaction_add_apply(struct relay_range *run, struct err *err);
MUST_CHECK bool reaction_remove_apply(struct relay_range *run, struct err *err);

#endif
