/*
 * event_friend -- inbound friend requests and friendships (specification,
 * section 9).
 *
 * Who acts, and whose home must therefore speak: the asker in create and
 * cancel, the asked in update and friend_add, either in friend_remove. An
 * acceptance is a friendship, whichever of update and friend_add comes first.
 * A friendship with one of our people that he has not asked for is none: it is
 * answered with its end, so that both nodes agree.
 *
 * The functions are those of struct event_type (batch.h).
 */
#ifndef POSTRIDER_EVENT_FRIEND_H
#define POSTRIDER_EVENT_FRIEND_H

#include "common/federation/range.h"

/* Locks every pair that the range speaks of, in a fixed order. */
MUST_CHECK bool range_friends(struct relay_range *range, struct err *err);

bool friend_create_read(const struct relay_batch *batch,
    struct relay_event *event, struct err *err);
bool friend_update_read(const struct relay_batch *batch,
    struct relay_event *event, struct err *err);
bool friend_cancel_read(const struct relay_batch *batch,
    struct relay_event *event, struct err *err);
bool friend_add_read(const struct relay_batch *batch, struct relay_event *event,
    struct err *err);
bool friend_remove_read(const struct relay_batch *batch,
    struct relay_event *event, struct err *err);

bool friend_create_admit(const struct relay_range *range,
    struct relay_event *event, struct err *err);
bool friend_update_admit(const struct relay_range *range,
    struct relay_event *event, struct err *err);
bool friend_cancel_admit(const struct relay_range *range,
    struct relay_event *event, struct err *err);
bool friend_add_admit(const struct relay_range *range,
    struct relay_event *event, struct err *err);
bool friend_remove_admit(const struct relay_range *range,
    struct relay_event *event, struct err *err);

bool friend_create_apply(struct relay_range *run, struct err *err);
bool friend_update_apply(struct relay_range *run, struct err *err);
bool friend_cancel_apply(struct relay_range *run, struct err *err);
bool friend_add_apply(struct relay_range *run, struct err *err);
bool friend_remove_apply(struct relay_range *run, struct err *err);

#endif
