/*
 * sync_members -- the members of a stored payload, each as its own text.
 *
 * A payload is what we wrote ourselves ("a":...,"b":..., without braces): it
 * is cut, not parsed, so that every value leaves with the bytes it was relayed
 * with. Any thread.
 */
#ifndef POSTRIDER_SYNC_MEMBERS_H
#define POSTRIDER_SYNC_MEMBERS_H

#include "common/base/arena.h"

struct sync_member {
	struct bytes name; /* without quotes */
	struct bytes value;
};

struct sync_members {
	struct sync_member *list;
	size_t count;
};

/* text may also be an object, with its braces. */
struct sync_members sync_members_of(struct arena *arena, struct bytes text);
const struct sync_member *sync_member_find(
    const struct sync_members *members, const char *name);
bool sync_member_is(const struct sync_member *member, const char *name);

/* A text value as text (our own ids and origins: nothing is escaped). */
const char *sync_member_text(
    struct arena *arena, const struct sync_member *member);

#endif
