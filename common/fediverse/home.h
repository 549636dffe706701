/*
 * home -- who we are towards other servers: made once at start, read-only
 * afterwards, any thread.
 */
#ifndef POSTRIDER_HOME_H
#define POSTRIDER_HOME_H

#include "common/crypto/secret.h"
#include "common/net/url.h"

struct home {
	struct origin origin;
	const struct node_key *key; /* opens the actors' private keys */
	const char *webhook_secret; /* signs webhooks; NULL: none is sent */
};

#endif
