#include <openssl/evp.h>
#include <sodium.h>

#include "common/crypto/sign.h"

#define PREFIX "sha256="
enum { PREFIX_LEN = 7, MAC_BYTES = 32, TIMESTAMP_DIGITS_MAX = 15 };

static void part(EVP_MAC_CTX *ctx, const void *data, size_t len)
{
	if (!EVP_MAC_update(ctx, data, len))
		abort();
}

/* OpenSSL's: with the processor's SHA it is seven times libsodium's speed. */
static void mac(const char *secret, const char *timestamp, const char *nonce,
    struct bytes body, unsigned char out[MAC_BYTES])
{
	EVP_MAC *hmac = EVP_MAC_fetch(NULL, "HMAC", NULL);
	EVP_MAC_CTX *ctx = EVP_MAC_CTX_new(hmac);
	char digest[] = "SHA256";
	const OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string("digest", digest, 0),
		OSSL_PARAM_construct_end(),
	};
	size_t len;

	if (!EVP_MAC_init(
		ctx, (const unsigned char *)secret, strlen(secret), params))
		abort();
	part(ctx, timestamp, strlen(timestamp));
	part(ctx, ".", 1);
	if (nonce) {
		part(ctx, nonce, strlen(nonce));
		part(ctx, ".", 1);
	}
	part(ctx, body.data, body.len);
	if (!EVP_MAC_final(ctx, out, &len, MAC_BYTES))
		abort();
	EVP_MAC_CTX_free(ctx);
	EVP_MAC_free(hmac);
}

static void random_bytes(void *out, size_t len)
{
	if (sodium_init() < 0)
		abort();
	randombytes_buf(out, len);
}

static bool is_hex(const char *text)
{
	return *text && !text[strspn(text, "0123456789abcdefABCDEF")];
}

/* 1-15 digits and nothing else: no sign, exponent, base or white space. */
static bool timestamp_read(const char *text, int64_t *ms)
{
	size_t len = strlen(text);
	int64_t value = 0;

	if (!len || len > TIMESTAMP_DIGITS_MAX ||
	    strspn(text, "0123456789") != len)
		return false;
	for (const char *c = text; *c; c++)
		value = value * 10 + (*c - '0');
	*ms = value;
	return true;
}

/* Empty and absent are the same: *nonce becomes NULL. */
static bool nonce_read(
    struct arena *arena, const char *text, const char **nonce)
{
	size_t len;

	text = text ? text + strspn(text, " \t") : "";
	len = strlen(text);
	while (len && (text[len - 1] == ' ' || text[len - 1] == '\t'))
		len--;
	if (len > SIGN_NONCE_MAX)
		return false;
	*nonce = len ? arena_textn(arena, text, len) : NULL;
	return true;
}

void sign_make(const char *secret, const char *timestamp, const char *nonce,
    struct bytes body, char text[SIGN_TEXT_MAX])
{
	unsigned char sum[MAC_BYTES];

	mac(secret, timestamp, nonce, body, sum);
	memcpy(text, PREFIX, PREFIX_LEN);
	sodium_bin2hex(
	    text + PREFIX_LEN, SIGN_TEXT_MAX - PREFIX_LEN, sum, sizeof(sum));
}

bool sign_verify(const char *secret, const char *timestamp, const char *nonce,
    struct bytes body, const char *signature)
{
	unsigned char sum[MAC_BYTES], claimed[MAC_BYTES];
	size_t len = strlen(signature);

	if (len != PREFIX_LEN + 2 * MAC_BYTES ||
	    memcmp(signature, PREFIX, PREFIX_LEN) != 0 ||
	    sodium_hex2bin(claimed, sizeof(claimed), signature + PREFIX_LEN,
		len - PREFIX_LEN, NULL, NULL, NULL) != 0)
		return false;
	mac(secret, timestamp, nonce, body, sum);
	return sodium_memcmp(sum, claimed, sizeof(sum)) == 0;
}

bool sign_headers_parse(struct arena *arena, const char *origin,
    const char *timestamp, const char *nonce, const char *signature,
    struct sign_headers *headers)
{
	struct sign_headers read = { 0 };

	if (!origin || !*origin || !timestamp || !signature)
		return false;
	if (!timestamp_read(timestamp, &read.timestamp_ms) ||
	    !nonce_read(arena, nonce, &read.nonce))
		return false;
	if (strncmp(signature, PREFIX, PREFIX_LEN) != 0 ||
	    !is_hex(signature + PREFIX_LEN))
		return false;
	read.origin = arena_text(arena, origin);
	read.timestamp = arena_text(arena, timestamp);
	read.signature = arena_text(arena, signature);
	*headers = read;
	return true;
}

bool sign_in_window(int64_t timestamp_ms, int64_t now_ms)
{
	/* Neither difference can overflow: both times are positive. */
	if (timestamp_ms < 0 || now_ms < 0)
		return false;
	return timestamp_ms - now_ms <= SIGN_WINDOW_MS &&
	    now_ms - timestamp_ms <= SIGN_WINDOW_MS;
}

const char *secret_fresh(struct arena *arena)
{
	unsigned char key[32];
	char text[2 * sizeof(key) + 1];

	random_bytes(key, sizeof(key));
	return arena_text(
	    arena, sodium_bin2hex(text, sizeof(text), key, sizeof(key)));
}

const char *nonce_fresh(struct arena *arena)
{
	unsigned char id[16];
	char hex[2 * sizeof(id) + 1];

	random_bytes(id, sizeof(id));
	id[6] = (unsigned char)(0x40 | (id[6] & 0x0f)); /* version 4 */
	id[8] =
	    (unsigned char)(0x80 | (id[8] & 0x3f)); /* variant of RFC 9562 */
	sodium_bin2hex(hex, sizeof(hex), id, sizeof(id));
	return arena_printf(arena, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8,
	    hex + 12, hex + 16, hex + 20);
}

bool secret_equal(const char *a, const char *b)
{
	unsigned char key[crypto_generichash_KEYBYTES];
	unsigned char sum_a[crypto_generichash_BYTES], sum_b[sizeof(sum_a)];

	if (!a || !b)
		return false;
	/* Hashes under a throw-away key: time tells neither length nor text. */
	random_bytes(key, sizeof(key));
	crypto_generichash(sum_a, sizeof(sum_a), (const unsigned char *)a,
	    strlen(a), key, sizeof(key));
	crypto_generichash(sum_b, sizeof(sum_b), (const unsigned char *)b,
	    strlen(b), key, sizeof(key));
	return sodium_memcmp(sum_a, sum_b, sizeof(sum_a)) == 0;
}
