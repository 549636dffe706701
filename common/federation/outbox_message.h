/*
 * outbox_message -- messages on their way to other nodes.
 *
 * Worker threads, in the transaction of the change.
 */
#ifndef POSTRIDER_OUTBOX_MESSAGE_H
#define POSTRIDER_OUTBOX_MESSAGE_H

#include "common/chat/message.h"
#include "common/federation/outbox_people.h"

/*
 * create, update or delete of a message of a native author (or of one of our
 * people relayed homeward, under our own id). Targets: the hosts of the
 * participants and of the instances where a participant has declared an
 * account, without except_host (may be NULL); dm_relay_scope all_peers widens
 * it. ERR_FORBIDDEN when the author is no member (any more): the change must
 * not stay on this node alone.
 */
MUST_CHECK bool outbox_add_message(struct tx *tx, const struct node *node,
    const char *event_type, const struct message *message,
    const char *except_host, struct err *err);

/* "message" with its attachments (struct attachment), as relay and sync tell
 * it. */
void put_message(struct json_out *out, struct arena *arena,
    const struct node *node, const struct message *message,
    const struct outbox_person *author, const struct rows *files);

#endif
