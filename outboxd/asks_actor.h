/*
 * asks_actor -- the question for a foreign actor, its key or its inbox.
 *
 * A GET of the address in the row's body, signed as the instance's actor,
 * since some servers answer nobody else; after 400 or 401 once more in the
 * other style of signature. A redirect is followed within its server, signed
 * anew, a few times. What is no activity document by its media type is refused:
 * anybody's upload could look like one.
 *
 * Kind inbox names in its body an inbox that led a delivery to another server;
 * its actor is asked where it is now, and the followers learn it.
 */
#ifndef POSTRIDER_ASKS_ACTOR_H
#define POSTRIDER_ASKS_ACTOR_H

#include "outboxd/asks_run.h"

/* The request's address and headers. Worker. */
MUST_CHECK bool asks_actor_prepare(struct asks_run *run, struct tx *tx,
    const struct node *node, struct err *err);

/* It leads elsewhere on its server, or could not read the signature: the run
 * is to be prepared once more. */
bool asks_actor_again(struct asks_run *run, const struct client_result *result);
/* Its inboxes, to whom it is that has moved (kind inbox). Worker. */
MUST_CHECK bool asks_actor_learn(
    struct asks_run *run, struct tx *tx, struct err *err);

/* Is it a document that may say something about an actor? */
bool asks_actor_is_document(const struct client_result *result);

#endif
