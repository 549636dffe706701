#include <openssl/evp.h>
#include <sodium.h>

#include "common/crypto/digest.h"

struct digest digest_of(enum digest_kind kind, struct bytes data)
{
	const EVP_MD *md = kind == DIGEST_SHA256 ? EVP_sha256() : EVP_sha512();
	struct digest digest = { .len = 0 };
	unsigned int len = 0;

	if (!EVP_Digest(data.len ? data.data : "", data.len, digest.bytes, &len,
		md, NULL))
		abort();
	digest.len = len;
	return digest;
}

bool digest_equal(const struct digest *digest, struct bytes other)
{
	return digest->len == other.len &&
	    sodium_memcmp(digest->bytes, other.data, other.len) == 0;
}

const char *base64_text(struct arena *arena, struct bytes data)
{
	size_t room =
	    sodium_base64_ENCODED_LEN(data.len, sodium_base64_VARIANT_ORIGINAL);
	char *text = arena_alloc(arena, room);

	return sodium_bin2base64(
	    text, room, data.data, data.len, sodium_base64_VARIANT_ORIGINAL);
}

bool base64_read(
    struct arena *arena, const char *text, size_t len, struct bytes *data)
{
	unsigned char *out = arena_alloc(arena, len + 1);
	const char *end = text;
	size_t out_len = 0;

	if (len &&
	    (sodium_base642bin(out, len, text, len, NULL, &out_len, &end,
		 sodium_base64_VARIANT_ORIGINAL) != 0 ||
		end != text + len))
		return false;
	*data = (struct bytes){ out, out_len };
	return true;
}
