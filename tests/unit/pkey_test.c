#include <criterion/criterion.h>

#include "common/crypto/pkey.h"

static struct arena *arena;

static void begin(void)
{
	arena = arena_new();
}

static void end(void)
{
	arena_free(&arena);
}

TestSuite(pkey, .init = begin, .fini = end, .timeout = 60);

static const struct bytes message = { "message", 7 };

Test(pkey, a_fresh_pair_signs_and_verifies)
{
	const char *private_pem;
	const char *public_pem;
	struct pkey *secret = NULL;
	struct pkey *open = NULL;
	struct err err = { 0 };
	struct bytes made;

	pkey_fresh(arena, &private_pem, &public_pem);
	cr_expect_eq(
	    strncmp(private_pem, "-----BEGIN PRIVATE KEY-----", 27), 0);
	cr_expect_eq(strncmp(public_pem, "-----BEGIN PUBLIC KEY-----", 26), 0);
	cr_assert(pkey_private(private_pem, &secret, &err), "%s", err.text);
	cr_assert(pkey_public(public_pem, &open, &err), "%s", err.text);
	made = pkey_sign(arena, secret, message);
	cr_expect_eq(pkey_type(open), PKEY_RSA);
	cr_expect_eq(made.len, 256);
	cr_expect(pkey_verify(open, message, made));
	cr_expect_not(pkey_verify(open, (struct bytes){ "massage", 7 }, made));
	made.len--;
	cr_expect_not(pkey_verify(open, message, made));
	cr_expect_not(pkey_verify(open, message, (struct bytes){ "", 0 }));
	pkey_free(&secret);
	pkey_free(&open);
}

/* RFC 8032, 7.1, test 2, as PEM. */
Test(pkey, ed25519_verifies)
{
	static const char pem[] =
	    "-----BEGIN PUBLIC KEY-----\n"
	    "MCowBQYDK2VwAyEAPUAXw+hDiVqStwqnTRt+vJyYLM8uxJaMwM1V8Sr0Zgw=\n"
	    "-----END PUBLIC KEY-----\n";
	static const unsigned char signature[64] = { 0x92, 0xa0, 0x09, 0xa9,
		0xf0, 0xd4, 0xca, 0xb8, 0x72, 0x0e, 0x82, 0x0b, 0x5f, 0x64,
		0x25, 0x40, 0xa2, 0xb2, 0x7b, 0x54, 0x16, 0x50, 0x3f, 0x8f,
		0xb3, 0x76, 0x22, 0x23, 0xeb, 0xdb, 0x69, 0xda, 0x08, 0x5a,
		0xc1, 0xe4, 0x3e, 0x15, 0x99, 0x6e, 0x45, 0x8f, 0x36, 0x13,
		0xd0, 0xf1, 0x1d, 0x8c, 0x38, 0x7b, 0x2e, 0xae, 0xb4, 0x30,
		0x2a, 0xee, 0xb0, 0x0d, 0x29, 0x16, 0x12, 0xbb, 0x0c, 0x00 };
	struct pkey *key = NULL;
	struct pkey *shared;
	struct err err = { 0 };

	cr_assert(pkey_public(pem, &key, &err), "%s", err.text);
	shared = pkey_share(key);
	pkey_free(&key);
	cr_expect_eq(pkey_type(shared), PKEY_ED25519);
	cr_expect(pkey_verify(shared, (struct bytes){ "\x72", 1 },
	    (struct bytes){ signature, sizeof(signature) }));
	cr_expect_not(pkey_verify(shared, (struct bytes){ "\x73", 1 },
	    (struct bytes){ signature, sizeof(signature) }));
	pkey_free(&shared);
}

Test(pkey, other_keys_are_refused)
{
	static const char *const bad[] = { "", "hello",
		/* P-256 */
		"-----BEGIN PUBLIC KEY-----\n"
		"MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEqIVYZVLCrPZHGHjP17CTW0/"
		"+D9Lf\n"
		"w0EkjqF7xB4FivAxzic30tMM4GF+hR6Dxh71Z50VGGdldkkDXZCnTNnoXQ==\n"
		"-----END PUBLIC KEY-----\n",
		/* RSA, 1024 bits */
		"-----BEGIN PUBLIC KEY-----\n"
		"MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQC2TmV5yNCICuO5ssSrWiDFMS"
		"3y\n"
		"XY0O+"
		"owvwpUDMXx48xFjmL8MVKW8IFbkxBaEdUAHkDp1uFx0OTReRoTln71FYGK1\n"
		"9e5/"
		"jpEKw9iKQgL7N5qIyRHGZtBViXLq+48uoJHBA170rZZklvDa+AuhJJOnGae/\n"
		"W5If2B5hptAn10MSgwIDAQAB\n"
		"-----END PUBLIC KEY-----\n" };
	struct pkey *key = NULL;

	for (size_t i = 0; i < COUNT(bad); i++) {
		struct err err = { 0 };

		cr_expect_not(pkey_public(bad[i], &key, &err), "%s", bad[i]);
		cr_expect_eq(err.code, ERR_INVALID);
		cr_expect_null(key);
	}
}
