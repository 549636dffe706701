/*
 * Counted windows per key.
 */
#include <criterion/criterion.h>

#include "common/base/clock.h"
#include "common/net/limit.h"

static bool counts(struct limit *limit, const char *scope, const char *key)
{
	return limit_count(limit, scope, key, 2, 60000).allowed;
}

Test(limit, the_window_allows_so_many_and_begins_anew)
{
	struct limit *limit = limit_new(10);
	struct limit_state state;

	for (int64_t i = 0; i < 5; i++) {
		state = limit_count(limit, "login", "a", 3, 60000);
		cr_expect_eq(state.allowed, i < 3);
		cr_expect_eq(state.max, 3);
		cr_expect_eq(state.remaining, i < 3 ? 2 - i : 0);
		cr_expect_eq(state.reset_s, 60);
	}
	clock_shift_ms(59000);
	state = limit_count(limit, "login", "a", 3, 60000);
	cr_expect_not(state.allowed);
	cr_expect_eq(state.reset_s, 1);
	clock_shift_ms(1000);
	cr_expect(limit_count(limit, "login", "a", 3, 60000).allowed);
	limit_free(&limit);
	cr_expect_null(limit);
}

Test(limit, scopes_and_keys_are_counted_apart)
{
	struct limit *limit = limit_new(10);

	for (int i = 0; i < 2; i++) {
		cr_expect(counts(limit, "a", "bc"));
		cr_expect(counts(limit, "ab", "c"));
		cr_expect(counts(limit, "a", "b"));
		cr_expect(counts(limit, "", "abc"));
		cr_expect(counts(limit, "a", "a rather long key of a client"));
	}
	cr_expect_not(counts(limit, "a", "bc"));
	cr_expect_not(counts(limit, "ab", "c"));
	limit_free(&limit);
}

Test(limit, what_is_given_back_may_be_used_again)
{
	struct limit *limit = limit_new(10);

	limit_give_back(limit, "a", "b");
	for (int i = 0; i < 5; i++) {
		cr_expect(counts(limit, "a", "b"));
		limit_give_back(limit, "a", "b");
	}
	cr_expect(counts(limit, "a", "b"));
	cr_expect(counts(limit, "a", "b"));
	cr_expect_not(counts(limit, "a", "b"));
	limit_give_back(limit, "a", "c");
	cr_expect_not(counts(limit, "a", "b"));
	/* Of an earlier window: nothing of this one. */
	clock_shift_ms(60000);
	limit_give_back(limit, "a", "b");
	cr_expect(counts(limit, "a", "b"));
	cr_expect(counts(limit, "a", "b"));
	cr_expect_not(counts(limit, "a", "b"));
	limit_free(&limit);
}

Test(limit, zero_means_no_limit)
{
	struct limit *limit = limit_new(1);

	for (int i = 0; i < 100; i++)
		cr_expect(limit_count(limit, "a", "b", 0, 60000).allowed);
	limit_free(&limit);
}

Test(limit, a_lowered_limit_never_leaves_less_than_nothing)
{
	struct limit *limit = limit_new(1);

	for (int i = 0; i < 5; i++)
		cr_expect(limit_count(limit, "a", "b", 5, 60000).allowed);
	cr_expect_eq(limit_count(limit, "a", "b", 2, 60000).remaining, 0);
	limit_free(&limit);
}

Test(limit, when_full_the_oldest_window_goes)
{
	struct limit *limit = limit_new(3);

	for (int i = 0; i < 3; i++) {
		counts(limit, "s", "old");
		counts(limit, "s", "middle");
		counts(limit, "s", "young");
	}
	counts(limit, "s", "new");
	cr_expect_not(counts(limit, "s", "middle"));
	cr_expect_not(counts(limit, "s", "young"));
	cr_expect(counts(limit, "s", "old"));
	cr_expect_not(counts(limit, "s", "young"));
	cr_expect(counts(limit, "s", "middle"));
	limit_free(&limit);
}

Test(limit, a_renewed_window_is_young_again)
{
	struct limit *limit = limit_new(2);

	counts(limit, "s", "first");
	counts(limit, "s", "second");
	clock_shift_ms(60000);
	for (int i = 0; i < 3; i++)
		counts(limit, "s", "first");
	counts(limit, "s", "third");
	cr_expect_not(counts(limit, "s", "first"));
	limit_free(&limit);
}

Test(limit, many_keys_keep_their_own_counts)
{
	enum { KEYS = 5000 };
	struct limit *limit = limit_new(KEYS);
	char key[16];

	for (int round = 0; round < 3; round++)
		for (int i = 0; i < KEYS; i++) {
			snprintf(key, sizeof(key), "key-%d", i);
			cr_assert_eq(counts(limit, "s", key), round < 2);
		}
	for (int i = KEYS; i < 4 * KEYS; i++) {
		snprintf(key, sizeof(key), "key-%d", i);
		cr_assert(counts(limit, "s", key));
	}
	limit_free(&limit);
}
