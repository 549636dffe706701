#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include "common/crypto/pkey.h"

enum { BITS_FRESH = 2048, BITS_MIN = 2048, BITS_MAX = 8192, PEM_MAX = 16384 };

struct pkey {
	EVP_PKEY *key;
	enum pkey_type type;
};

static void bio_end(BIO **bio)
{
	BIO_free(*bio);
	*bio = NULL;
}

static void context_end(EVP_MD_CTX **context)
{
	EVP_MD_CTX_free(*context);
	*context = NULL;
}

static void *known(void *memory)
{
	if (!memory)
		abort();
	return memory;
}

/* A key without a password never asks for one on a terminal. */
static int no_password(
    char *out UNUSED, int size UNUSED, int writing UNUSED, void *arg UNUSED)
{
	return -1;
}

static const char *bio_text(struct arena *arena, BIO *bio)
{
	char *data;
	long len = BIO_get_mem_data(bio, &data);

	return arena_textn(arena, data, (size_t)len);
}

/* Takes the key over, or frees it. */
static bool keep(EVP_PKEY *key, struct pkey **out, struct err *err)
{
	struct pkey *kept;
	enum pkey_type type = PKEY_RSA;

	ERR_clear_error();
	if (!key)
		return err_set(err, ERR_INVALID, "not a key in PEM form");
	if (EVP_PKEY_is_a(key, "ED25519")) {
		type = PKEY_ED25519;
	} else if (!EVP_PKEY_is_a(key, "RSA") ||
	    EVP_PKEY_get_bits(key) < BITS_MIN ||
	    EVP_PKEY_get_bits(key) > BITS_MAX) {
		EVP_PKEY_free(key);
		return err_set(err, ERR_INVALID,
		    "neither an RSA key of 2048 to 8192 bits nor Ed25519");
	}
	kept = known(calloc(1, sizeof(*kept)));
	kept->key = key;
	kept->type = type;
	*out = kept;
	return true;
}

static BIO *pem_bio(const char *pem)
{
	size_t len = strnlen(pem, PEM_MAX);

	return known(BIO_new_mem_buf(pem, (int)len));
}

void pkey_fresh(
    struct arena *arena, const char **private_pem, const char **public_pem)
{
	EVP_PKEY *key = known(EVP_RSA_gen(BITS_FRESH));
	AUTO(bio_end) BIO *private_bio = known(BIO_new(BIO_s_secmem()));
	AUTO(bio_end) BIO *public_bio = known(BIO_new(BIO_s_mem()));

	if (!PEM_write_bio_PKCS8PrivateKey(
		private_bio, key, NULL, NULL, 0, NULL, NULL) ||
	    !PEM_write_bio_PUBKEY(public_bio, key))
		abort();
	*private_pem = bio_text(arena, private_bio);
	*public_pem = bio_text(arena, public_bio);
	EVP_PKEY_free(key);
}

bool pkey_private(const char *pem, struct pkey **key, struct err *err)
{
	AUTO(bio_end) BIO *bio = pem_bio(pem);

	return keep(
	    PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL), key, err);
}

bool pkey_public(const char *pem, struct pkey **key, struct err *err)
{
	AUTO(bio_end) BIO *bio = pem_bio(pem);

	return keep(
	    PEM_read_bio_PUBKEY(bio, NULL, no_password, NULL), key, err);
}

struct pkey *pkey_share(const struct pkey *key)
{
	struct pkey *shared = known(calloc(1, sizeof(*shared)));

	*shared = *key;
	if (!EVP_PKEY_up_ref(shared->key))
		abort();
	return shared;
}

void pkey_free(struct pkey **key)
{
	if (!*key)
		return;
	EVP_PKEY_free((*key)->key);
	free(*key);
	*key = NULL;
}

enum pkey_type pkey_type(const struct pkey *key)
{
	return key->type;
}

static const EVP_MD *digest_of(const struct pkey *key)
{
	return key->type == PKEY_RSA ? EVP_sha256() : NULL;
}

struct bytes pkey_sign(
    struct arena *arena, const struct pkey *key, struct bytes message)
{
	AUTO(context_end) EVP_MD_CTX *context = known(EVP_MD_CTX_new());
	size_t len = 0;
	unsigned char *signature;

	if (EVP_DigestSignInit(context, NULL, digest_of(key), NULL, key->key) !=
		1 ||
	    EVP_DigestSign(context, NULL, &len, message.data, message.len) != 1)
		abort();
	signature = arena_alloc(arena, len);
	if (EVP_DigestSign(
		context, signature, &len, message.data, message.len) != 1)
		abort();
	return (struct bytes){ signature, len };
}

bool pkey_verify(
    const struct pkey *key, struct bytes message, struct bytes signature)
{
	AUTO(context_end) EVP_MD_CTX *context = known(EVP_MD_CTX_new());
	bool fits;

	if (EVP_DigestVerifyInit(
		context, NULL, digest_of(key), NULL, key->key) != 1)
		abort();
	fits = signature.len > 0 &&
	    EVP_DigestVerify(context, signature.data, signature.len,
		message.data, message.len) == 1;
	ERR_clear_error();
	return fits;
}
