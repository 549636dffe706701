#include <sodium.h>
#include <strings.h>

#include "common/base/id.h"
#include "common/crypto/token.h"

#define VARIANT sodium_base64_VARIANT_URLSAFE_NO_PADDING
enum { KEY_BYTES = 32, KEY_TEXT_LEN = 43, ID_DIGITS_MAX = 19, SCHEME_LEN = 7 };

static void hash_key(
    const unsigned char key[KEY_BYTES], unsigned char hash[TOKEN_HASH_BYTES])
{
	crypto_hash_sha256(hash, key, KEY_BYTES);
}

void token_fresh(struct token_key *key)
{
	if (sodium_init() < 0)
		abort();
	randombytes_buf(key->key, sizeof(key->key));
	hash_key(key->key, key->hash);
}

const char *token_text(
    struct arena *arena, int64_t session, const struct token_key *key)
{
	char text[KEY_TEXT_LEN + 1];

	sodium_bin2base64(text, sizeof(text), key->key, KEY_BYTES, VARIANT);
	return arena_printf(arena, "%" PRId64 ".%s", session, text);
}

bool token_parse(const char *authorization, struct token *token)
{
	unsigned char key[KEY_BYTES];
	char digits[ID_DIGITS_MAX + 1] = "";
	const char *id, *dot, *end;
	size_t len;
	int64_t session;

	if (!authorization ||
	    strncasecmp(authorization, "Bearer ", SCHEME_LEN) != 0)
		return false;
	id = authorization + SCHEME_LEN;
	dot = strchr(id, '.');
	if (!dot || dot - id > ID_DIGITS_MAX || strlen(dot + 1) != KEY_TEXT_LEN)
		return false;
	memcpy(digits, id, (size_t)(dot - id));
	session = id_parse(digits);
	/* The end pointer: what the decoder doesn't know must not be skipped.
	 */
	if (!session ||
	    sodium_base642bin(key, sizeof(key), dot + 1, KEY_TEXT_LEN, NULL,
		&len, &end, VARIANT) != 0 ||
	    len != KEY_BYTES || *end)
		return false;
	token->session = session;
	hash_key(key, token->hash);
	return true;
}

bool token_hash_equal(const unsigned char *a, const unsigned char *b)
{
	return sodium_memcmp(a, b, TOKEN_HASH_BYTES) == 0;
}
