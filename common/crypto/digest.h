/*
 * digest -- SHA-256 and SHA-512 of bytes, and Base64 as headers write it.
 *
 * Base64 is the standard alphabet with padding; reading is strict. Any thread.
 */
#ifndef POSTRIDER_DIGEST_H
#define POSTRIDER_DIGEST_H

#include "common/base/arena.h"

enum digest_kind { DIGEST_SHA256, DIGEST_SHA512 };

enum { DIGEST_BYTES_MAX = 64 };

struct digest {
	unsigned char bytes[DIGEST_BYTES_MAX];
	size_t len;
};

struct digest digest_of(enum digest_kind kind, struct bytes data);
/* Constant time. */
bool digest_equal(const struct digest *digest, struct bytes other);

const char *base64_text(struct arena *arena, struct bytes data);
/* False: not Base64 from end to end. Nothing decodes to no bytes. */
MUST_CHECK bool base64_read(
    struct arena *arena, const char *text, size_t len, struct bytes *data);

#endif
