/*
 * sync -- what a peer has missed: POST /api/federation/sync (specification,
 * section 12).
 *
 * A page of the mutation log, as far as the asking host takes part in it
 * (federation_sync_entries, schema/0013_sync). Messages are told in their
 * current state, deleted ones not at all; everything else in the words in
 * which it was relayed. A page ends with a whole millisecond, so that asking
 * for what is later than its checkpoint neither skips nor repeats, and is
 * empty only when nothing more is there.
 *
 * Worker threads, in one transaction that must be committed: answering also
 * makes readable what was committed since.
 */
#ifndef POSTRIDER_SYNC_H
#define POSTRIDER_SYNC_H

#include "common/federation/node.h"
#include "common/pg/sql.h"

struct sync_question {
	double since_told; /* as it came, for the echo */
	int64_t since;	   /* ms */
	const char *context_type;
	const char *channel;	  /* our id of a conversation, or NULL */
	const char *federated_id; /* or by this */
	int64_t limit;
};

/* Reads the body: ERR_INVALID in the recorded words. */
MUST_CHECK bool sync_read(struct arena *arena, struct bytes body,
    struct sync_question *question, struct err *err);

/* Writes {"events":[...],"hasMore":...,"checkpoint":...}. */
MUST_CHECK bool sync_answer(struct tx *tx, const struct node *node,
    const char *host, const struct sync_question *question, struct buf *out,
    struct err *err);

#endif
