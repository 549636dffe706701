/*
 * sync_event -- one row of the mutation log in the recorded words.
 *
 * In sync an event is not told as it is relayed: the order of its members
 * differs by type, and what its conversation says already is left out. No
 * database.
 */
#ifndef POSTRIDER_SYNC_EVENT_H
#define POSTRIDER_SYNC_EVENT_H

#include "common/federation/sync_page.h"

/* False and nothing written when it is told no more: a create or update of a
 * message that has been deleted. */
bool sync_event_put(struct json_out *out, struct arena *arena,
    const struct node *node, const struct sync_page *page,
    const struct sync_row *row);

#endif
