/*
 * sign -- HMAC signatures of relay requests (specification, section 2).
 *
 * The key is the secret's text itself, the message timestamp "." nonce "."
 * body, or timestamp "." body without a nonce; over the bytes as they are.
 * Any thread.
 */
#ifndef POSTRIDER_SIGN_H
#define POSTRIDER_SIGN_H

#include "common/base/arena.h"

enum {
	SIGN_WINDOW_MS = 15 * 60 * 1000,
	SIGN_NONCE_MAX = 64,
	SIGN_TEXT_MAX = 72 /* "sha256=" and 64 hex digits, NUL */
};

/* Writes "sha256=<hex>". nonce NULL: none. */
void sign_make(const char *secret, const char *timestamp, const char *nonce,
    struct bytes body, char text[SIGN_TEXT_MAX]);

/* Constant time; hex of either case; any other length is false. */
bool sign_verify(const char *secret, const char *timestamp, const char *nonce,
    struct bytes body, const char *signature);

/* What X-Federation-* headers said, checked for form only. */
struct sign_headers {
	const char *origin;
	const char *timestamp; /* as sent: it is part of the message */
	int64_t timestamp_ms;
	const char *nonce; /* trimmed; NULL when absent or empty */
	const char *signature;
};

/*
 * Any of the raw values may be NULL. False: missing or malformed: no sha256=
 * prefix, not hex, a time stamp that isn't plain decimal (1-15 digits), a
 * nonce over 64 characters.
 */
bool sign_headers_parse(struct arena *arena, const char *origin,
    const char *timestamp, const char *nonce, const char *signature,
    struct sign_headers *headers);

bool sign_in_window(int64_t timestamp_ms, int64_t now_ms);

/* A fresh secret (64 lower-case hex) and a fresh nonce (UUID v4). */
const char *secret_fresh(struct arena *arena);
const char *nonce_fresh(struct arena *arena);

/* Constant-time equality of texts. */
bool secret_equal(const char *a, const char *b);

#endif
