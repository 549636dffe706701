/*
 * json_scan -- the strict look at a JSON text before json-c reads it.
 *
 * One pass without recursion: grammar, UTF-8, depth, duplicate and forbidden
 * member names. Behind it json-c cannot fail and no name is cut short: where
 * json-c would end a name at U+0000 or repair half a surrogate pair, the copy
 * it gets is changed so that readers refuse that text (U+0000 in a value) or
 * cannot name that member (U+FFFF in a name). Integers beyond 64 bits become
 * reals, where json-c would take the nearest it has.
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
