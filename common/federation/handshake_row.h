/*
 * handshake_row -- the row of federation_peers that a handshake works on.
 *
 * For the files of handshake.h and rotation.h only. Worker threads.
 */
#ifndef POSTRIDER_HANDSHAKE_ROW_H
#define POSTRIDER_HANDSHAKE_ROW_H

#include "common/federation/peer.h"

/* pending or awaiting_approval: nothing is settled. */
bool row_is_open(const struct peer *peer);
/* A stranger's row under another port of this host, with nothing going on. */
bool row_is_leftover(const struct peer *peer, const struct origin *origin);

/* Takes the host's lock: one decision a host at a time. */
MUST_CHECK bool row_find(struct tx *tx, const char *host, struct peer *peer,
    bool *found, struct err *err);
MUST_CHECK bool row_lock(
    struct tx *tx, int64_t id, struct peer *peer, bool *found, struct err *err);

/* A pending row with the secret that we make for it, once; not saved yet. */
MUST_CHECK bool row_new(struct tx *tx, const struct node *node,
    const struct origin *origin, struct peer *peer, struct err *err);
void row_activate(struct peer *peer);
MUST_CHECK bool row_save(
    struct tx *tx, const struct peer *peer, struct err *err);
MUST_CHECK bool row_drop(
    struct tx *tx, int64_t id, bool *found, struct err *err);

#endif
