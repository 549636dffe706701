/*
 * pkey -- public-key signatures: RSA (PKCS#1 v1.5, SHA-256) and Ed25519.
 *
 * What we sign with is RSA-2048, the one algorithm that every receiver in the
 * field verifies; what we verify may also be Ed25519. Both are deterministic.
 * Which algorithm applies follows from the key, never from a message.
 *
 * Keys are PEM texts: private ones PKCS#8 (PKCS#1 is read too), public ones
 * SubjectPublicKeyInfo. A key is read-only once loaded and may be used by
 * several threads at once; pkey_share gives another owner. No module state.
 */
#ifndef POSTRIDER_PKEY_H
#define POSTRIDER_PKEY_H

#include "common/base/arena.h"
#include "common/base/err.h"

enum pkey_type { PKEY_RSA, PKEY_ED25519 };

struct pkey;

/* A fresh RSA-2048 pair as texts; takes some tens of milliseconds. */
void pkey_fresh(
    struct arena *arena, const char **private_pem, const char **public_pem);

/* Refuses other kinds of keys, and RSA outside 2048..8192 bits. */
MUST_CHECK bool pkey_private(
    const char *pem, struct pkey **key, struct err *err);
MUST_CHECK bool pkey_public(
    const char *pem, struct pkey **key, struct err *err);
struct pkey *pkey_share(const struct pkey *key);
void pkey_free(struct pkey **key);

enum pkey_type pkey_type(const struct pkey *key);

/* key holds a private part. The signature lives in the arena. */
struct bytes pkey_sign(
    struct arena *arena, const struct pkey *key, struct bytes message);
/* Any length of signature, also none. */
bool pkey_verify(
    const struct pkey *key, struct bytes message, struct bytes signature);

#endif
