#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>

#include "common/base/clock.h"
#include "common/crypto/password.h"

enum { SLOTS = 2, OPS = 1, MEMORY = 8192 };

static void cheap(void)
{
	password_setup(SLOTS, OPS, MEMORY);
}

static struct arena *arena;

static void cheap_arena(void)
{
	cheap();
	arena = arena_new();
}

static void arena_end(void)
{
	arena_free(&arena);
}

Test(password, the_right_one_matches_and_no_other, .init = cheap_arena,
    .fini = arena_end)
{
	const char *hash;
	struct err err;
	bool match = false;

	cr_assert(password_hash(arena, "correct-horse \xc3\xa9", &hash, &err));
	cr_expect_eq(strncmp(hash, "$argon2id$", 10), 0, "%s", hash);
	cr_assert(password_check(hash, "correct-horse \xc3\xa9", &match, &err));
	cr_expect(match);
	cr_assert(password_check(hash, "correct-horse", &match, &err));
	cr_expect_not(match);
	cr_assert(password_check(hash, "", &match, &err));
	cr_expect_not(match);
}

Test(password, two_hashes_of_one_password_differ, .init = cheap_arena,
    .fini = arena_end)
{
	const char *a, *b;
	struct err err;

	cr_assert(password_hash(arena, "correct-horse", &a, &err));
	cr_assert(password_hash(arena, "correct-horse", &b, &err));
	cr_expect_str_neq(a, b);
}

Test(password, what_is_no_argon2id_hash_never_matches, .init = cheap_arena,
    .fini = arena_end)
{
	static const char *const stubs[] = { NULL, "", "!", "*", "secret",
		"$2b$10$abcdefghijklmnopqrstuv", "$argon2i$v=19$m=8,t=1,p=1$",
		"$argon2id$", "$argon2id$v=19$m=8,t=1,p=1$AAAA$AAAA" };
	struct err err;

	for (size_t i = 0; i < COUNT(stubs); i++) {
		bool match = true;

		cr_expect(password_check(stubs[i], "secret", &match, &err));
		cr_expect_not(match, "stub %zu", i);
	}
}

Test(password, an_over_long_one_is_refused_before_hashing, .init = cheap_arena,
    .fini = arena_end)
{
	char *password = arena_alloc(arena, 1 << 20);
	const char *hash = NULL;
	struct err err;
	bool match;

	memset(password, 'x', (1 << 20) - 1);
	cr_expect_not(password_hash(arena, password, &hash, &err));
	cr_expect_eq(err.code, ERR_INVALID);
	cr_expect_null(hash);
	cr_expect_not(password_check(NULL, password, &match, &err));
	password[PASSWORD_MAX_BYTES] = '\0';
	cr_expect_not(password_hash(arena, password, &hash, &err));
	password[PASSWORD_MAX_BYTES - 1] = '\0';
	cr_expect(password_hash(arena, password, &hash, &err));
}

Test(password, an_unknown_account_costs_what_a_known_one_costs)
{
	struct err err;
	const char *hash;
	bool match;
	int64_t t0, t1, t2;

	password_setup(SLOTS, 3, 32 << 20);
	arena = arena_new();
	cr_assert(password_hash(arena, "right", &hash, &err));
	t0 = clock_steady_us();
	cr_assert(password_check(hash, "wrong", &match, &err));
	t1 = clock_steady_us();
	cr_assert(password_check(NULL, "wrong", &match, &err));
	t2 = clock_steady_us();
	cr_expect_gt((t2 - t1) * 20, t1 - t0);
	cr_expect_gt((t1 - t0) * 20, t2 - t1);
	arena_free(&arena);
}

static atomic_int refused, done;

static void *hash_in_thread(void *unused UNUSED)
{
	struct err err;
	bool match;

	if (password_check(NULL, "correct-horse", &match, &err))
		done++;
	else if (err.code == ERR_TOO_MANY && err.retry_after_s > 0)
		refused++;
	return NULL;
}

/* Each takes long enough that two slots cannot serve twelve in a second. */
Test(password, who_finds_no_slot_within_a_second_is_told_to_come_back)
{
	pthread_t threads[12];

	password_setup(1, 40, 64 << 20);
	for (size_t i = 0; i < COUNT(threads); i++)
		pthread_create(&threads[i], NULL, hash_in_thread, NULL);
	for (size_t i = 0; i < COUNT(threads); i++)
		pthread_join(threads[i], NULL);
	cr_expect_geq(done, 1);
	cr_expect_geq(refused, 1);
	cr_expect_eq(done + refused, (int)COUNT(threads));
}

Test(password, slots_are_given_back, .init = cheap)
{
	struct err err;
	bool match;

	for (int i = 0; i < 4 * SLOTS; i++)
		cr_expect(password_check(NULL, "x", &match, &err));
}
