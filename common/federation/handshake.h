/*
 * handshake -- how two nodes come to trust each other (DESIGN 7, Trust).
 *
 * Nobody is taken on his word. Whoever gets an accept that nothing proves
 * answers only after he has sent a secret of his own to the claimed origin,
 * signed with the secret just offered, and an empty relay signed with the
 * secret that stands was answered 200. So a secret becomes good only when it
 * came from, or went to, the true origin; an offered one is planted at will by
 * anybody and therefore never signs anything but that one request.
 *
 * Rows of federation_peers while pending:
 *
 *   hmac_secret          the one secret we made, once; reused on every retry
 *   pending_hmac_secret  the other side's, once it has proved that it made it
 *   offered_secret       what the last accept offered; proves nothing
 *   initiated_at         we began: only then may a signed accept, made with
 *                        our secret, be taken without a callback
 *
 * If both began, the secret of the bytewise smaller origin stands. The greater
 * one says so in its counter ("yourSecretStands"), and believes it only when
 * the answer repeats it, which a node does whose own secret has verified: a
 * planted secret can not pass for the other side's. Until requests have shown
 * which one is in use both verify (peer_authenticate).
 *
 * All that decides takes the host's advisory lock first: one decision a host
 * at a time, in every process. Worker threads.
 */
#ifndef POSTRIDER_HANDSHAKE_H
#define POSTRIDER_HANDSHAKE_H

#include "common/federation/ask.h"
#include "common/federation/peer.h"

enum {
	HANDSHAKE_ASK_MS = 10000,     /* the initiator waits */
	HANDSHAKE_ATTEMPT_MS = 12000, /* and nobody begins again meanwhile */
	HANDSHAKE_SECRET_MAX = 256,
	HANDSHAKE_TOKEN_MAX = 256,
	HANDSHAKE_PER_HOST_MAX = 5, /* callbacks a minute */
	HANDSHAKE_OVERALL_MAX = 60
};

/* ---- who the other side says it is ---- */

/* instanceName and instanceId of a body or an answer, of newer servers; NULL:
 * absent or no good. Kept only from whoever has proved the origin. */
struct handshake_name {
	const char *name;
	const char *id;
};
struct handshake_name handshake_name_read(const struct json *value);
MUST_CHECK bool handshake_name_keep(struct tx *tx, int64_t peer,
    const struct handshake_name *name, struct err *err);

/* ---- we initiate ---- */

enum handshake_begun { BEGUN_KNOWN, BEGUN_ALREADY, BEGUN_WAIT, BEGUN_ASK };

/*
 * BEGUN_ASK: the row is pending and ask is added.
 * BEGUN_WAIT: they began, and ask is our callback, which is on its way; once
 * it is answered, begin again.
 */
MUST_CHECK bool handshake_begin(struct tx *tx, const struct node *node,
    const struct origin *origin, struct peer *peer, struct ask *ask,
    enum handshake_begun *begun, struct err *err);

/* What the answer means; the row is settled, kept or gone accordingly. */
struct handshake_result {
	int status;	  /* 200: peer is filled */
	const char *text; /* for the others */
	struct peer peer;
};
MUST_CHECK bool handshake_end(struct tx *tx, int64_t ask,
    struct handshake_result *result, struct err *err);

/* ---- somebody came ---- */

struct handshake_offer {
	struct origin origin;
	const char *secret;
	const char *approval_token; /* or NULL */
	struct handshake_name name;
	bool our_secret_stands; /* says the other side: both began */
	bool is_signed;
	const struct sign_headers *headers; /* NULL: none or malformed */
	struct bytes body;		    /* as received */
	int64_t counter_ms;		    /* deadline of a callback */
};

enum handshake_verdict {
	VERDICT_ACCEPTED,
	VERDICT_KEPT, /* accepted, and our own secret stands */
	VERDICT_EXISTS,
	VERDICT_REVOKED,
	VERDICT_QUEUED,
	VERDICT_COUNTER, /* ask is added */
	VERDICT_REFUSED,
	VERDICT_TOO_MANY
};

/* peer is filled for QUEUED. */
MUST_CHECK bool handshake_accept(struct tx *tx, const struct node *node,
    const struct handshake_offer *offer, struct peer *peer, struct ask *ask,
    enum handshake_verdict *verdict, struct err *err);

/* The counter is over: did it, or the secret it was offered, make the peer? */
MUST_CHECK bool handshake_countered(struct tx *tx, const struct node *node,
    int64_t ask, bool *accepted, struct err *err);

/* POST peer/denied: the other side's administrator will not have us. The row
 * that waited for him goes. */
MUST_CHECK bool handshake_denied(struct tx *tx, const struct node *node,
    const struct sign_headers *headers, struct bytes body, struct err *err);

/* POST epoch: our instance id, and the secret its question verified with. */
MUST_CHECK bool handshake_epoch(struct tx *tx, const struct node *node,
    const struct sign_headers *headers, struct bytes body,
    const char **instance_id, const char **secret, struct err *err);

/* ---- what outboxd sends for an ask ---- */

struct handshake_plan {
	struct bytes body;	  /* of POST accept */
	const char *signer;	  /* signs it; NULL when we initiate */
	const char *relay_signer; /* of the empty relay, as things stand */
	const char *kept_signer;  /* of the empty relay, if the answer says that
				     their secret stands; NULL: can't be */
	struct bytes ours;	  /* sealed, as they are in the row */
	struct bytes theirs;
};

/* ERR_CONFLICT when the row is no longer in a state to send it. */
MUST_CHECK bool handshake_plan(struct tx *tx, const struct node *node,
    const struct ask *ask, struct handshake_plan *plan, struct err *err);

/* The answer to a counter repeated that their secret stands. */
MUST_CHECK bool handshake_kept(struct tx *tx, int64_t peer,
    const struct handshake_plan *plan, struct err *err);
/* The empty relay was answered 200. */
MUST_CHECK bool handshake_proved(struct tx *tx, int64_t peer,
    const struct handshake_plan *plan, bool kept, struct err *err);

/* Is it JSON with a true member of that name? */
bool handshake_says(
    struct arena *arena, const char *answer, const char *member);

#endif
