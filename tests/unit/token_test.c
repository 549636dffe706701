#include <criterion/criterion.h>

#include "common/crypto/token.h"

Test(token, a_fresh_one_is_read_back)
{
	struct arena *arena = arena_new();
	struct token_key key, other;
	struct token token;
	const char *text;

	token_fresh(&key);
	token_fresh(&other);
	text = token_text(arena, 7412345678901234567, &key);
	cr_assert(token_parse(arena_printf(arena, "Bearer %s", text), &token));
	cr_expect_eq(token.session, 7412345678901234567);
	cr_expect(token_hash_equal(token.hash, key.hash));
	cr_expect_not(token_hash_equal(token.hash, other.hash));
	cr_expect(token_parse(arena_printf(arena, "bearer %s", text), &token),
	    "the scheme's case does not matter");
	arena_free(&arena);
}

Test(token, the_database_holds_the_sha256_of_the_key)
{
	/* printf ... | openssl dgst -sha256, of 32 bytes of zero */
	static const unsigned char want[4] = { 0x66, 0x68, 0x7a, 0xad };
	struct token token;

	cr_assert(token_parse("Bearer "
			      "1.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
	    &token));
	cr_expect_arr_eq(token.hash, want, sizeof(want));
}

#define KEY "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

Test(token, malformed_ones_are_refused)
{
	static const char *const bad[] = {
		"",
		"Bearer",
		"Bearer ",
		"Bearer .",
		"Bearer 1",
		"Bearer 1.",
		"Bearer ." KEY,
		"Bearer 0." KEY,
		"Bearer 01." KEY,
		"Bearer -1." KEY,
		"Bearer +1." KEY,
		"Bearer  1." KEY,
		"Bearer 1 ." KEY,
		"Bearer 1x." KEY,
		"Bearer 9223372036854775808." KEY,
		"Bearer 99999999999999999999." KEY,
		"Bearer 1." KEY "A",
		"Bearer 1." KEY "=",
		"Bearer 1." KEY " ",
		"Bearer 1.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
		"Bearer 1.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB",
		"Bearer 1.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA+A",
		"Bearer 1.AAAAAAAAAAAAAAAAAAAA.AAAAAAAAAAAAAAAAAAAAAA",
		"Bearer 1.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
		"Basic 1." KEY,
		"1." KEY,
	};
	struct token token = { .session = 5 };

	cr_expect_not(token_parse(NULL, &token));
	for (size_t i = 0; i < COUNT(bad); i++)
		cr_expect_not(token_parse(bad[i], &token), "%s", bad[i]);
	cr_expect_eq(token.session, 5, "outputs stay untouched");
}
