#include "outboxd/fediverse_keys.h"

#include <utlist.h>

struct known {
	char actor[40]; /* a UUID */
	int64_t made_at;
	struct pkey *key;
	struct known *prev, *next;
};

/* The one used last comes first. */
struct fediverse_keys {
	struct known *first;
	size_t count;
};

struct fediverse_keys *fediverse_keys_new(void)
{
	struct fediverse_keys *keys = calloc(1, sizeof(*keys));

	if (!keys)
		abort();
	return keys;
}

static void forget(struct fediverse_keys *keys, struct known *known)
{
	DL_DELETE(keys->first, known);
	keys->count--;
	pkey_free(&known->key);
	free(known);
}

void fediverse_keys_free(struct fediverse_keys **keys)
{
	if (!*keys)
		return;
	while ((*keys)->first)
		forget(*keys, (*keys)->first);
	free(*keys);
	*keys = NULL;
}

static struct known *find(struct fediverse_keys *keys, const char *actor)
{
	struct known *known;

	DL_FOREACH(keys->first, known)
	if (strcmp(known->actor, actor) == 0)
		return known;
	return NULL;
}

struct pkey *fediverse_keys_get(
    struct fediverse_keys *keys, const char *actor, int64_t made_at)
{
	struct known *known = find(keys, actor);

	if (!known || known->made_at != made_at)
		return NULL;
	DL_DELETE(keys->first, known);
	DL_PREPEND(keys->first, known);
	return pkey_share(known->key);
}

void fediverse_keys_put(struct fediverse_keys *keys, const char *actor,
    int64_t made_at, const struct pkey *key)
{
	struct known *known = find(keys, actor);

	if (known && known->made_at >= made_at)
		return;
	if (known)
		forget(keys, known);
	else if (keys->count == FEDIVERSE_KEYS_MAX)
		forget(keys, keys->first->prev);
	known = calloc(1, sizeof(*known));
	if (!known)
		abort();
	snprintf(known->actor, sizeof(known->actor), "%s", actor);
	known->made_at = made_at;
	known->key = pkey_share(key);
	DL_PREPEND(keys->first, known);
	keys->count++;
}
