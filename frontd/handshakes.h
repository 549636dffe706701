/*
 * handshakes -- the endpoints of common/federation/handshake.
 *
 * Handlers of peer_routes (peers.c); worker threads.
 */
#ifndef POSTRIDER_HANDSHAKES_H
#define POSTRIDER_HANDSHAKES_H

#include "common/federation/peer.h"
#include "frontd/request.h"

/* POST /api/federation/peer/initiate */
bool handshake_initiate_post(struct request *req, struct err *err);
/* POST /api/federation/peer/accept */
bool handshake_accept_post(struct request *req, struct err *err);
/* POST /api/federation/peer/denied */
bool handshake_denied_post(struct request *req, struct err *err);
/* POST /api/federation/epoch */
bool handshake_epoch_post(struct request *req, struct err *err);

/* {"peer":{...}} */
bool reply_peer(struct request *req, const struct peer *peer);

#endif
