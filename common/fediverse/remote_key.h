/*
 * remote_key -- keys of foreign actors, as last fetched.
 *
 * A key is fetched when it is not known, when it is older than a day, and
 * once more when a signature does not fit it, since it may have been rotated.
 * What could not be fetched is not tried again for a while; how often a host
 * is asked is counted.
 *
 * Worker threads; records live in the transaction's arena.
 */
#ifndef POSTRIDER_REMOTE_KEY_H
#define POSTRIDER_REMOTE_KEY_H

#include "common/fediverse/key_document.h"
#include "common/pg/sql.h"

enum {
	REMOTE_KEY_KEPT_MS = 24 * 3600 * 1000,
	REMOTE_KEY_PAUSE_MS = 5 * 60 * 1000,
	REMOTE_KEY_FETCHES_MAX = 60 /* a minute and host */
};

struct remote_key {
	const char *key_id;
	const char *owner;
	const char *pem; /* NULL: never fetched */
	const char *inbox;
	const char *shared_inbox;
	int64_t fetched_at;
	int64_t refetched_at; /* asked for again because a signature failed */
	int64_t failed_until;
	bool failed_finally;
};

MUST_CHECK bool remote_key_find(struct tx *tx, const char *key_id,
    struct remote_key *key, bool *found, struct err *err);

MUST_CHECK bool remote_key_store(struct tx *tx, const char *key_id,
    const struct key_document *document, struct err *err);
/* It is not tried again for REMOTE_KEY_PAUSE_MS; what is known is kept. */
MUST_CHECK bool remote_key_fail(
    struct tx *tx, const char *key_id, bool finally, struct err *err);
/* It is about to be fetched again because a signature did not fit. */
MUST_CHECK bool remote_key_doubt(
    struct tx *tx, const char *key_id, struct err *err);
/* Where its owner takes deliveries. */
MUST_CHECK bool remote_actor_inboxes(
    struct tx *tx, const struct key_document *document, struct err *err);

/* ERR_TOO_MANY with the time to wait when the host was asked too often. */
MUST_CHECK bool remote_key_count_fetch(
    struct tx *tx, const char *origin, struct err *err);

/* Do we know the actor: a key, or as a follower? */
MUST_CHECK bool remote_actor_known(
    struct tx *tx, const char *actor, bool *known, struct err *err);
/* Its keys go, and it follows nobody any more. */
MUST_CHECK bool remote_actor_forget(
    struct tx *tx, const char *actor, struct err *err);

#endif
