#include <criterion/criterion.h>

#include "common/crypto/sign.h"

/*
 * Computed with another implementation:
 * printf '%s' "$ts.$nonce.$body" | openssl dgst -sha256 -hmac "$secret"
 */
#define SECRET \
	"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define STAMP "1796073163977"

static struct bytes body_of(const char *text)
{
	return (struct bytes){ text, strlen(text) };
}

struct example {
	const char *secret;
	const char *nonce;
	const char *body;
	const char *signature;
};

/* clang-format off */
static const struct example examples[] = {
	{ SECRET, "2dbb0406-21b8-4c5c-8a5e-4f1d6c0a9b11", "{\"a\":1}",
	  "sha256=bba4486adc6b8f19f2e0c5960fd07dc6586def2ee02d6b0710ce6491ac965eee" },
	{ SECRET, NULL, "{\"a\":1}",
	  "sha256=15e300bb6c521daf5df83f4d33cca3ab325b53d8945f7adec59e0fb869857c44" },
	{ SECRET, "n", "",
	  "sha256=16e7260d52a86296c45f885cf97307986010926a18c3e678352b119730063fcc" },
	{ "short", "n", "{ \"b\" : 1.0, \"c\":\"\\/\", \"d\":\"\xc3\xa9\" }",
	  "sha256=69547a6302f70e41c711c41993d0efa7e495b7b7ad6b8f16d6c4c6e5e094acb7" },
	{ "", "n", "{}",
	  "sha256=70ee2cf3ada94fb6d181779c611e5c92cdac1be163a218f7afbd614364b04615" },
	{ SECRET SECRET, "n", "{}",
	  "sha256=95faf14b8bde625999bc4b0e3b194dc102f8f7cddfd20cd9194e2c4cec107cca" },
};
/* clang-format on */

Test(sign, makes_what_another_implementation_makes)
{
	char text[SIGN_TEXT_MAX];

	for (size_t i = 0; i < COUNT(examples); i++) {
		const struct example *e = &examples[i];

		sign_make(e->secret, STAMP, e->nonce, body_of(e->body), text);
		cr_expect_str_eq(text, e->signature, "example %zu", i);
		cr_expect(sign_verify(e->secret, STAMP, e->nonce,
			      body_of(e->body), e->signature),
		    "example %zu", i);
	}
}

Test(sign, refuses_when_anything_was_changed)
{
	const struct example *e = &examples[0];
	struct bytes body = body_of(e->body);
	const char *sig = e->signature;

	cr_expect(sign_verify(SECRET, STAMP, e->nonce, body, sig));
	cr_expect_not(sign_verify("x", STAMP, e->nonce, body, sig));
	cr_expect_not(
	    sign_verify(SECRET, "1796073163978", e->nonce, body, sig));
	cr_expect_not(sign_verify(SECRET, STAMP, "other", body, sig));
	cr_expect_not(sign_verify(SECRET, STAMP, NULL, body, sig));
	cr_expect_not(
	    sign_verify(SECRET, STAMP, e->nonce, body_of("{\"a\": 1}"), sig));
}

Test(sign, takes_hex_of_either_case_and_no_other_form)
{
	struct bytes body = body_of("{}");
	char text[SIGN_TEXT_MAX], odd[SIGN_TEXT_MAX + 8];

	sign_make(SECRET, STAMP, NULL, body, text);
	for (char *c = text + strlen("sha256="); *c; c++)
		if (*c >= 'a')
			*c = (char)(*c - 'a' + 'A');
	cr_expect(sign_verify(SECRET, STAMP, NULL, body, text));

	snprintf(odd, sizeof(odd), "%.69s", text);
	cr_expect_not(sign_verify(SECRET, STAMP, NULL, body, odd), "62 digits");
	snprintf(odd, sizeof(odd), "%s00", text);
	cr_expect_not(sign_verify(SECRET, STAMP, NULL, body, odd), "66 digits");
	snprintf(odd, sizeof(odd), "%.70sg", text);
	cr_expect_not(sign_verify(SECRET, STAMP, NULL, body, odd), "not hex");
	cr_expect_not(sign_verify(SECRET, STAMP, NULL, body, text + 7), "bare");
	snprintf(odd, sizeof(odd), "SHA256=%s", text + 7);
	cr_expect_not(sign_verify(SECRET, STAMP, NULL, body, odd), "prefix");
	cr_expect_not(sign_verify(SECRET, STAMP, NULL, body, ""), "empty");
}

#define SIG "sha256=ab12"
#define N64 SECRET

struct headers_case {
	const char *name, *origin, *timestamp, *nonce, *signature;
	bool ok;
};

/* clang-format off */
static const struct headers_case headers_cases[] = {
	{ "all there",        "https://nova.test", STAMP, "n-1", SIG, true },
	{ "no nonce",         "https://nova.test", STAMP, NULL, SIG, true },
	{ "empty nonce",      "https://nova.test", STAMP, " \t", SIG, true },
	{ "nonce of 64",      "https://nova.test", STAMP, N64, SIG, true },
	{ "trimmed to 64",    "https://nova.test", STAMP, " " N64 " ", SIG, true },
	{ "nonce of 65",      "https://nova.test", STAMP, N64 "x", SIG, false },
	{ "no origin",        NULL, STAMP, "n", SIG, false },
	{ "empty origin",     "", STAMP, "n", SIG, false },
	{ "no signature",     "https://nova.test", STAMP, "n", NULL, false },
	{ "no time",          "https://nova.test", NULL, "n", SIG, false },
	{ "no prefix",        "https://nova.test", STAMP, "n", "ab12", false },
	{ "not hex",          "https://nova.test", STAMP, "n", "sha256=zz", false },
	{ "no hex",           "https://nova.test", STAMP, "n", "sha256=", false },
	{ "empty time",       "https://nova.test", "", "n", SIG, false },
	{ "time in words",    "https://nova.test", "abc", "n", SIG, false },
	{ "negative time",    "https://nova.test", "-1", "n", SIG, false },
	{ "signed time",      "https://nova.test", "+1", "n", SIG, false },
	{ "exponent",         "https://nova.test", "1e13", "n", SIG, false },
	{ "hex time",         "https://nova.test", "0x18", "n", SIG, false },
	{ "fraction",         "https://nova.test", "1.5", "n", SIG, false },
	{ "time with space",  "https://nova.test", " 1", "n", SIG, false },
	{ "15 digits",        "https://nova.test", "123456789012345", "n", SIG, true },
	{ "16 digits",        "https://nova.test", "1234567890123456", "n", SIG, false },
	{ "40 digits",        "https://nova.test",
	  "1234567890123456789012345678901234567890", "n", SIG, false },
};
/* clang-format on */

Test(sign_headers, are_checked_for_their_form)
{
	struct arena *arena = arena_new();

	for (size_t i = 0; i < COUNT(headers_cases); i++) {
		const struct headers_case *c = &headers_cases[i];
		struct sign_headers out = { .timestamp_ms = 77 };
		bool ok = sign_headers_parse(arena, c->origin, c->timestamp,
		    c->nonce, c->signature, &out);

		cr_expect_eq(ok, c->ok, "%s", c->name);
		cr_expect(c->ok || out.timestamp_ms == 77,
		    "%s: outputs stay untouched", c->name);
	}
	arena_free(&arena);
}

Test(sign_headers, are_given_trimmed_and_read)
{
	struct arena *arena = arena_new();
	struct sign_headers out;

	cr_assert(sign_headers_parse(
	    arena, "https://nova.test", "007", " n-1 ", SIG, &out));
	cr_expect_eq(out.timestamp_ms, 7);
	cr_expect_str_eq(out.timestamp, "007", "it is part of the message");
	cr_expect_str_eq(out.nonce, "n-1");
	cr_assert(sign_headers_parse(
	    arena, "https://nova.test", STAMP, "  ", SIG, &out));
	cr_expect_null(out.nonce);
	arena_free(&arena);
}

Test(sign_window, is_fifteen_minutes_both_ways_inclusive)
{
	const int64_t now = 1796073163977;
	const int64_t minute = 60000;

	cr_expect(sign_in_window(now, now));
	cr_expect(sign_in_window(now - 15 * minute, now));
	cr_expect(sign_in_window(now + 15 * minute, now));
	cr_expect_not(sign_in_window(now - 15 * minute - 1, now));
	cr_expect_not(sign_in_window(now + 15 * minute + 1, now));
	cr_expect_not(sign_in_window(now / 1000, now), "seconds");
	cr_expect_not(sign_in_window(999999999999999, now));
	cr_expect_not(sign_in_window(0, now));
}

Test(sign_fresh, secrets_and_nonces_have_their_form_and_differ)
{
	struct arena *arena = arena_new();
	const char *secret = secret_fresh(arena), *nonce = nonce_fresh(arena);

	cr_expect_eq(strlen(secret), 64);
	cr_expect_eq(strspn(secret, "0123456789abcdef"), 64);
	cr_expect_str_neq(secret, secret_fresh(arena));
	cr_expect_eq(strlen(nonce), 36);
	cr_expect_eq(strspn(nonce, "0123456789abcdef-"), 36);
	cr_expect_eq(nonce[14], '4', "version");
	cr_expect(strchr("89ab", nonce[19]), "variant");
	cr_expect_str_neq(nonce, nonce_fresh(arena));
	arena_free(&arena);
}

Test(secret_equal, compares_whole_texts)
{
	cr_expect(secret_equal("abc", "abc"));
	cr_expect(secret_equal("", ""));
	cr_expect_not(secret_equal("abc", "abd"));
	cr_expect_not(secret_equal("abc", "ab"));
	cr_expect_not(secret_equal("abc", NULL));
	cr_expect_not(secret_equal(NULL, NULL), "no secret equals none");
}
