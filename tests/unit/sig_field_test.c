#include <criterion/criterion.h>

#include "common/fediverse/sig_field.h"

static struct arena *arena;

static void begin(void)
{
	arena = arena_new();
}

static void end(void)
{
	arena_free(&arena);
}

TestSuite(sig_field, .init = begin, .fini = end);

Test(sig_field, a_dictionary_is_read)
{
	struct field_members all;
	const struct field_member *list;

	cr_assert(field_dictionary(arena,
	    "a=(\"@method\" \"x\";name=\"P\\\"t\");created=12;k=\"v\";on, "
	    "b=:YWI=: ,\tc=tok/en;q=-3, d=?1",
	    &all));
	cr_assert_eq(all.count, 4);
	list = field_find(&all, "a");
	cr_assert(list && list->is_list);
	cr_expect_str_eq(list->raw,
	    "(\"@method\" \"x\";name=\"P\\\"t\");created=12;k=\"v\";on");
	cr_assert_eq(list->count, 2);
	cr_expect_str_eq(list->elements[0].item.text, "@method");
	cr_expect_str_eq(list->elements[1].raw, "\"x\";name=\"P\\\"t\"");
	cr_expect_str_eq(
	    field_param(&list->elements[1].params, "name")->text, "P\"t");
	cr_expect_eq(field_param(&list->params, "created")->whole, 12);
	cr_expect_eq(field_param(&list->params, "on")->kind, FIELD_FLAG);
	cr_expect_null(field_param(&list->params, "absent"));
	cr_expect_eq(field_find(&all, "b")->item.bytes.len, 2);
	cr_expect_str_eq(field_find(&all, "c")->item.text, "tok/en");
	cr_expect_eq(
	    field_param(&field_find(&all, "c")->params, "q")->whole, -3);
	cr_expect_eq(field_find(&all, "d")->item.whole, 1);
}

Test(sig_field, what_is_not_the_grammar_is_refused)
{
	static const char *const bad[] = { "", ",", "a", "a=", "A=1", "a=1,",
		"a=1 b=2", "a=1,,b=2", "a=1, a=2", "a=(", "a=(\"x\"",
		"a=[\"x\")", "a=(\"x\"\"y\")", "a=\"x", "a=\"\x01\"",
		"a=\"\\n\"", "a=:YQ:", "a=:YQ==", "a=1.5", "a=1234567890123456",
		"a=-", "a=?2", "a=1;B=2", "a=1;b=2;b=3", "a=1;",
		"a=\"\xc3\xa9\"", "a=da2bdc6f, =1", "a= 1" };
	struct field_members all;

	for (size_t i = 0; i < COUNT(bad); i++)
		cr_expect_not(
		    field_dictionary(arena, bad[i], &all), "%s", bad[i]);
}

/* Somebody else's request must neither crash us nor take our memory. */
Test(sig_field, what_is_too_much_is_refused)
{
	char text[4096] = "a=(";
	struct field_members all;
	struct field_member list;
	size_t len = strlen(text);

	for (size_t i = 0; i <= FIELD_ITEMS_MAX; i++, len += 4)
		memcpy(text + len, "\"x\" ", 5);
	memcpy(text + len, ")", 2);
	cr_expect_not(field_dictionary(arena, text, &all));
	cr_expect_not(field_list(arena, text + 2, &list));
	len = 0;
	for (int i = 0; i <= FIELD_PARAMS_MAX; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
		    "%sp%d=1", i ? ";" : "a=1;", i);
	cr_expect_not(field_dictionary(arena, text, &all));
	len = 0;
	for (int i = 0; i <= FIELD_MEMBERS_MAX; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
		    "%sm%d=1", i ? ", " : "", i);
	cr_expect_not(field_dictionary(arena, text, &all));
}
