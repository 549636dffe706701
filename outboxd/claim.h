/*
 * claim -- leasing peers that have entries and are due.
 *
 * One statement finds them, the longest unserved first, and stamps each with
 * our worker, a token of its own and an end. Where a peer has little, it brings
 * that along: all that its outbox held in the snapshot of the statement, which
 * is as good as a first reading from where the outbox begins. It is brought
 * only if the peer's row is what that snapshot saw; else somebody had the lease
 * in between and has sent what seems to be there.
 *
 * Worker threads.
 */
#ifndef POSTRIDER_CLAIM_H
#define POSTRIDER_CLAIM_H

#include "common/pg/sql.h"
#include "outboxd/entry.h"

/* So many entries are no longer little; fewer come along. */
enum { CLAIM_FIRST = 4 };

/* A peer as claimed. */
struct peer_lease {
	int64_t peer;
	const char *origin;
	const char *token;
	const char *status;
	struct bytes hmac_secret;
	int64_t presented_through; /* on the disk; may be ahead */
	int64_t presented;	   /* really; what folds lies above it */
	int64_t empty_through;	   /* as the peer's row says */
	int64_t transport_failures;
	int64_t auth_failures;
	int64_t retry_batch_limit;
	int64_t remote_max_upload_size;
	int64_t accepted_ms;	  /* ago; 0: never */
	int64_t limit_per_minute; /* what it took before a 429; 0: none */
	int64_t limited_ms;	  /* ago */
	struct rows first;    /* of struct entry: all that was there when ... */
	const char *snapshot; /* ... this was; NULL: it is to be read */
};

/* What to lease, and for whom. */
struct claim_def {
	int64_t worker;
	int64_t room;
	bool wholly;	      /* rely on no peer's empty_through */
	const int64_t *peers; /* only these, or NULL */
	size_t peer_count;
};

/* Lease at most room due peers; rows of struct peer_lease. Commits. */
MUST_CHECK bool claim_peers(struct conn *conn, struct arena *arena,
    const struct claim_def *def, struct rows *leases, struct err *err);

/* The ids, rows of struct claim_busy, of those peers that somebody else has. */
struct claim_busy {
	int64_t id;
};
MUST_CHECK bool claim_elsewhere(struct conn *conn, struct arena *arena,
    const struct claim_def *def, struct rows *busy, struct err *err);

/* A lease that outlives its claim; without the secret. */
struct peer_lease claim_keep(
    struct arena *keep, const struct peer_lease *lease);

#endif
