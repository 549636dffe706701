#include <criterion/criterion.h>

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

TestSuite(json_read, .init = setup, .fini = teardown);

static struct json_in open_text(const char *text)
{
	err = (struct err){ 0 };
	return json_read(arena, (struct bytes){ text, strlen(text) }, &err);
}

Test(json_read, a_form_is_filled_and_done_once)
{
	struct json_in in = open_text(
	    "{\"content\":\"hi\",\"id\":\"42\",\"n\":7,\"at\":1700000000000.9,"
	    "\"on\":true,\"real\":1.5,\"who\":{\"name\":\"al\"},"
	    "\"list\":[1,2],\"null\":null}");
	struct json_in who = json_object(&in, "who");

	cr_expect_str_eq(json_text(&in, "content", 10), "hi");
	cr_expect_eq(json_id(&in, "id"), 42);
	cr_expect_eq(json_int(&in, "n", 0, 10), 7);
	cr_expect_eq(json_time(&in, "at"), 1700000000000);
	cr_expect(json_bool(&in, "on"));
	cr_expect_eq(json_real_opt(&in, "real", 0), 1.5);
	cr_expect_str_eq(json_text(&who, "name", 10), "al");
	cr_expect_eq(json_count(json_list(&in, "list", 2)), 2);
	cr_expect(json_done(&who));
	cr_expect(json_done(&in), "%s", err.text);
}

Test(json_read, what_is_optional_may_be_absent_or_null)
{
	static const char *const texts[] = { "{}",
		"{\"t\":null,\"id\":null,\"n\":null,\"at\":null,\"b\":null,"
		"\"r\":null,\"o\":null,\"l\":null}" };

	for (size_t i = 0; i < COUNT(texts); i++) {
		struct json_in in = open_text(texts[i]);
		struct json_in sub = json_object_opt(&in, "o");

		cr_expect_null(json_text_opt(&in, "t", 9));
		cr_expect_eq(json_id_opt(&in, "id"), 0);
		cr_expect_eq(json_int_opt(&in, "n", 1, 9, 5), 5);
		cr_expect_eq(json_time_opt(&in, "at"), 0);
		cr_expect(json_bool_opt(&in, "b", true));
		cr_expect_eq(json_real_opt(&in, "r", 2.5), 2.5);
		cr_expect_null(json_list_opt(&in, "l", 9));
		cr_expect_not(sub.present);
		cr_expect_null(json_text(&sub, "inner", 9));
		cr_expect(json_done(&sub));
		cr_expect(json_done(&in));
	}
}

enum getter {
	TEXT,
	TEXT_OPT,
	ID,
	ID_OPT,
	INT,
	INT_OPT,
	TIME,
	BOOL,
	BOOL_OPT,
	REAL_OPT,
	OBJECT,
	OBJECT_OPT,
	LIST,
	LIST_OPT
};

static void get(struct json_in *in, enum getter getter)
{
	switch (getter) {
	case TEXT:
		cr_expect_null(json_text(in, "x", 3));
		break;
	case TEXT_OPT:
		cr_expect_null(json_text_opt(in, "x", 3));
		break;
	case ID:
		cr_expect_eq(json_id(in, "x"), 0);
		break;
	case ID_OPT:
		cr_expect_eq(json_id_opt(in, "x"), 0);
		break;
	case INT:
		cr_expect_eq(json_int(in, "x", 1, 3), 0);
		break;
	case INT_OPT:
		cr_expect_eq(json_int_opt(in, "x", 1, 3, 2), 0);
		break;
	case TIME:
		cr_expect_eq(json_time(in, "x"), 0);
		break;
	case BOOL:
		cr_expect_not(json_bool(in, "x"));
		break;
	case BOOL_OPT:
		cr_expect_not(json_bool_opt(in, "x", true));
		break;
	case REAL_OPT:
		cr_expect_eq(json_real_opt(in, "x", 2), 0);
		break;
	case OBJECT:
		cr_expect_not(json_object(in, "x").present);
		break;
	case OBJECT_OPT:
		cr_expect_not(json_object_opt(in, "x").present);
		break;
	case LIST:
		cr_expect_null(json_list(in, "x", 2));
		break;
	case LIST_OPT:
		cr_expect_null(json_list_opt(in, "x", 2));
		break;
	}
}

Test(json_read, what_does_not_fit_is_refused_by_name)
{
	/* clang-format off */
	static const struct {
		enum getter getter;
		const char *text;
		const char *want;
	} cases[] = {
		{ TEXT,       "{}",                "x is required" },
		{ TEXT,       "{\"x\":null}",      "x must be a string" },
		{ TEXT,       "{\"x\":1}",         "x must be a string" },
		{ TEXT,       "{\"x\":\"\"}",      "x must not be empty" },
		{ TEXT,       "{\"x\":\"abcd\"}",  "x is too long" },
		{ TEXT_OPT,   "{\"x\":[]}",        "x must be a string" },
		{ TEXT_OPT,   "{\"x\":\"\\u0000\"}", "x holds a character that is not allowed" },
		{ TEXT_OPT,   "{\"x\":\"\\ud800\"}", "x holds a character that is not allowed" },
		{ TEXT_OPT,   "{\"x\":\"\xf0\x9f\x98\x80\xf0\x9f\x98\x80\"}", "x is too long" },
		{ ID,         "{\"x\":5}",         "x must be an id" },
		{ ID,         "{\"x\":\"05\"}",    "x must be an id" },
		{ ID_OPT,     "{\"x\":\"\"}",      "x must be an id" },
		{ INT,        "{\"x\":0}",         "x is out of range" },
		{ INT,        "{\"x\":4}",         "x is out of range" },
		{ INT,        "{\"x\":1.5}",       "x must be a whole number" },
		{ INT_OPT,    "{\"x\":\"1\"}",     "x must be a whole number" },
		{ INT_OPT,    "{\"x\":1e400}",     "x must be a whole number" },
		{ TIME,       "{\"x\":0}",         "x must be a time in milliseconds" },
		{ TIME,       "{\"x\":-1}",        "x must be a time in milliseconds" },
		{ TIME,       "{\"x\":9007199254740992}", "x must be a time in milliseconds" },
		{ TIME,       "{\"x\":\"1\"}",     "x must be a time in milliseconds" },
		{ BOOL,       "{\"x\":1}",         "x must be true or false" },
		{ BOOL,       "{}",                "x is required" },
		{ BOOL_OPT,   "{\"x\":\"true\"}",  "x must be true or false" },
		{ REAL_OPT,   "{\"x\":-1e999}",    "x must be a number" },
		{ OBJECT,     "{}",                "x is required" },
		{ OBJECT,     "{\"x\":null}",      "x must be an object" },
		{ OBJECT_OPT, "{\"x\":[]}",        "x must be an object" },
		{ LIST,       "{\"x\":{}}",        "x must be an array" },
		{ LIST_OPT,   "{\"x\":[1,2,3]}",   "x has too many items" },
	};
	/* clang-format on */

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct json_in in = open_text(cases[i].text);

		get(&in, cases[i].getter);
		cr_expect_not(json_done(&in), "%s", cases[i].text);
		cr_expect_eq(err.code, ERR_INVALID);
		cr_expect_str_eq(err.text, cases[i].want);
	}
}

Test(json_read, limits_count_utf16_units)
{
	struct json_in in = open_text("{\"a\":\"\xf0\x9f\x98\x80\xc3\xa9\"}");

	cr_expect_not_null(json_text(&in, "a", 3));
	cr_expect_null(json_text(&in, "a", 2));
}

Test(json_read, the_first_failure_stays)
{
	struct json_in in = open_text("{\"a\":1,\"b\":\"x\"}");

	cr_expect_null(json_text(&in, "a", 9));
	cr_expect_null(json_text(&in, "b", 9), "later getters give nothing");
	json_fail(&in, "c", "is wrong");
	cr_expect_str_eq(err.text, "a must be a string");
	cr_expect_not(json_done(&in));
}

Test(json_read, a_failed_form_fails_its_objects)
{
	struct json_in in = open_text("{\"o\":{\"a\":1}}");
	struct json_in sub;

	json_fail(&in, "x", "is wrong");
	sub = json_object(&in, "o");
	cr_expect_eq(json_int(&sub, "a", 0, 9), 0);
	cr_expect_not(json_done(&sub));
}

Test(json_read, a_body_must_be_an_object)
{
	static const char *const texts[] = { "[]", "1", "null", "\"x\"", "",
		"{" };

	for (size_t i = 0; i < COUNT(texts); i++) {
		struct json_in in = open_text(texts[i]);

		cr_expect_null(json_text_opt(&in, "a", 9));
		cr_expect_not(json_done(&in), "%s", texts[i]);
		cr_expect_eq(err.code, ERR_INVALID);
	}
}

Test(json_read, a_value_of_a_document_is_read_like_a_body)
{
	struct json_in in = open_text("{\"l\":[{\"a\":3},4]}");
	const struct json *list = json_list(&in, "l", 9);
	struct json_in first = json_from(arena, json_element(list, 0), &err);
	struct json_in second = json_from(arena, json_element(list, 1), &err);

	cr_expect_eq(json_int(&first, "a", 0, 9), 3);
	cr_expect(json_done(&first));
	cr_expect_not(json_done(&second));
}

Test(json_text, units_are_those_of_utf16)
{
	cr_expect_eq(json_units(""), 0);
	cr_expect_eq(json_units("abc"), 3);
	cr_expect_eq(json_units("\xc3\xa9\xe2\x82\xac"), 2);
	cr_expect_eq(json_units("\xf0\x9f\x98\x80"), 2);
}

Test(json_text, trim_is_ecmascripts, .init = setup, .fini = teardown)
{
	/* clang-format off */
	static const struct {
		const char *text;
		const char *want;
	} cases[] = {
		{ "", "" },
		{ " \t\n\v\f\r", "" },
		{ " a b ", "a b" },
		{ "\xc2\xa0" "a\xc2\xa0", "a" },
		{ "\xef\xbb\xbf" "a\xe2\x80\xa8\xe2\x80\xa9", "a" },
		{ "\xe3\x80\x80\xe1\x9a\x80\xe2\x80\x80x\xe2\x80\x8a\xe2\x80\xaf\xe2\x81\x9f", "x" },
		{ "\xe2\x80\x8b" "a", "\xe2\x80\x8b" "a" },
		{ "\xc2\x85" "a", "\xc2\x85" "a" },
		{ " \xf0\x9f\x98\x80 ", "\xf0\x9f\x98\x80" },
	};
	/* clang-format on */

	for (size_t i = 0; i < COUNT(cases); i++)
		cr_expect_str_eq(json_trim(arena, cases[i].text), cases[i].want,
		    "case %zu", i);
	cr_expect_null(json_trim(arena, NULL));
}
