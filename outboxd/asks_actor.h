/*
 * asks_actor -- the question for a foreign actor or its key.
 *
 * A GET of the address in the row's body, signed as the instance's actor,
 * since some servers answer nobody else. What is no activity document by its
 * media type is refused: anybody's upload could look like one.
 */
#ifndef POSTRIDER_ASKS_ACTOR_H
#define POSTRIDER_ASKS_ACTOR_H

#include "outboxd/asks_run.h"

/* The request's address and headers. Worker. */
MUST_CHECK bool asks_actor_prepare(struct asks_run *run, struct tx *tx,
    const struct node *node, struct err *err);

/* Is it a document that may say something about an actor? */
bool asks_actor_is_document(const struct client_result *result);

#endif
