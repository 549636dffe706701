/*
 * rotation -- a peer and we change our secret (specification, section 1).
 *
 * The new secret is stored as pending before it leaves. Until the peer is
 * known to have it the old one signs and both verify; from then on, for the
 * grace, the new one signs and both still verify; then only the new one does.
 * That end follows the clock: a reader past it uses the new secret, whether or
 * not somebody has tidied the row (peer.h).
 *
 * Rows of federation_peers, beside pending_hmac_secret:
 *
 *   rotation_by             us or peer; NULL: none
 *   secret_rotation_at      the grace began; NULL: nobody knows if they have it
 *   rotation_attempt_until  an attempt runs until then, and none was later
 *   rotation_unsure_until   until then an earlier attempt may still be taken
 *
 * Whoever asks (the administrator through frontd, janitord by the secret's
 * age) adds an ask of kind "rotate"; outboxd makes the secret, commits it,
 * sends it and writes down what became of it. A crash at any point leaves a
 * rotation whose outcome is unknown: janitord has the same secret sent again.
 * It is forgotten only when the peer has refused it and no earlier attempt can
 * be taken any more. If both begin at once, the rotation of the bytewise
 * smaller origin stands.
 *
 * Worker threads.
 */
#ifndef POSTRIDER_ROTATION_H
#define POSTRIDER_ROTATION_H

#include "common/federation/ask.h"
#include "common/federation/peer.h"

/* ---- we begin ---- */

/* ERR_INVALID: not active; ERR_CONFLICT: one is under way. ask is added. */
MUST_CHECK bool rotation_begin(
    struct tx *tx, int64_t peer, struct ask *ask, struct err *err);
struct rotation_result {
	int status;	  /* 200: they have it */
	const char *text; /* for the others */
};
MUST_CHECK bool rotation_end(struct tx *tx, int64_t ask,
    struct rotation_result *result, struct err *err);

struct rotating {
	int64_t peer;
	const char *origin;
};

/* Asks for those whose time has come: old secrets, unknown outcomes. */
MUST_CHECK bool rotation_begin_due(
    struct tx *tx, int64_t room, struct rows *asked, struct err *err);
/* Rows whose grace is over say so. peer 0: all of them. */
MUST_CHECK bool rotation_tidy(
    struct tx *tx, int64_t peer, struct rows *done, struct err *err);

/* ---- the peer begins: POST peer/rotate, its signature verified ---- */

/* ERR_INVALID: the form; ERR_CONFLICT: another one is under way. */
MUST_CHECK bool rotation_take(struct tx *tx, const struct node *node,
    int64_t peer, const char *secret, struct err *err);

/* ---- what outboxd sends for an ask ---- */

struct rotation_plan {
	const char *fresh;   /* the new secret; also signs the question whether
				they have it */
	const char *signer;  /* the old one */
	struct bytes sealed; /* the new one, as it is in the row */
	bool is_retry;	     /* they may have it already */
};

/* The new secret is in the row when this is committed. ERR_CONFLICT: the row
 * is no longer in a state for it. */
MUST_CHECK bool rotation_plan(struct tx *tx, const struct node *node,
    const struct ask *ask, struct rotation_plan *plan, struct err *err);

enum rotation_fate { ROTATION_UNKNOWN, ROTATION_HAS_IT, ROTATION_REFUSED };

MUST_CHECK bool rotation_settle(struct tx *tx, int64_t peer,
    const struct rotation_plan *plan, enum rotation_fate fate, const char *why,
    struct err *err);

/* A request verified with the pending secret: they have it. */
MUST_CHECK bool rotation_seen(
    struct tx *tx, const struct peer *peer, struct err *err);

#endif
