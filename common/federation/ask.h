/*
 * ask -- asking a peer something while a person waits (DESIGN 5).
 *
 * frontd writes a row of s2s_requests in its first transaction, parks the
 * request on the loop and goes on when postrider_reply names the row or the
 * deadline is over. outboxd claims the row, performs it once, writes the
 * answer and signals back. Kinds:
 *
 *   accept   POST {origin}/api/federation/peer/accept with our origin and the
 *            secret of the peer row (we initiate).
 *   counter  the two steps of DESIGN 7, by outboxd: accept with the row's
 *            fresh secret, signed with the offered one; then one signed empty
 *            relay; only 200 to that activates the row and counts as answered
 *            200.
 *            body is the offered secret, sealed for the peer's row; without
 *            one the row's own offered secret serves (an approval).
 *   relay    POST {origin}/api/federation/relay, body as given, signed.
 *   rotate   POST {origin}/api/federation/peer/rotate with the row's new
 *            secret, made and stored first; where the answer leaves it open,
 *            an empty relay signed with the new one (rotation.h).
 *   identity DELETE {origin}/api/federation/identity, body as given, signed.
 *   info     GET {origin}/api/instance/info.
 *   actor    GET of the address in body, which is of that origin: a foreign
 *            actor or key; signed as the instance's actor. Redirects within
 *            that origin are followed. Answered 200 is an activity document
 *            by its media type.
 *   inbox    the same for the actor of the inbox in body, which led a delivery
 *            to another server; outboxd keeps the answer, nobody waits for it.
 *
 * Worker threads.
 */
#ifndef POSTRIDER_ASK_H
#define POSTRIDER_ASK_H

#include "common/base/json.h"
#include "common/pg/sql.h"

struct ask {
	int64_t id;
	const char *kind;
	int64_t peer_id;
	const char *origin;
	struct bytes body;
	bool ephemeral;
	int64_t deadline; /* wall ms */
	/* the answer */
	int64_t answered_at;
	const char
	    *outcome; /* answered no_connection unknown refused too_late */
	int64_t status;
	const char *answer; /* at most 64 kB */
	const char *error;
};
extern const struct shape ask_shape[];

bool ask_answered(const struct ask *ask, int64_t status);
/* The answer as JSON, a text member of it; NULL: none. */
const struct json *ask_answer(struct arena *arena, const char *answer);
const char *ask_answer_text(
    struct arena *arena, const struct ask *ask, const char *member);

/* Fills ask->id and signals postrider_request after the commit. */
MUST_CHECK bool ask_add(struct tx *tx, struct ask *ask, struct err *err);
/* Whatever is known by now; answered_at is 0 while it runs. */
MUST_CHECK bool ask_read(
    struct tx *tx, int64_t id, struct ask *ask, struct err *err);
/* The same, but nobody waits any longer: an open one ends here, too_late when
 * it was never sent, else unknown. */
MUST_CHECK bool ask_close(
    struct tx *tx, int64_t id, struct ask *ask, struct err *err);

#endif
