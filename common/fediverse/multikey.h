/*
 * multikey -- Ed25519 keys as actors publish them (FEP-521a).
 *
 * "z" and Base58 of 0xed 0x01 and the key. Any thread.
 */
#ifndef POSTRIDER_MULTIKEY_H
#define POSTRIDER_MULTIKEY_H

#include "common/base/arena.h"

/* The key as SubjectPublicKeyInfo in PEM; NULL: none, or of another kind. */
const char *multikey_pem(struct arena *arena, const char *multibase);

#endif
