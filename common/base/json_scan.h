/*
 * json_scan -- the strict look at a JSON text before a tree is made of it.
 *
 * One pass without recursion: grammar, UTF-8, depth, duplicate and forbidden
 * member names. Behind it making the tree cannot fail. Half a surrogate pair
 * is changed in the copy that the tree is made of, so that readers refuse that
 * text (U+0000 in a value) or cannot name that member (U+FFFF in a name).
 * Integers beyond 64 bits become reals.
 *
 * Internal to json.
 */
#ifndef POSTRIDER_JSON_SCAN_H
#define POSTRIDER_JSON_SCAN_H

#include "common/base/arena.h"
#include "common/base/err.h"

/* clean is the text itself, or a changed copy in the arena. */
MUST_CHECK bool json_scan(struct arena *arena, struct bytes text,
    struct bytes *clean, struct err *err);

#endif
