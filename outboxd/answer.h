/*
 * answer -- what became of a batch: the peer's answer, or none.
 *
 * An answer that says nothing about the events is a failure of the way to the
 * peer, whatever its status: no answer is never a success.
 *
 * Any thread, no state.
 */
#ifndef POSTRIDER_ANSWER_H
#define POSTRIDER_ANSWER_H

#include "common/net/client.h"
#include "outboxd/batch.h"

enum {
	ANSWER_BYTES_MAX = 1024 * 1024,
	ANSWER_TEXT_MAX = 200,
	ANSWER_PAUSE_MS = 5000, /* a 429 that names no time */
	ANSWER_PAUSE_MAX_MS = 3600 * 1000
};

enum answer_kind {
	ANSWER_SETTLED,	  /* accepted and rejected are in the batch's items */
	ANSWER_TRANSPORT, /* no way to the peer, or nonsense from it */
	ANSWER_AUTH,	  /* it does not take our signature */
	ANSWER_PAUSE,	  /* it asks us to wait */
	ANSWER_BLAMED,	  /* it will not take this batch, whoever brings it */
	ANSWER_ABORTED	  /* we let go of it ourselves */
};

/* What came over the wire, kept until a worker reads it. */
struct answer {
	enum client_outcome outcome;
	int status;
	struct bytes body;
	int64_t retry_after_ms; /* -1: none */
	int64_t took_ms;
	const char *text; /* for the log and for last_error */
	/* read from it */
	bool read;
	enum answer_kind kind;
	int64_t pause_ms;
	int64_t max_upload_size; /* 0: not said */
};

/* Copies the result of a call. */
struct answer answer_keep(
    struct arena *arena, const struct client_result *result);

/* Decides kind; a settled one marks the items of batch. Texts in arena. */
void answer_read(
    struct answer *answer, struct batch *batch, struct arena *arena);

/* Read, and it takes every event of the batch. */
bool answer_takes_all(const struct answer *answer, const struct batch *batch);

#endif
