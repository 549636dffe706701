/*
 * actor_document -- an actor as other servers read it.
 *
 * Everything they need to verify what it signs and to answer it: inboxes, the
 * key with its owner, and that our inbox takes RFC 9421 (FEP-844e). All
 * addresses are on our own host. Any thread.
 */
#ifndef POSTRIDER_ACTOR_DOCUMENT_H
#define POSTRIDER_ACTOR_DOCUMENT_H

#include "common/fediverse/actor.h"

#define ACTIVITY_TYPE "application/activity+json"
#define PUBLIC_AUDIENCE "https://www.w3.org/ns/activitystreams#Public"

/* A deleted one becomes a Tombstone, which still shows the key. */
void actor_write(
    struct buf *out, const struct origin *origin, const struct actor *actor);

/* A collection of which only the size is told. */
void collection_write(struct buf *out, const char *id, int64_t total);

#endif
