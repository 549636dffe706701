/*
 * id -- ids of this node: positive 63-bit snowflakes, decimal text outside.
 *
 * They are made in the database (function snowflake()); here they are only
 * read and written. Foreign ids are opaque text and never pass through here.
 */
#ifndef POSTRIDER_ID_H
#define POSTRIDER_ID_H

#include "common/base/arena.h"

/* Digits only, no sign, no leading zero, 1..2^63-1; else 0. */
int64_t id_parse(const char *text);
const char *id_text(struct arena *arena, int64_t id);

#endif
