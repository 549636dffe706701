#include <criterion/criterion.h>

#include "common/base/clock.h"
#include "common/base/json.h"

static struct arena *arena;
static struct err err;

static void setup(void)
{
	arena = arena_new();
}

static void teardown(void)
{
	arena_free(&arena);
}

TestSuite(json_parse, .init = setup, .fini = teardown);

/* Parses a copy that ends where the text ends, so that reading on is seen. */
static const struct json *parse_bytes(const void *text, size_t len)
{
	const struct json *value = NULL;
	char *copy = malloc(len ? len : 1);

	memcpy(copy, text, len);
	err = (struct err){ 0 };
	if (!json_parse(arena, (struct bytes){ copy, len }, &value, &err))
		value = NULL;
	free(copy);
	return value;
}

static const struct json *parse(const char *text)
{
	return parse_bytes(text, strlen(text));
}

Test(json_parse, says_what_is_wrong_and_where)
{
	/* clang-format off */
	static const struct {
		const char *text;
		const char *want;
	} cases[] = {
		{ "",             "Unexpected end of JSON input" },
		{ "  ",           "Unexpected end of JSON input" },
		{ "{",            "Unexpected end of JSON input" },
		{ "[1,",          "Unexpected end of JSON input" },
		{ "\"a",          "Unexpected end of JSON input" },
		{ "\"a\\",        "Unexpected end of JSON input" },
		{ "tru",          "Unexpected end of JSON input" },
		{ "-",            "Unexpected end of JSON input" },
		{ "1.",           "Unexpected end of JSON input" },
		{ "1e",           "Unexpected end of JSON input" },
		{ "{\"version\":1,}", "Expected double-quoted property name in JSON at position 13" },
		{ "{1:2}",        "Expected property name or '}' in JSON at position 1" },
		{ "{\"a\" 1}",    "Expected ':' after property name in JSON at position 5" },
		{ "{\"a\":1 2}",  "Expected ',' or '}' after property value in JSON at position 7" },
		{ "[1 2]",        "Expected ',' or ']' after array element in JSON at position 3" },
		{ "[1}",          "Expected ',' or ']' after array element in JSON at position 2" },
		{ "[1,]",         "Unexpected token in JSON at position 3" },
		{ "]",            "Unexpected token in JSON at position 0" },
		{ "nul1",         "Unexpected token in JSON at position 3" },
		{ "NaN",          "Unexpected token in JSON at position 0" },
		{ "'a'",          "Unexpected token in JSON at position 0" },
		{ "/**/1",        "Unexpected token in JSON at position 0" },
		{ "+1",           "Unexpected token in JSON at position 0" },
		{ ".5",           "Unexpected token in JSON at position 0" },
		{ "-a",           "No number after minus sign in JSON at position 1" },
		{ "1.a",          "Unterminated fractional number in JSON at position 2" },
		{ "1ea",          "Exponent part is missing a number in JSON at position 2" },
		{ "01",           "Unexpected non-whitespace character after JSON at position 1" },
		{ "{}{}",         "Unexpected non-whitespace character after JSON at position 2" },
		{ "\"\n\"",       "Bad control character in string literal in JSON at position 1" },
		{ "\"\\x\"",      "Bad escaped character in JSON at position 2" },
		{ "\"\\u12g4\"",  "Bad Unicode escape in JSON at position 3" },
		{ "\v1",          "Unexpected token in JSON at position 0" },
		{ "\xc2\xa0" "1", "Unexpected token in JSON at position 0" },
	};
	/* clang-format on */

	for (size_t i = 0; i < COUNT(cases); i++) {
		cr_expect_null(parse(cases[i].text), "%s", cases[i].text);
		cr_expect_eq(err.code, ERR_INVALID);
		cr_expect_str_eq(
		    err.text, cases[i].want, "%s: %s", cases[i].text, err.text);
	}
}

Test(json_parse, ill_formed_utf8_is_refused)
{
	static const char *const cases[] = { "\x80", "\xff", "\xc0\x80",
		"\xc1\xbf", "\xc3", "\xc3(", "\xe0\x80\x80", "\xe2\x82",
		"\xed\xa0\x80", "\xed\xbf\xbf", "\xf0\x80\x80\x80",
		"\xf0\x9f\x98", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80" };
	static const char *const fine[] = { "\xc2\x80", "\xdf\xbf",
		"\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbf",
		"\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf" };
	char text[64];

	for (size_t i = 0; i < COUNT(cases); i++) {
		snprintf(text, sizeof(text), "[\"%s\"]", cases[i]);
		cr_expect_null(parse(text), "case %zu", i);
		snprintf(text, sizeof(text), "{\"%s\":1}", cases[i]);
		cr_expect_null(parse(text), "case %zu as a name", i);
		snprintf(text, sizeof(text), "\"%s", cases[i]);
		cr_expect_null(parse(text), "case %zu at the end", i);
	}
	for (size_t i = 0; i < COUNT(fine); i++) {
		snprintf(text, sizeof(text), "[\"%s\"]", fine[i]);
		cr_expect_not_null(parse(text), "fine %zu", i);
	}
}

Test(json_parse, a_raw_nul_ends_nothing)
{
	cr_expect_null(parse_bytes("{}\0", 3));
	cr_expect_null(parse_bytes("\"a\0b\"", 5));
	cr_expect_null(parse_bytes("\0", 1));
}

Test(json_parse, a_byte_order_mark_in_front_is_skipped)
{
	cr_expect_eq(json_type(parse("\xef\xbb\xbf{}")), JSON_OBJECT);
	cr_expect_null(parse("\xef\xbb\xbf\xef\xbb\xbf{}"));
	cr_expect_null(parse("\xef\xbb\xbf"));
}

Test(json_parse, equal_names_are_refused_however_they_are_written)
{
	static const char *const refused[] = {
		"{\"a\":1,\"a\":1}",
		"{\"a\":1,\"b\":2,\"\\u0061\":3}",
		"[{\"x\":{\"\":0,\"\":0}}]",
		"{\"/\":1,\"\\/\":1}",
		"{\"\\n\":1,\"\\u000a\":1}",
		"{\"\\ud83d\\ude00\":1,\"\xf0\x9f\x98\x80\":1}",
		"{\"\\u0000\":1,\"\\u0000\":2}",
	};
	static const char *const fine[] = {
		"{\"a\":{\"a\":{\"a\":1}},\"b\":[{\"a\":1},{\"a\":1}]}",
		"{\"a\":1,\"A\":1,\"\\u0000\":1,\"a\\u0000\":1}",
	};

	for (size_t i = 0; i < COUNT(refused); i++) {
		cr_expect_null(parse(refused[i]), "%s", refused[i]);
		cr_expect_str_eq(
		    err.text, "Object contains a duplicate property");
	}
	for (size_t i = 0; i < COUNT(fine); i++)
		cr_expect_not_null(parse(fine[i]), "%s", fine[i]);
}

Test(json_parse, prototype_names_are_refused)
{
	static const char *const refused[] = {
		"{\"__proto__\":1}",
		"[{\"a\":{\"__proto__\":null}}]",
		"{\"\\u005f_proto__\":1}",
		"{\"constructor\":{\"prototype\":1}}",
		"{\"constructor\":{\"a\":[1],\"proto\\u0074ype\":1}}",
	};
	static const char *const fine[] = {
		"{\"constructor\":1}",
		"{\"constructor\":{\"a\":{\"prototype\":1}}}",
		"{\"constructor\":[{\"prototype\":1}]}",
		"{\"constructor\":1,\"b\":{\"prototype\":1}}",
		"{\"prototype\":1}",
		"[\"__proto__\"]",
	};

	for (size_t i = 0; i < COUNT(refused); i++) {
		cr_expect_null(parse(refused[i]), "%s", refused[i]);
		cr_expect_str_eq(
		    err.text, "Object contains forbidden prototype property");
	}
	for (size_t i = 0; i < COUNT(fine); i++)
		cr_expect_not_null(parse(fine[i]), "%s", fine[i]);
}

static const struct json *parse_deep(size_t depth, const char *unit)
{
	struct buf text;
	const struct json *value;

	buf_init(&text, NULL, 10 << 20);
	for (size_t i = 0; i < depth; i++)
		buf_text(&text, unit);
	if (unit[0] == '[')
		for (size_t i = 0; i < depth; i++)
			buf_char(&text, ']');
	value = parse_bytes(text.data, text.len);
	buf_done(&text);
	return value;
}

Test(json_parse, depth_is_bounded)
{
	cr_expect_not_null(parse_deep(JSON_DEPTH_MAX, "["));
	cr_expect_null(parse_deep(JSON_DEPTH_MAX + 1, "["));
	cr_expect_str_eq(err.text, "Nesting too deep in JSON at position 64");
	cr_expect_null(parse_deep(200000, "["));
	cr_expect_null(parse_deep(200000, "{\"a\":"));
}

static int64_t parse_wide_ms(const char *format, int members, bool *ok)
{
	struct buf text;
	int64_t before;

	buf_init(&text, NULL, 20 << 20);
	buf_char(&text, '{');
	for (int i = 0; i < members; i++)
		buf_printf(&text, "%s\"%s%d\":0", i ? "," : "", format, i);
	buf_char(&text, '}');
	before = clock_steady_ms();
	*ok = parse_bytes(text.data, text.len) != NULL;
	buf_done(&text);
	return clock_steady_ms() - before;
}

Test(json_parse, a_hundred_thousand_members_are_no_burden)
{
	bool ok;

	cr_expect_lt(parse_wide_ms("member", 100000, &ok), 3000);
	cr_expect(ok);
	cr_expect_lt(parse_wide_ms("\\u0061\\u0000", 100000, &ok), 3000);
	cr_expect(ok);
}

Test(json_parse, what_is_read_is_what_was_written)
{
	const struct json *doc = parse(
	    " {\"t\":\"a\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\ude00\","
	    "\"n\":null,\"b\":true,\"l\":[1,[],{}],\"o\":{\"x\":-12}} ");
	int64_t number = 0;

	cr_expect_str_eq(json_string(json_member(doc, "t")),
	    "a\"\\/\b\f\n\r\t\xc3\xa9\xf0\x9f\x98\x80");
	cr_expect_eq(json_type(json_member(doc, "n")), JSON_NULL);
	cr_expect_eq(json_type(json_member(doc, "b")), JSON_BOOL);
	cr_expect(json_truth(json_member(doc, "b")));
	cr_expect_eq(json_type(json_member(doc, "absent")), JSON_ABSENT);
	cr_expect_eq(json_count(json_member(doc, "l")), 3);
	cr_expect_eq(
	    json_type(json_element(json_member(doc, "l"), 1)), JSON_ARRAY);
	cr_expect_null(json_element(json_member(doc, "l"), 3));
	cr_expect(json_whole(json_member(json_member(doc, "o"), "x"), &number));
	cr_expect_eq(number, -12);
	cr_expect_null(json_member(json_member(doc, "n"), "x"));
}

Test(json_parse, scalars_stand_at_the_top_too)
{
	int64_t number = 0;

	cr_expect_eq(json_type(parse("null")), JSON_NULL);
	cr_expect_eq(json_type(parse("false")), JSON_BOOL);
	cr_expect_str_eq(json_string(parse("\"x\"")), "x");
	cr_expect(json_whole(parse("12"), &number));
	cr_expect_eq(number, 12);
}

Test(json_parse, nul_and_half_pairs_refuse_only_who_reads_them)
{
	static const char *const halves[] = { "\\u0000", "x\\u0000y", "\\ud800",
		"\\udc00", "\\ud800x", "\\ud800\\ud800", "\\udc00\\ud800",
		"\\ud800\\u0041" };
	char text[200];

	for (size_t i = 0; i < COUNT(halves); i++) {
		const struct json *doc;

		snprintf(text, sizeof(text),
		    "{\"bad\":\"%s\",\"good\":\"g\",\"k%s\":\"v\"}", halves[i],
		    halves[i]);
		doc = parse(text);
		cr_assert_not_null(doc, "%s: %s", text, err.text);
		cr_expect_eq(json_type(json_member(doc, "bad")), JSON_TEXT);
		cr_expect_null(
		    json_string(json_member(doc, "bad")), "%s", text);
		cr_expect_str_eq(json_string(json_member(doc, "good")), "g");
	}
}

Test(json_parse, a_name_with_nul_is_not_cut_to_another)
{
	const struct json *doc =
	    parse("{\"role\":\"user\",\"role\\u0000\":\"admin\"}");

	cr_expect_str_eq(json_string(json_member(doc, "role")), "user");
	doc = parse("{\"role\\u0000x\":\"admin\"}");
	cr_assert_not_null(doc);
	cr_expect_null(json_member(doc, "role"));
}

Test(json_parse, whole_numbers_are_exact_or_refused)
{
	/* clang-format off */
	static const struct {
		const char *text;
		bool ok;
		int64_t want;
	} cases[] = {
		{ "0", true, 0 },
		{ "-0", true, 0 },
		{ "1.0", true, 1 },
		{ "1e3", true, 1000 },
		{ "-25e-1", false, 0 },
		{ "1.5", false, 0 },
		{ "9007199254740992", true, 9007199254740992 },
		{ "-9007199254740992", true, -9007199254740992 },
		{ "9007199254740993", false, 0 },
		{ "9223372036854775807", false, 0 },
		{ "-9223372036854775809", false, 0 },
		{ "18446744073709551617", false, 0 },
		{ "1e400", false, 0 },
		{ "-1e400", false, 0 },
		{ "1e-400", true, 0 },
		{ "\"1\"", false, 0 },
		{ "true", false, 0 },
		{ "null", false, 0 },
	};
	/* clang-format on */

	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct json *value = parse(cases[i].text);
		int64_t number = 77;

		cr_assert_not_null(value, "%s", cases[i].text);
		cr_expect_eq(json_whole(value, &number), cases[i].ok, "%s",
		    cases[i].text);
		cr_expect_eq(number, cases[i].ok ? cases[i].want : 77, "%s",
		    cases[i].text);
	}
}

Test(json_parse, large_integers_are_real_numbers)
{
	static const struct {
		const char *text;
		double want;
	} cases[] = {
		{ "100000000000000000000", 1e20 },
		{ "-18446744073709551616", -18446744073709551616.0 },
		{ "9223372036854775808", 9223372036854775808.0 },
		{ "123456789012345680000000000",
		    123456789012345680000000000.0 },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		double real = 0;

		cr_expect(json_number(parse(cases[i].text), &real));
		cr_expect_eq(
		    real, cases[i].want, "%s: %.17g", cases[i].text, real);
	}
}

Test(json_parse, a_document_ends_with_its_arena)
{
	for (int i = 0; i < 100; i++) {
		cr_assert_not_null(parse("{\"a\":[1,2,{\"b\":\"c\"}]}"));
		arena_reset(arena);
	}
}
