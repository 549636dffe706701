/*
 * fediverse_keys -- the actors' keys that were used last, opened.
 *
 * Opening one costs more than signing with it. An actor's row says when its
 * key was made; one of another time is not found. Loop thread only; the keys
 * that are handed out are owned by who asked.
 */
#ifndef POSTRIDER_FEDIVERSE_KEYS_H
#define POSTRIDER_FEDIVERSE_KEYS_H

#include "common/crypto/pkey.h"

enum { FEDIVERSE_KEYS_MAX = 256 };

struct fediverse_keys;

struct fediverse_keys *fediverse_keys_new(void);
void fediverse_keys_free(struct fediverse_keys **keys);

/* NULL: not known. */
struct pkey *fediverse_keys_get(
    struct fediverse_keys *keys, const char *actor, int64_t made_at);
void fediverse_keys_put(struct fediverse_keys *keys, const char *actor,
    int64_t made_at, const struct pkey *key);

#endif
