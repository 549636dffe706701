#include "outboxd/names.h"

enum { BUCKETS = 256 };

struct name {
	const char *text;
	void *thing;
	struct name *next;
};

struct names {
	struct arena *arena;
	size_t count;
	struct name *buckets[BUCKETS];
};

/* FNV-1a: short keys, and a peer cannot choose our ids. */
static size_t bucket_of(const char *text)
{
	uint64_t hash = 14695981039346656037u;

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 1099511628211u;
	return (hash ^ (hash >> 32)) % BUCKETS;
}

static const struct name *name_get(const struct names *names, const char *text)
{
	const struct name *name = names->buckets[bucket_of(text)];

	while (name && strcmp(name->text, text) != 0)
		name = name->next;
	return name;
}

struct names *names_new(struct arena *arena)
{
	struct names *names = ARENA_NEW(arena, struct names);

	names->arena = arena;
	return names;
}

void names_add(struct names *names, const char *text, void *thing)
{
	size_t place = bucket_of(text);
	struct name *name;

	if (name_get(names, text))
		return;
	name = ARENA_NEW(names->arena, struct name);
	*name = (struct name){ text, thing, names->buckets[place] };
	names->buckets[place] = name;
	names->count++;
}

void *names_find(const struct names *names, const char *text)
{
	const struct name *name = name_get(names, text);

	return name ? name->thing : NULL;
}

size_t names_count(const struct names *names)
{
	return names->count;
}
