/*
 * relay -- one inbound batch (DESIGN 7, specification section 5).
 *
 * relay_apply parses the envelope, checks the attribution of every event
 * before any look-up, resolves the people, locks the conversations in id
 * order and applies runs with set-based statements, in the caller's
 * transaction. A failing event costs only itself: expected refusals become
 * lines of rejected; an error of the database fails the batch (ERR_BUSY or
 * ERR_BUG), and relay_apply_singly does it again with one transaction per
 * event.
 *
 * Worker threads. The answer lives in the arena.
 */
#ifndef POSTRIDER_RELAY_H
#define POSTRIDER_RELAY_H

#include "common/federation/node.h"
#include "common/federation/peer.h"

enum { RELAY_EVENTS_MAX = 50 };

struct relay_batch;
struct event_type;

/* All types; NULL beyond the last. */
const struct event_type *event_type_at(size_t place);

/* The envelope: 400 texts as recorded; sourceInstance must be the signing
 * origin (DESIGN 16). */
MUST_CHECK bool relay_parse(struct arena *arena, struct bytes body,
    const struct node *node, const struct peer *peer,
    struct relay_batch **batch, struct err *err);

MUST_CHECK bool relay_apply(
    struct tx *tx, struct relay_batch *batch, struct err *err);
MUST_CHECK bool relay_apply_singly(
    struct tx *tx, struct relay_batch *batch, struct err *err);

/* A line for the first few that were refused, and one for the others; all
 * events are counted. */
void relay_log(const struct relay_batch *batch);

/* {"accepted":[...],"rejected":[...],"maxUploadSize":n}, once applied. */
void relay_answer(const struct relay_batch *batch, struct buf *out);

#endif
