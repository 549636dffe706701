#include "outboxd/blocks.h"

#include "outboxd/names.h"
#include "outboxd/reason.h"

/* Event types that are about a thing of another event. */
struct about {
	const char *event_type;
	const char *member; /* of the payload, up to its value */
};

/* clang-format off */
static const struct about abouts[] = {
	{ "reaction_add",    "\"messageId\":\"" },
	{ "reaction_remove", "\"messageId\":\"" },
};
/* clang-format on */

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

static const char *thing_key(
    struct arena *arena, const struct entry *entry, const char *thing)
{
	return arena_printf(arena, "t %s %s", entry->context_type, thing);
}

/* What an event is about when that is another thing than its own: a text
 * member of its payload. In a text of somebody's the quotes are escaped. */
static const char *subject_of(struct arena *arena, const struct entry *entry)
{
	const char *at;

	for (size_t i = 0; i < COUNT(abouts); i++) {
		if (strcmp(abouts[i].event_type, entry->event_type) != 0)
			continue;
		at = strstr(entry->payload, abouts[i].member);
		if (!at)
			return entry->entity_id;
		at += strlen(abouts[i].member);
		return arena_textn(arena, at, strcspn(at, "\""));
	}
	return entry->entity_id;
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

static void block(struct blocks *blocks, const char *key)
{
	names_add(blocks->names, key, blocks);
}

void blocks_add(
    struct blocks *blocks, const struct entry *entry, const char *word)
{
	struct arena *arena = blocks->arena;

	block(blocks, thing_key(arena, entry, entry->entity_id));
	switch (reason_class(entry->event_type, word)) {
	case REASON_CONVERSATION:
		block(blocks, conversation_key(arena, entry));
		return;
	case REASON_MESSAGE:
		block(
		    blocks, thing_key(arena, entry, subject_of(arena, entry)));
		return;
	case REASON_ENTITY:
	case REASON_THERE:
	case REASON_NEVER:
		return;
	}
}

static bool is_blocked(const struct blocks *blocks, const char *key)
{
	return names_find(blocks->names, key) != NULL;
}

bool blocks_hit(
    const struct blocks *blocks, struct arena *arena, const struct entry *entry)
{
	const char *subject;

	if (names_count(blocks->names) == 0)
		return false;
	subject = subject_of(arena, entry);
	return is_blocked(blocks, thing_key(arena, entry, entry->entity_id)) ||
	    is_blocked(blocks, conversation_key(arena, entry)) ||
	    (subject != entry->entity_id &&
		is_blocked(blocks, thing_key(arena, entry, subject)));
}

bool blocks_full(const struct blocks *blocks)
{
	return names_count(blocks->names) >= BLOCKS_MAX;
}

bool blocks_any(const struct blocks *blocks)
{
	return names_count(blocks->names) > 0;
}
