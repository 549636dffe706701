/*
 * batch -- which of a peer's waiting entries leave next, and as what bytes.
 *
 * Entries are read in order of id. What happened to one thing is coalesced
 * after the table of the specification, an event a thing; entries that wait
 * behind a refused one are passed over; the rest keeps its order. Nothing
 * here touches the database: the caller removes, marks and sends what comes
 * out.
 *
 *     create + update   create with the later payload and the first time
 *     create + delete   nothing, if the create was never presented; else both
 *     update + update   the later payload, the first time
 *     update + delete   delete
 *
 * Any thread, but one at a time. A batch lives in its arena.
 */
#ifndef POSTRIDER_BATCH_H
#define POSTRIDER_BATCH_H

#include "common/base/json.h"
#include "outboxd/blocks.h"
#include "outboxd/names.h"

enum {
	BATCH_EVENTS_MAX = 50,
	BATCH_RETRIES_MAX = 10,
	BATCH_BYTES_MAX = 8 * 1024 * 1024,
	BATCH_BODY_MAX = 10 * 1024 * 1024,
	/* A full batch looks so much further for what joins it. */
	BATCH_LOOK_ON = 100
};

/* Folded entries, in order. */
struct link {
	const struct entry *entry;
	struct link *next;
};

/* An event of the batch. */
struct item {
	const struct entry *first;
	struct link *folded; /* the entries after first, in order */
	struct link *folded_tail;
	const char *event_type;
	const char *payload;
	bool retry;
	bool closed;	/* takes no more entries */
	bool cancelled; /* came to nothing */
	/* what the peer said */
	bool accepted;
	const char *refused; /* its word */
};

struct batch_limits {
	size_t events_max;
	int64_t presented_through;
	int64_t now; /* wall ms */
};

struct batch {
	struct arena *arena;
	struct item *items; /* cancelled ones included */
	size_t count;
	size_t live; /* without the cancelled ones */
	size_t retries;
	size_t bytes;
	int64_t last_id;	/* highest id that leaves with this batch */
	int64_t cursor;		/* the next reading begins above it */
	struct link *cancelled; /* a delete met its create */
	struct link *expired;
	struct names *by_entity;
};

/* Chooses from window, rows of struct entry in order of id. */
void batch_choose(struct batch *batch, struct arena *arena,
    struct blocks *blocks, const struct rows *window,
    const struct batch_limits *limits);

/* The item about this thing, or NULL. */
struct item *batch_find(const struct batch *batch, const char *entity_id);

/* The request's bytes; nothing for an empty batch. */
void batch_write(
    const struct batch *batch, const char *origin, struct buf *out);

#endif
