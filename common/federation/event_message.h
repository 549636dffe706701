/*
 * event_message -- create, update and delete of messages from other nodes.
 *
 * The pattern of all event types: read (form and attribution, no database),
 * then apply to a run with statements for all of its events at once. The
 * range has resolved the people, looked up the messages that are known and
 * locked the conversations before.
 *
 * A create settles as accepted, duplicate or refused; an edit that is not
 * newer than what we have is accepted and ignored; a delete leaves a
 * tombstone, so that neither a late create nor a repeated delete surprises.
 *
 * Worker threads.
 */
#ifndef POSTRIDER_EVENT_MESSAGE_H
#define POSTRIDER_EVENT_MESSAGE_H

#include "common/federation/range.h"

bool create_read(const struct relay_batch *batch, struct relay_event *event,
    struct err *err);
bool update_read(const struct relay_batch *batch, struct relay_event *event,
    struct err *err);
bool delete_read(const struct relay_batch *batch, struct relay_event *event,
    struct err *err);

bool create_admit(const struct relay_range *range, struct relay_event *event,
    struct err *err);

MUST_CHECK bool create_apply(struct relay_range *run, struct err *err);
MUST_CHECK bool update_apply(struct relay_range *run, struct err *err);
MUST_CHECK bool delete_apply(struct relay_range *run, struct err *err);

#endif
