#include <criterion/criterion.h>

#include "common/base/arena.h"

Test(arena, memory_is_zeroed_and_aligned_also_after_a_reset)
{
	struct arena *arena = arena_new();

	for (int round = 0; round < 3; round++) {
		for (size_t size = 1; size < 3000; size += 37) {
			unsigned char *p = arena_alloc(arena, size);

			cr_assert_eq((uintptr_t)p % 16, 0);
			for (size_t i = 0; i < size; i++)
				cr_assert_eq(p[i], 0);
			memset(p, 0xaa, size);
		}
		arena_reset(arena);
	}
	arena_free(&arena);
	cr_expect_null(arena);
}

Test(arena, pieces_do_not_overlap)
{
	struct arena *arena = arena_new();
	int64_t *pieces[500];

	for (int i = 0; i < 500; i++) {
		pieces[i] = arena_array(arena, 13, sizeof(int64_t));
		for (int k = 0; k < 13; k++)
			pieces[i][k] = i;
	}
	for (int i = 0; i < 500; i++)
		for (int k = 0; k < 13; k++)
			cr_assert_eq(pieces[i][k], i);
	arena_free(&arena);
}

Test(arena, a_reset_gives_large_blocks_back_and_keeps_one)
{
	struct arena *arena = arena_new();
	size_t held;

	arena_alloc(arena, 100);
	arena_alloc(arena, 10 << 20);
	cr_expect_gt(arena_held_bytes(arena), 10 << 20);
	arena_reset(arena);
	held = arena_held_bytes(arena);
	cr_expect_gt(held, 0);
	cr_expect_leq(held, (256 << 10) + 64);
	arena_alloc(arena, 100);
	cr_expect_eq(arena_held_bytes(arena), held, "the block is used again");
	arena_free(&arena);
}

Test(arena, texts_are_copies)
{
	struct arena *arena = arena_new();
	char text[] = "hello";
	char *copy = arena_text(arena, text);
	char *part = arena_textn(arena, text, 2);

	text[0] = 'j';
	cr_expect_str_eq(copy, "hello");
	cr_expect_str_eq(part, "he");
	cr_expect_null(arena_text(arena, NULL));
	cr_expect_str_eq(arena_printf(arena, "%d-%s", 7, "x"), "7-x");
	arena_free(&arena);
}

struct note {
	char *seen;
	char letter;
};

static void write_down(void *arg)
{
	struct note *note = arg;

	note->seen[strlen(note->seen)] = note->letter;
}

Test(arena, endings_run_once_the_latest_first)
{
	struct arena *arena = arena_new();
	char seen[8] = "";
	struct note a = { seen, 'a' };
	struct note b = { seen, 'b' };

	arena_at_end(arena, write_down, &a);
	arena_at_end(arena, write_down, &b);
	arena_reset(arena);
	cr_expect_str_eq(seen, "ba");
	arena_reset(arena);
	cr_expect_str_eq(seen, "ba");
	arena_at_end(arena, write_down, &a);
	arena_free(&arena);
	cr_expect_str_eq(seen, "baa");
}
