/*
 * event_profile -- inbound profiles (specification, section 10).
 *
 * Only the person's home speaks, never another node for him. All six fields
 * are taken when the version is newer; who has no row here is accepted and
 * leaves nothing.
 *
 * The functions are those of struct event_type (batch.h).
 */
#ifndef POSTRIDER_EVENT_PROFILE_H
#define POSTRIDER_EVENT_PROFILE_H

#include "common/federation/range.h"

bool profile_update_read(const struct relay_batch *batch,
    struct relay_event *event, struct err *err);
bool profile_update_apply(struct relay_range *run, struct err *err);

#endif
