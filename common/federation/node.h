/*
 * node -- who we are: the one source of our own origin, and the node key.
 *
 * Made once at start from the configuration and passed down; read-only
 * afterwards, any thread.
 */
#ifndef POSTRIDER_NODE_H
#define POSTRIDER_NODE_H

#include "common/crypto/secret.h"
#include "common/net/url.h"

struct node {
	struct origin origin; /* origin.text is what we send, everywhere */
	struct node_key *key;
};

/* Refuses an origin that is not normal (a path, a wrong scheme). */
MUST_CHECK bool node_load(struct arena *arena, const char *origin,
    const char *key_file, struct node *node, struct err *err);

#endif
