#include <criterion/criterion.h>

#include "common/base/buf.h"

static void fill(struct buf *buf)
{
	buf_text(buf, "one ");
	buf_char(buf, '2');
	buf_printf(buf, " %s %d", "three", 4);
	buf_int(buf, INT64_MIN);
	buf_int(buf, 0);
	buf_int(buf, INT64_MAX);
	buf_add(buf, "\0x", 2);
}

static const char filled[] =
    "one 2 three 4-922337203685477580809223372036854775807\0x";

Test(buf, holds_what_was_added_with_and_without_an_arena)
{
	struct arena *arena = arena_new();
	struct arena *arenas[] = { NULL, arena };

	for (size_t i = 0; i < COUNT(arenas); i++) {
		struct buf buf;

		buf_init(&buf, arenas[i], 1000);
		cr_expect_str_eq(buf.data, "");
		fill(&buf);
		cr_assert_eq(buf.len, sizeof(filled) - 1);
		cr_expect_arr_eq(buf.data, filled, sizeof(filled));
		cr_expect(buf_ok(&buf));
		buf_done(&buf);
	}
	arena_free(&arena);
}

Test(buf, what_would_pass_the_limit_is_dropped_and_marked)
{
	struct buf buf;

	buf_init(&buf, NULL, 5);
	buf_text(&buf, "12345");
	cr_expect(buf_ok(&buf));
	buf_text(&buf, "6");
	cr_expect_not(buf_ok(&buf));
	buf_printf(&buf, "%d", 7);
	cr_expect_str_eq(buf.data, "12345");
	buf_clear(&buf);
	cr_expect(buf_ok(&buf));
	cr_expect_str_eq(buf.data, "");
	buf_printf(&buf, "%s", "123456");
	cr_expect_not(buf_ok(&buf));
	buf_done(&buf);
}

Test(buf, nothing_follows_what_did_not_fit)
{
	struct buf buf;

	buf_init(&buf, NULL, 4);
	buf_text(&buf, "12");
	buf_text(&buf, "345");
	buf_text(&buf, "6");
	cr_expect_str_eq(buf.data, "12");
	buf_done(&buf);
}

Test(buf, drop_forgets_the_front)
{
	struct buf buf;

	buf_init(&buf, NULL, 1 << 20);
	for (int i = 0; i < 10000; i++)
		buf_printf(&buf, "%d,", i);
	buf_drop(&buf, strlen("0,1,2,"));
	cr_expect_eq(strncmp(buf.data, "3,4,", 4), 0);
	buf_drop(&buf, buf.len);
	cr_expect_str_eq(buf.data, "");
	cr_expect_eq(buf.len, 0);
	buf_done(&buf);
}
