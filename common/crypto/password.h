/*
 * password -- Argon2id (libsodium), a bounded number at once.
 *
 * PASSWORD_MAX_BYTES and longer is refused before any hashing. At most
 * password_slots run; the next waits up to a second, then ERR_TOO_MANY with
 * retry_after_s. Worker threads only, never inside a transaction.
 */
#ifndef POSTRIDER_PASSWORD_H
#define POSTRIDER_PASSWORD_H

#include "common/base/arena.h"
#include "common/base/err.h"

enum { PASSWORD_MIN_UNITS = 8, PASSWORD_MAX_BYTES = 1024 };

/* opslimit/memlimit: production figures are 2 and 19 MiB (OWASP). Once. */
void password_setup(int slots, uint64_t ops, uint64_t memory_bytes);

MUST_CHECK bool password_hash(struct arena *arena, const char *password,
    const char **hash, struct err *err);
/* *match is false for any hash that isn't Argon2id (stubs). An unknown
 * account passes hash NULL and costs the same. */
MUST_CHECK bool password_check(
    const char *hash, const char *password, bool *match, struct err *err);

#endif
