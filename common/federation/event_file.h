/*
 * event_file -- file_rejected: a node would not take a file of our message.
 *
 * Only for people of the node that speaks who are in the conversation, which
 * proves that it takes part. The message is named by our id.
 *
 * Worker threads.
 */
#ifndef POSTRIDER_EVENT_FILE_H
#define POSTRIDER_EVENT_FILE_H

#include "common/federation/range.h"

bool file_rejected_read(const struct relay_batch *batch,
    struct relay_event *event, struct err *err);
MUST_CHECK bool file_rejected_apply(struct relay_range *run, struct err *err);

#endif
