#include <semaphore.h>
#include <errno.h>
#include <sodium.h>
#include <time.h>

#include "common/crypto/password.h"

enum { WAIT_S = 1, RETRY_AFTER_S = 2 };

/* Set once at start, before the workers; then only the semaphore changes. */
static struct {
	sem_t slots;
	uint64_t ops;
	uint64_t memory_bytes;
} setup;

/* A slot is held until the hash is done, whoever still waits for it. */
static bool slot_take(struct err *err)
{
	struct timespec until;

	assert(setup.ops);
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += WAIT_S;
	while (sem_clockwait(&setup.slots, CLOCK_MONOTONIC, &until) != 0) {
		if (errno == EINTR)
			continue;
		err_set(err, ERR_TOO_MANY,
		    "too many log-ins at once, try again shortly");
		err->retry_after_s = RETRY_AFTER_S;
		return false;
	}
	return true;
}

static void slot_give(void)
{
	sem_post(&setup.slots);
}

static bool length_check(const char *password, struct err *err)
{
	if (strnlen(password, PASSWORD_MAX_BYTES) < PASSWORD_MAX_BYTES)
		return true;
	return err_set(err, ERR_INVALID, "password is too long");
}

static bool is_argon2id(const char *hash)
{
	return hash &&
	    strncmp(hash, crypto_pwhash_argon2id_STRPREFIX,
		strlen(crypto_pwhash_argon2id_STRPREFIX)) == 0;
}

/* As long as a real check takes, so that time doesn't tell who exists. */
static void burn(const char *password)
{
	static const unsigned char salt[crypto_pwhash_argon2id_SALTBYTES];
	unsigned char out[32];

	if (crypto_pwhash_argon2id(out, sizeof(out), password, strlen(password),
		salt, setup.ops, setup.memory_bytes,
		crypto_pwhash_argon2id_ALG_ARGON2ID13) != 0)
		abort();
}

void password_setup(int slots, uint64_t ops, uint64_t memory_bytes)
{
	assert(slots > 0 && ops > 0 && !setup.ops);
	assert(memory_bytes >= crypto_pwhash_argon2id_MEMLIMIT_MIN);
	if (sodium_init() < 0 ||
	    sem_init(&setup.slots, 0, (unsigned)slots) != 0)
		abort();
	setup.ops = ops;
	setup.memory_bytes = memory_bytes;
}

bool password_hash(struct arena *arena, const char *password, const char **hash,
    struct err *err)
{
	char text[crypto_pwhash_argon2id_STRBYTES];

	if (!length_check(password, err) || !slot_take(err))
		return false;
	if (crypto_pwhash_argon2id_str(text, password, strlen(password),
		setup.ops, setup.memory_bytes) != 0)
		abort();
	slot_give();
	*hash = arena_text(arena, text);
	return true;
}

bool password_check(
    const char *hash, const char *password, bool *match, struct err *err)
{
	bool equal = false;

	if (!length_check(password, err) || !slot_take(err))
		return false;
	errno = 0;
	if (!is_argon2id(hash))
		burn(password);
	else if (crypto_pwhash_argon2id_str_verify(
		     hash, password, strlen(password)) == 0)
		equal = true;
	else if (errno == ENOMEM)
		abort();
	slot_give();
	*match = equal;
	return true;
}
