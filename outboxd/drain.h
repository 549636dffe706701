/*
 * drain -- emptying one peer's outbox under its lease, a step at a time.
 *
 * A step books the answer to the last batch, acknowledges and reads on in one
 * fenced statement, chooses the next batch, makes durable that it is being
 * presented, and leaves a signed request to be sent; or it gives the lease
 * back. No transaction is open between two steps. A step that fails has lost
 * its lease or the database: drain_release tries to give the lease back, and
 * nothing that was not booked is lost.
 *
 * Steps run on worker threads; between them the drain is the loop's.
 */
#ifndef POSTRIDER_DRAIN_H
#define POSTRIDER_DRAIN_H

#include "common/federation/node.h"
#include "common/pg/sql.h"
#include "outboxd/answer.h"
#include "outboxd/batch.h"

enum {
	DRAIN_WINDOW = 200, /* entries read at once */
	DRAIN_WINDOWS_MAX = 10,
	DRAIN_AHEAD = 1000, /* presented ahead of a backlog */
	DRAIN_RESCAN_MS = 1000,
	DRAIN_HEADERS = 5,
	DRAIN_CULPRITS_MAX = 3 /* in a row; then it is the peer, not them */
};

/* A peer as claimed. */
struct drain_lease {
	int64_t peer;
	const char *origin;
	const char *token;
	const char *status;
	struct bytes hmac_secret;
	int64_t presented_through;
	int64_t transport_failures;
	int64_t auth_failures;
	int64_t retry_batch_limit;
	int64_t remote_max_upload_size;
};

struct drain {
	struct drain_lease lease;
	const struct node *node;
	struct arena *keep;  /* as long as the lease */
	struct arena *arena; /* of the batch that is out */
	struct arena *spare; /* of the batch before or after it */
	const char *secret;  /* NULL: it does not open */
	const char *url;
	struct blocks *blocks;
	struct arena *windows[2]; /* what was read, and what is read next */
	struct rows window;
	int64_t *owed; /* settled, and acknowledged with the next reading */
	size_t owed_count;
	size_t window_at; /* entries before it are in no later batch */
	struct batch batch;
	int64_t cursor;
	int64_t scanned_at;  /* steady ms: last reading from the start */
	int64_t answered_at; /* steady ms: last time the peer's row heard so */
	int64_t culprits;
	bool whole;	  /* this reading began at the start */
	bool plain;	  /* see window_serves */
	bool passed_over; /* entries wait although none can go */

	/* Set by the loop before a step. */
	bool has_answer;
	struct answer answer;
	bool leaving;	   /* book, then give the lease back */
	bool fresh_secret; /* told of a change: read it and entries again */
	bool uncounted;	   /* a failure is ours, not the peer's */

	/* Left by a step. */
	bool sending; /* there is a request to send; else it is over, */
	bool again;   /* or there was so much to pass over: one more step */
	struct bytes body;
	struct http_header headers[DRAIN_HEADERS];
};

/* Lease at most room due peers; rows of struct drain_lease. Commits. */
MUST_CHECK bool drain_claim(struct conn *conn, struct arena *arena,
    int64_t worker, int64_t room, struct rows *leases, struct err *err);

/* Copies the lease. */
struct drain *drain_new(
    const struct drain_lease *lease, const struct node *node);
void drain_free(struct drain **drain);

MUST_CHECK bool drain_step(
    struct conn *conn, struct drain *drain, struct err *err);
MUST_CHECK bool drain_release(
    struct conn *conn, struct drain *drain, struct err *err);

#endif
