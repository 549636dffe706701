/*
 * secret -- what the database may hold only sealed (DESIGN 9).
 *
 * libsodium secretbox under the node key, which lives in a file (0600, 64 hex
 * digits) or a systemd credential ($CREDENTIALS_DIRECTORY/node_key), never in
 * the database. context ("peer:42") is bound to the box, so that a box moved
 * to another row does not open.
 */
#ifndef POSTRIDER_SECRET_H
#define POSTRIDER_SECRET_H

#include "common/base/arena.h"
#include "common/base/err.h"

struct node_key;

MUST_CHECK bool node_key_load(
    const char *file, struct node_key **key, struct err *err);
/* Writes a fresh key file, 0600; an existing one is left alone. */
MUST_CHECK bool node_key_create(const char *file, struct err *err);
void node_key_free(struct node_key **key);

/* A secret that somebody else chose, in a file of its own that others may not
 * read: its text without the white space at its end. */
MUST_CHECK bool secret_file_read(struct arena *arena, const char *file,
    const char **secret, struct err *err);

struct bytes secret_seal(struct arena *arena, const struct node_key *key,
    const char *context, const char *text);
/* NULL: forged, moved or another key. */
const char *secret_open(struct arena *arena, const struct node_key *key,
    const char *context, struct bytes box);

#endif
