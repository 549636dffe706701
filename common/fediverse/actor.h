/*
 * actor -- who speaks here on the fediverse, and with which key.
 *
 * An actor is made by an administrator for a person or for an application; one
 * more stands for the instance itself and signs what the instance fetches. The
 * RSA key's private half is in the database only sealed under the node key. A
 * name serves once: a deleted actor keeps its name and its key, since its last
 * words have to be signed, and answers 410.
 *
 * Worker threads; records live in the transaction's arena.
 */
#ifndef POSTRIDER_ACTOR_H
#define POSTRIDER_ACTOR_H

#include "common/crypto/pkey.h"
#include "common/crypto/secret.h"
#include "common/net/url.h"
#include "common/pg/sql.h"

enum { ACTOR_NAME_MAX = 64, ACTOR_TITLE_MAX = 100 };

struct actor {
	const char *id; /* UUID; what actor_user_id of the queue names */
	int64_t user_id;
	const char *username;
	const char *kind; /* Person Service Application Group */
	const char *display_name;
	bool is_instance;
	bool approves_followers; /* itself: nobody accepts in its place */
	const char *public_key_pem;
	struct bytes private_key; /* sealed */
	int64_t created_at;
	int64_t key_made_at;
	int64_t deleted_at;
};

/* As the administrator sees it; no key. */
extern const struct shape actor_shape[];

/* ERR_ABSENT while the setting fediverse is off. */
MUST_CHECK bool fediverse_check(struct tx *tx, struct err *err);

/* Deleted ones are found, too. Names in any case, without the instance. */
MUST_CHECK bool actor_by_name(struct tx *tx, const char *username,
    struct actor *actor, bool *found, struct err *err);
MUST_CHECK bool actor_by_id(struct tx *tx, const char *id, struct actor *actor,
    bool *found, struct err *err);
MUST_CHECK bool actor_by_user(struct tx *tx, int64_t user, struct actor *actor,
    bool *found, struct err *err);
/* How many live here, the instance apart. */
MUST_CHECK bool actor_count(struct tx *tx, int64_t *total, struct err *err);
MUST_CHECK bool actor_list(struct tx *tx, struct rows *actors, struct err *err);

struct actor_draft {
	const char *username;
	const char *kind;
	const char *display_name; /* or NULL */
	int64_t user_id;	  /* 0: nobody's */
	bool approves_followers;
};

/* ERR_INVALID for a bad draft, ERR_CONFLICT for a name or person that has one.
 */
MUST_CHECK bool actor_make(struct tx *tx, const struct node_key *key,
    const struct actor_draft *draft, struct actor *actor, struct err *err);
/* Another key under the same key id. */
MUST_CHECK bool actor_rotate(struct tx *tx, const struct node_key *key,
    struct actor *actor, struct err *err);
MUST_CHECK bool actor_delete(
    struct tx *tx, struct actor *actor, struct err *err);

/* The instance's own, named after its host. found is false until it is made;
 * making it again finds the first. */
MUST_CHECK bool actor_instance(
    struct tx *tx, struct actor *actor, bool *found, struct err *err);
MUST_CHECK bool actor_instance_make(struct tx *tx, const struct node_key *key,
    const struct origin *origin, struct actor *actor, struct err *err);

/* "https://host/users/alice", or "https://host/actor"; with "#main-key". */
const char *actor_url(struct arena *arena, const struct origin *origin,
    const struct actor *actor);
const char *actor_key_id(struct arena *arena, const struct origin *origin,
    const struct actor *actor);

/* What it signs with; to be freed. */
MUST_CHECK bool actor_key(struct arena *arena, const struct node_key *key,
    const struct actor *actor, struct pkey **pkey, struct err *err);

#endif
