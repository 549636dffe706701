/*
 * load -- what was read of a peer's outbox at once, as batches ready to leave.
 *
 * The first batch is whatever batch_choose makes of the rows. Another follows
 * it into the load only while everything before it is plain: nothing folded,
 * dropped, brought back or left behind. A batch leaves when all before it were
 * accepted whole, so that what is ready need not be chosen again.
 *
 * Filled on a worker thread, then the loop's. All of it lives in its arena;
 * what is owed to the outbox lives on the heap.
 */
#ifndef POSTRIDER_LOAD_H
#define POSTRIDER_LOAD_H

#include "common/federation/node.h"
#include "common/net/http.h"
#include "outboxd/batch.h"

enum { LOAD_HEADERS = 5, LOAD_BATCHES_MAX = 32 };

/* A batch and the signed request that carries it. */
struct parcel {
	struct batch batch;
	struct bytes body;
	struct http_header headers[LOAD_HEADERS];
};

struct load {
	struct arena *arena;
	struct rows window; /* of struct entry */
	struct parcel *parcels;
	size_t count;
	size_t sent;
	bool sealed; /* written and signed: it may leave */
	bool plain;  /* the last one is: what follows it may be read already */
	bool fresh;  /* the peer has not failed to take what is in it */
	struct load *next;
};

/* Ids that were accepted and not yet acknowledged. */
struct owed {
	int64_t *ids;
	size_t count;
	size_t room;
};

/* All entries of an accepted batch, the folded ones too. */
void owed_add(struct owed *owed, const struct batch *batch);
void owed_done(struct owed *owed);

struct load *load_new(void);
void load_free(struct load **load);
void load_reset(struct load *load);

/* Chooses batches_max batches at most from the window; cursor as theirs. What
 * the last one dropped is the caller's to remove. */
void load_choose(struct load *load, struct blocks *blocks,
    const struct batch_limits *limits, size_t batches_max, int64_t *cursor);

/* Writes and signs what was chosen. */
void load_seal(struct load *load, const struct node *node, const char *secret);

/* The batch chosen last, sent or not; NULL before load_choose. */
const struct batch *load_last(const struct load *load);

#endif
