#include "common/fediverse/multikey.h"

#include "common/crypto/digest.h"

enum { KEY_LEN = 32, MULTI_LEN = 34, SPKI_LEN = 44 };

/* SubjectPublicKeyInfo of an Ed25519 key, up to the key itself (RFC 8410). */
static const unsigned char spki_head[SPKI_LEN - KEY_LEN] = { 0x30, 0x2a, 0x30,
	0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00 };

/* number = number * 58 + digit, in MULTI_LEN bytes; false: too large. */
static bool push_digit(unsigned char number[MULTI_LEN], int digit)
{
	for (int i = MULTI_LEN - 1; i >= 0; i--) {
		digit += number[i] * 58;
		number[i] = (unsigned char)(digit & 0xff);
		digit >>= 8;
	}
	return digit == 0;
}

/* Exactly MULTI_LEN bytes whose first is not zero, as that of our keys. */
static bool base58_read(const char *text, unsigned char number[MULTI_LEN])
{
	static const char digits[] =
	    "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

	memset(number, 0, MULTI_LEN);
	for (; *text; text++) {
		const char *digit = strchr(digits, *text);

		if (!digit || !push_digit(number, (int)(digit - digits)))
			return false;
	}
	return number[0] != 0;
}

const char *multikey_pem(struct arena *arena, const char *multibase)
{
	unsigned char multi[MULTI_LEN];
	unsigned char spki[SPKI_LEN];

	if (*multibase != 'z' || !base58_read(multibase + 1, multi) ||
	    multi[0] != 0xed || multi[1] != 0x01)
		return NULL;
	memcpy(spki, spki_head, sizeof(spki_head));
	memcpy(spki + sizeof(spki_head), multi + 2, KEY_LEN);
	return arena_printf(arena,
	    "-----BEGIN PUBLIC KEY-----\n%s\n-----END PUBLIC KEY-----\n",
	    base64_text(arena, (struct bytes){ spki, sizeof(spki) }));
}
