/*
 * peer -- the nodes we know, and whether a request is really theirs.
 *
 * One peer per host; its origin is stored, never built from a host. Secrets
 * leave the database only opened with the node key and never reach a log.
 *
 * Worker threads; records live in the transaction's arena.
 */
#ifndef POSTRIDER_PEER_H
#define POSTRIDER_PEER_H

#include "common/crypto/sign.h"
#include "common/federation/node.h"
#include "common/pg/sql.h"

struct peer {
	int64_t id;
	const char *origin;
	const char *host;
	const char *instance_name;
	const char *status;
	const char *instance_id;
	struct bytes hmac_secret;	  /* sealed */
	struct bytes pending_hmac_secret; /* sealed */
	struct bytes offered_secret;	  /* sealed */
	int64_t offered_at;
	int64_t initiated_at;
	int64_t attempt_until;
	const char *approval_token;
	bool nonce_supported;
	int64_t secret_rotation_at;
	int64_t secret_rotated_at;
	const char *rotation_by; /* us, peer or NULL: rotation.h */
	int64_t rotation_attempt_until;
	int64_t auto_rotate_interval_days;
	int64_t last_synced_at;
	int64_t transport_failures;
	int64_t last_failure_at;
	int64_t last_seen_at;
	int64_t created_at;
};
extern const struct shape peer_shape[];

MUST_CHECK bool peer_by_origin(struct tx *tx, const char *origin,
    struct peer *peer, bool *found, struct err *err);
MUST_CHECK bool peer_by_id(
    struct tx *tx, int64_t id, struct peer *peer, struct err *err);
MUST_CHECK bool peer_list(struct tx *tx, struct rows *peers, struct err *err);

bool peer_status_is(const struct peer *peer, const char *status);
/* active or unreachable: trust is settled. */
bool peer_is_live(const struct peer *peer);

/* The Peer object of the client API; no secrets. */
void peer_write(struct buf *out, const struct peer *peer);

/*
 * Opened secrets; NULL when there is none or it does not open. The first signs
 * and verifies; the other one verifies too, while it may. In a rotation that
 * the peer knows of the new secret is the first, and when the grace is over
 * there is no other, whatever the row still holds.
 */
enum { ROTATION_GRACE_MS = 15 * 60 * 1000 };
const char *peer_secret(
    struct arena *arena, const struct node *node, const struct peer *peer);
const char *peer_other_secret(
    struct arena *arena, const struct node *node, const struct peer *peer);
struct bytes peer_seal(struct arena *arena, const struct node *node,
    int64_t peer, const char *secret);
const char *peer_open(struct arena *arena, const struct node *node,
    int64_t peer, struct bytes box);

/* Which of the peer's secrets a signature within the window is made with. */
enum peer_secret_kind { PEER_NO_SECRET, PEER_SECRET, PEER_OTHER_SECRET };
enum peer_secret_kind peer_verify(struct arena *arena, const struct node *node,
    const struct peer *peer, const struct sign_headers *headers,
    struct bytes body);

/*
 * The authentication order of POST /relay and its like (recorded case 120):
 * headers 401, peer known and not revoked 403, signature and time 401, rate
 * 429, nonce 409 or 401. A pending peer is served if the signature verifies
 * with a secret that only it can know, and becomes active thereby; an
 * unreachable one is served and its next attempt is brought forward. The
 * nonce is remembered in this transaction.
 * signature covers body as received.
 */
MUST_CHECK bool peer_authenticate(struct tx *tx, const struct node *node,
    const struct sign_headers *headers, struct bytes body, struct peer *peer,
    struct err *err);

/* The same for what may come twice: no nonce is asked for or remembered. */
MUST_CHECK bool peer_authenticate_again(struct tx *tx, const struct node *node,
    const struct sign_headers *headers, struct bytes body, struct peer *peer,
    struct err *err);

/* The same for a question for what was missed, which has a rate of its own. */
MUST_CHECK bool peer_authenticate_sync(struct tx *tx, const struct node *node,
    const struct sign_headers *headers, struct bytes body, struct peer *peer,
    struct err *err);

/* After a served relay: last seen, and the nonce ratchet. */
MUST_CHECK bool peer_seen(
    struct tx *tx, const struct peer *peer, bool had_nonce, struct err *err);

#endif
