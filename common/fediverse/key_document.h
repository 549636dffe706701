/*
 * key_document -- the key that a foreign document shows, and whose it is.
 *
 * A key id leads to an actor that lists the key (publicKey, assertionMethod),
 * to a stub of one, or to the key alone. The document counts only for its own
 * server: key, owner and inboxes are of one origin. But where its own inbox
 * leads to another server, both agree on that one. Any thread.
 */
#ifndef POSTRIDER_KEY_DOCUMENT_H
#define POSTRIDER_KEY_DOCUMENT_H

#include "common/base/err.h"
#include "common/base/json.h"

struct key_document {
	const char *owner;
	const char *pem;
	const char *inbox; /* NULL where the document is not the actor's */
	const char *shared_inbox;
	bool takes_rfc9421; /* it says so (FEP-844e) */
};

/* The address to fetch: the key id without its fragment. */
const char *key_document_url(struct arena *arena, const char *key_id);

MUST_CHECK bool key_document_read(struct arena *arena, struct bytes text,
    const char *key_id, struct key_document *document, struct err *err);

/* The inboxes of an actor, from its own document. They are of its server, or
 * of the one to which a delivery was led (NULL: none). */
MUST_CHECK bool actor_inboxes_read(struct arena *arena, struct bytes text,
    const char *actor, const char *led_to, struct key_document *document,
    struct err *err);

#endif
