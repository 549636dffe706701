/*
 * client_rig -- a client, and a peer on loopback that misbehaves by path.
 *
 * The peer is a thread a connection with plain sockets; /ok, /cut, /slow and
 * so on each are a line of its table. It ends with the test's process.
 */
#ifndef POSTRIDER_CLIENT_RIG_H
#define POSTRIDER_CLIENT_RIG_H

#include <stdatomic.h>

#include "common/net/client.h"

struct peer {
	int fd;
	int port;
	atomic_int connections;
	atomic_int requests; /* that were read to their end */
	atomic_int deaths;   /* connections closed when a request arrived */
};

struct client_rig {
	struct peer peer;
	struct loop *loop;
	struct client *client;
};
extern struct client_rig client_rig;

/* Of the rig's client: every address is allowed. */
extern const struct client_def client_rig_def;

/* What done was told, copied. */
struct client_got {
	int calls;
	struct client_result result;
	char body[8192];
	char type[64];
	char location[256];
};

void client_rig_begin(void);
void client_rig_end(void);

/* A URL at the peer; valid until the next one is made. */
const char *client_rig_url(const char *path);
struct client_request client_rig_get(const char *url);

/* For client_send: copies the result to a struct client_got, ends the loop. */
void client_rig_done(void *arg, const struct client_result *result);

/* Sends and waits for done. */
void client_rig_run(
    const struct client_request *request, struct client_got *got);
void client_rig_fetch(const char *path, struct client_got *got);

#endif
