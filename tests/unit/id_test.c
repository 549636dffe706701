#include <criterion/criterion.h>

#include "common/base/id.h"

Test(id, only_decimal_text_of_a_positive_63_bit_number_is_one)
{
	static const struct {
		const char *text;
		int64_t want;
	} cases[] = {
		{ "1", 1 },
		{ "1234567890123456789", 1234567890123456789 },
		{ "9223372036854775807", INT64_MAX },
		{ "9223372036854775808", 0 },
		{ "9223372036854775810", 0 },
		{ "99999999999999999999999", 0 },
		{ "0", 0 },
		{ "-1", 0 },
		{ "+1", 0 },
		{ "01", 0 },
		{ " 1", 0 },
		{ "1 ", 0 },
		{ "1x", 0 },
		{ "0x10", 0 },
		{ "1e3", 0 },
		{ "", 0 },
		{ NULL, 0 },
	};

	for (size_t i = 0; i < COUNT(cases); i++)
		cr_expect_eq(id_parse(cases[i].text), cases[i].want, "%s",
		    cases[i].text ? cases[i].text : "NULL");
}

Test(id, its_text_reads_back)
{
	struct arena *arena = arena_new();

	cr_expect_str_eq(id_text(arena, INT64_MAX), "9223372036854775807");
	cr_expect_eq(id_parse(id_text(arena, 42)), 42);
	arena_free(&arena);
}
