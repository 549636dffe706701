#include <math.h>

#include <criterion/criterion.h>

#include "common/base/json.h"

static struct buf out;

static void setup(void)
{
	buf_init(&out, NULL, 1 << 20);
}

static void teardown(void)
{
	buf_done(&out);
}

TestSuite(json_write, .init = setup, .fini = teardown);

Test(json_write, texts_are_escaped_as_json_stringify_does)
{
	/* clang-format off */
	static const struct {
		const char *text;
		const char *want;
	} cases[] = {
		{ "", "\"\"" },
		{ "plain / text", "\"plain / text\"" },
		{ "\"\\", "\"\\\"\\\\\"" },
		{ "\b\t\n\f\r", "\"\\b\\t\\n\\f\\r\"" },
		{ "\x01\x0b\x1f", "\"\\u0001\\u000b\\u001f\"" },
		{ "\x7f", "\"\x7f\"" },
		{ "\xc3\xa9\xe2\x80\xa8\xf0\x9f\x98\x80", "\"\xc3\xa9\xe2\x80\xa8\xf0\x9f\x98\x80\"" },
	};
	/* clang-format on */

	for (size_t i = 0; i < COUNT(cases); i++) {
		buf_clear(&out);
		json_quote(&out, cases[i].text);
		cr_expect_str_eq(out.data, cases[i].want);
	}
}

Test(json_write, numbers_are_printed_as_ecmascript_does)
{
	static const struct {
		double real;
		const char *want;
	} cases[] = {
		{ 0.0, "0" },
		{ -0.0, "0" },
		{ 1.0, "1" },
		{ -1.5, "-1.5" },
		{ 100, "100" },
		{ 0.1, "0.1" },
		{ 0.1 + 0.2, "0.30000000000000004" },
		{ 1.0 / 3, "0.3333333333333333" },
		{ 1e20, "100000000000000000000" },
		{ 1e21, "1e+21" },
		{ 1.5e300, "1.5e+300" },
		{ 123456789012345680000.0, "123456789012345680000" },
		{ 1e-6, "0.000001" },
		{ 1.234e-6, "0.000001234" },
		{ 1e-7, "1e-7" },
		{ 1.5e-9, "1.5e-9" },
		{ 5e-324, "5e-324" },
		{ 1.7976931348623157e308, "1.7976931348623157e+308" },
		{ 9007199254740993.0, "9007199254740992" },
		{ 4.35, "4.35" },
		{ INFINITY, "null" },
		{ NAN, "null" },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct json_out json = { .buf = &out };

		buf_clear(&out);
		json_put_real(&json, NULL, cases[i].real);
		cr_expect_str_eq(out.data, cases[i].want);
	}
}

Test(json_write, members_stand_in_the_order_they_were_put)
{
	struct json_out json = { .buf = &out };

	json_open(&json, NULL);
	json_put_text(&json, "t", "x");
	json_put_text(&json, "none", NULL);
	json_open_list(&json, "l");
	json_put_int(&json, NULL, -1);
	json_open(&json, NULL);
	json_close(&json);
	json_put_id(&json, NULL, 42);
	json_open_list(&json, NULL);
	json_close_list(&json);
	json_close_list(&json);
	json_put_bool(&json, "b", false);
	json_put_time(&json, "at", 0);
	json_put_time(&json, "then", 1700000000000);
	json_put_raw(&json, "raw", (struct bytes){ "[0]", 3 });
	json_put_id(&json, "id", 0);
	json_close(&json);
	cr_expect_str_eq(out.data,
	    "{\"t\":\"x\",\"none\":null,\"l\":[-1,{},\"42\",[]],\"b\":false,"
	    "\"at\":null,\"then\":1700000000000,\"raw\":[0],\"id\":null}");
}

struct pet {
	const char *name;
};

struct person {
	int64_t id;
	const char *name;
	int64_t at;
	bool admin;
	double weight;
	const char *raw;
	const char *hidden;
	struct bytes bytes;
	int64_t opt_id;
	const struct pet *pet;
	struct rows pets;
	const char *opt_text;
};

static const struct shape pet_shape[] = {
	SHAPE(TEXT, struct pet, name, "name"),
	SHAPE_END(struct pet),
};

static const struct shape person_shape[] = {
	SHAPE(ID, struct person, id, "id"),
	SHAPE(TEXT, struct person, name, "name"),
	SHAPE(TIME, struct person, at, "createdAt"),
	SHAPE(BOOL, struct person, admin, "isAdmin"),
	SHAPE(REAL, struct person, weight, "weight"),
	SHAPE(RAW, struct person, raw, "raw"),
	SHAPE(TEXT, struct person, hidden, NULL),
	SHAPE(BYTES, struct person, bytes, NULL),
	SHAPE_OPT(ID, struct person, opt_id, "replyTo"),
	SHAPE_SUB(OBJECT, struct person, pet, "pet", pet_shape),
	SHAPE_SUB(LIST, struct person, pets, "pets", pet_shape),
	SHAPE_OPT(TEXT, struct person, opt_text, "note"),
	SHAPE_END(struct person),
};

Test(json_write, a_shape_prints_its_record)
{
	struct pet cat = { "cat" };
	struct pet both[] = { { "a" }, { "b" } };
	struct person full = { 7, "al", 5, true, 1.5, "{\"x\":1}", "secret",
		{ "b", 1 }, 3, &cat, { both, 2 }, "n" };

	json_write_shape(&out, person_shape, &full);
	cr_expect_str_eq(out.data,
	    "{\"id\":\"7\",\"name\":\"al\",\"createdAt\":5,\"isAdmin\":true,"
	    "\"weight\":1.5,\"raw\":{\"x\":1},\"replyTo\":\"3\","
	    "\"pet\":{\"name\":\"cat\"},"
	    "\"pets\":[{\"name\":\"a\"},{\"name\":\"b\"}],\"note\":\"n\"}");
}

Test(json_write, what_is_nothing_is_null_or_left_out)
{
	struct person empty = { .weight = NAN };

	json_write_shape(&out, person_shape, &empty);
	cr_expect_str_eq(out.data,
	    "{\"id\":null,\"name\":null,\"createdAt\":null,\"isAdmin\":false,"
	    "\"weight\":null,\"raw\":null,\"pet\":null,\"pets\":[]}");
}

Test(json_write, rows_are_a_list)
{
	struct pet both[] = { { "a" }, { NULL } };
	struct rows rows = { both, 2 };
	struct json_out json = { .buf = &out };

	json_open(&json, NULL);
	json_put_shape(&json, "one", pet_shape, &both[0]);
	json_put_shape(&json, "none", pet_shape, NULL);
	json_close(&json);
	json_write_rows(&out, pet_shape, &rows);
	cr_expect_str_eq(out.data,
	    "{\"one\":{\"name\":\"a\"},\"none\":null}"
	    "[{\"name\":\"a\"},{\"name\":null}]");
}
