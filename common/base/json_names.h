/*
 * json_names -- the member names of the objects that are being scanned.
 *
 * A stack: an object's names lie above those of the objects around it, and
 * leave when it closes; then they are compared, in O(n log n).
 *
 * Internal to json.
 */
#ifndef POSTRIDER_JSON_NAMES_H
#define POSTRIDER_JSON_NAMES_H

#include "common/base/arena.h"

struct json_names {
	struct bytes *items;
	size_t count;
	size_t room;
};

void json_names_done(struct json_names *names);
void json_names_push(struct json_names *names, struct bytes name);

/* Takes off all from first on; true when two of them were equal. */
bool json_names_pop(struct json_names *names, size_t first);

/* The text between the quotes of a valid literal, unescaped; a half pair
 * becomes three bytes that no valid name has. */
struct bytes json_unescape(struct arena *arena, struct bytes literal);

#endif
