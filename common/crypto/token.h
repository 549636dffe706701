/*
 * token -- bearer tokens: a session id and its key, opaque to clients.
 *
 * Text "<session id>.<43 characters base64url>"; the database keeps only the
 * SHA-256 of the key, so that a stolen dump logs nobody in. Compared in
 * constant time by who reads the session.
 */
#ifndef POSTRIDER_TOKEN_H
#define POSTRIDER_TOKEN_H

#include "common/base/arena.h"

enum { TOKEN_HASH_BYTES = 32 };

struct token {
	int64_t session;
	unsigned char hash[TOKEN_HASH_BYTES];
};

/* A fresh key: its hash for the session row, and the text once the row's id
 * is known. */
struct token_key {
	unsigned char key[32];
	unsigned char hash[TOKEN_HASH_BYTES];
};
void token_fresh(struct token_key *key);
const char *token_text(
    struct arena *arena, int64_t session, const struct token_key *key);

/* From "Bearer <token>"; false when malformed. */
bool token_parse(const char *authorization, struct token *token);
bool token_hash_equal(const unsigned char *a, const unsigned char *b);

#endif
