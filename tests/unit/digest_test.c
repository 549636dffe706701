#include <criterion/criterion.h>

#include "common/crypto/digest.h"

static struct arena *arena;

static void begin(void)
{
	arena = arena_new();
}

static void end(void)
{
	arena_free(&arena);
}

TestSuite(digest, .init = begin, .fini = end);

/* printf '{"hello": "world"}' | openssl dgst -sha512 -binary | base64 */
Test(digest, is_what_another_implementation_computes)
{
	static const char body[] = "{\"hello\": \"world\"}";
	struct digest sum =
	    digest_of(DIGEST_SHA512, (struct bytes){ body, strlen(body) });
	struct digest none =
	    digest_of(DIGEST_SHA256, (struct bytes){ NULL, 0 });

	cr_expect_str_eq(
	    base64_text(arena, (struct bytes){ sum.bytes, sum.len }),
	    "WZDPaVn/7XgHaAy8pmojAkGWoRx2UFChF41A2svX+TaPm+AbwAgBWnrIiYllu7BN"
	    "NyealdVLvRwEmTHWXvJwew==");
	cr_expect_str_eq(
	    base64_text(arena, (struct bytes){ none.bytes, none.len }),
	    "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
}

Test(digest, equality_needs_the_whole_length)
{
	struct digest sum = digest_of(DIGEST_SHA256, (struct bytes){ "a", 1 });

	cr_expect(digest_equal(&sum, (struct bytes){ sum.bytes, 32 }));
	cr_expect_not(digest_equal(&sum, (struct bytes){ sum.bytes, 31 }));
	cr_expect_not(digest_equal(&sum, (struct bytes){ "", 0 }));
}

Test(digest, base64_is_read_strictly)
{
	static const char *const bad[] = { "YQ", "YQ=", "YQ==\n",
		"Y Q==", "Y-__", "YQ==YQ==", "=" };
	struct bytes data = { NULL, 0 };

	cr_assert(base64_read(arena, "YWI=", 4, &data));
	cr_expect_eq(data.len, 2);
	cr_expect_eq(memcmp(data.data, "ab", 2), 0);
	cr_assert(base64_read(arena, "", 0, &data));
	cr_expect_eq(data.len, 0);
	for (size_t i = 0; i < COUNT(bad); i++)
		cr_expect_not(base64_read(arena, bad[i], strlen(bad[i]), &data),
		    "%s", bad[i]);
}
