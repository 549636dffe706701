#include <stdarg.h>

#include "common/base/arena.h"

enum { BLOCK_MIN = 8 << 10, BLOCK_MAX = 256 << 10, ALIGN = 16 };

struct block {
	struct block *older;
	size_t size; /* of data */
	size_t used;
	_Alignas(ALIGN) unsigned char data[];
};

struct ending {
	struct ending *older;
	void (*call)(void *arg);
	void *arg;
};

struct arena {
	struct block *newest;
	struct ending *endings;
	size_t held;
};

static struct block *block_add(struct arena *arena, size_t size)
{
	struct block *block = malloc(sizeof(*block) + size);

	if (!block)
		abort();
	block->older = arena->newest;
	block->size = size;
	block->used = 0;
	arena->newest = block;
	arena->held += sizeof(*block) + size;
	return block;
}

static size_t next_size(const struct arena *arena, size_t need)
{
	size_t size = BLOCK_MIN;

	if (arena->newest && arena->newest->size >= BLOCK_MIN)
		size = arena->newest->size * 2;
	if (size > BLOCK_MAX)
		size = BLOCK_MAX;
	return size < need ? need : size;
}

struct arena *arena_new(void)
{
	struct arena *arena = calloc(1, sizeof(*arena));

	if (!arena)
		abort();
	return arena;
}

static void blocks_free(struct arena *arena, const struct block *keep)
{
	struct block *block = arena->newest;

	while (block) {
		struct block *older = block->older;

		if (block != keep) {
			arena->held -= sizeof(*block) + block->size;
			free(block);
		}
		block = older;
	}
}

static void endings_run(struct arena *arena)
{
	struct ending *ending = arena->endings;

	arena->endings = NULL;
	for (; ending; ending = ending->older)
		ending->call(ending->arg);
}

/* The variable is cleared first: it may live in the arena itself. */
void arena_free(struct arena **arena)
{
	struct arena *gone = *arena;

	if (!gone)
		return;
	endings_run(gone);
	*arena = NULL;
	blocks_free(gone, NULL);
	free(gone);
}

void arena_reset(struct arena *arena)
{
	struct block *keep = NULL;

	endings_run(arena);
	for (struct block *b = arena->newest; b; b = b->older)
		if (b->size <= BLOCK_MAX && (!keep || b->size > keep->size))
			keep = b;
	blocks_free(arena, keep);
	arena->newest = keep;
	if (keep) {
		keep->older = NULL;
		keep->used = 0;
	}
}

/* Not zeroed: for texts, which are written at once. */
static void *take(struct arena *arena, size_t size)
{
	struct block *block = arena->newest;
	unsigned char *data;

	if (size > SIZE_MAX / 2)
		abort();
	size = (size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
	if (!block || block->size - block->used < size)
		block = block_add(arena, next_size(arena, size));
	data = block->data + block->used;
	block->used += size;
	return data;
}

void *arena_alloc(struct arena *arena, size_t size)
{
	return memset(take(arena, size), 0, size);
}

void *arena_array(struct arena *arena, size_t count, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(count, size, &bytes))
		abort();
	return arena_alloc(arena, bytes);
}

void arena_at_end(struct arena *arena, void (*call)(void *arg), void *arg)
{
	struct ending *ending = arena_alloc(arena, sizeof(*ending));

	*ending = (struct ending){ arena->endings, call, arg };
	arena->endings = ending;
}

char *arena_textn(struct arena *arena, const void *text, size_t len)
{
	char *copy = take(arena, len + 1);

	if (len)
		memcpy(copy, text, len);
	copy[len] = '\0';
	return copy;
}

char *arena_text(struct arena *arena, const char *text)
{
	return text ? arena_textn(arena, text, strlen(text)) : NULL;
}

char *arena_printf(struct arena *arena, const char *format, ...)
{
	va_list args;
	va_list again;
	char *text;
	int len;

	assert(format);
	va_start(args, format);
	va_copy(again, args);
	len = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (len < 0)
		abort();
	text = take(arena, (size_t)len + 1);
	vsnprintf(text, (size_t)len + 1, format, again);
	va_end(again);
	return text;
}

size_t arena_held_bytes(const struct arena *arena)
{
	return arena->held;
}
