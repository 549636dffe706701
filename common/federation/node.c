#include "common/federation/node.h"

bool node_load(struct arena *arena, const char *origin, const char *key_file,
    struct node *node, struct err *err)
{
	struct node loaded = { .key = NULL };

	if (!origin_parse(arena, origin, &loaded.origin))
		return err_set(err, ERR_INVALID,
		    "origin %s is none: https://host, or http://localhost",
		    origin);
	if (strcmp(loaded.origin.text, origin) != 0)
		return err_set(err, ERR_INVALID, "origin must be written %s",
		    loaded.origin.text);
	if (!node_key_load(key_file, &loaded.key, err))
		return false;
	*node = loaded;
	return true;
}
