#include "outboxd/blocks.h"

#include "outboxd/names.h"
#include "outboxd/reason.h"

struct blocks {
	struct arena *arena;
	struct names *names;
};

static const char *conversation_key(
    struct arena *arena, const struct entry *entry)
{
	return arena_printf(
	    arena, "c %s %s", entry->context_type, entry->context_id);
}

static const char *thing_key(struct arena *arena, const struct entry *entry)
{
	return arena_printf(
	    arena, "t %s %s", entry->context_type, entry->entity_id);
}

struct blocks *blocks_new(void)
{
	struct arena *arena = arena_new();
	struct blocks *blocks = calloc(1, sizeof(*blocks));

	if (!blocks)
		abort();
	blocks->arena = arena;
	blocks->names = names_new(arena);
	return blocks;
}

void blocks_free(struct blocks **blocks)
{
	if (!*blocks)
		return;
	arena_free(&(*blocks)->arena);
	free(*blocks);
	*blocks = NULL;
}

void blocks_clear(struct blocks *blocks)
{
	arena_reset(blocks->arena);
	blocks->names = names_new(blocks->arena);
}

void blocks_add(
    struct blocks *blocks, const struct entry *entry, const char *word)
{
	const char *key = thing_key(blocks->arena, entry);

	names_add(blocks->names, key, blocks);
	if (reason_class(entry->event_type, word) != REASON_CONVERSATION)
		return;
	key = conversation_key(blocks->arena, entry);
	names_add(blocks->names, key, blocks);
}

bool blocks_hit(
    const struct blocks *blocks, struct arena *arena, const struct entry *entry)
{
	if (names_count(blocks->names) == 0)
		return false;
	return names_find(blocks->names, thing_key(arena, entry)) ||
	    names_find(blocks->names, conversation_key(arena, entry));
}

bool blocks_full(const struct blocks *blocks)
{
	return names_count(blocks->names) >= BLOCKS_MAX;
}

bool blocks_any(const struct blocks *blocks)
{
	return names_count(blocks->names) > 0;
}
