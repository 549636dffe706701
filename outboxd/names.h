/*
 * names -- texts and what belongs to them, in an arena.
 *
 * Nothing is ever taken out; everything ends with the arena. One thread.
 */
#ifndef POSTRIDER_NAMES_H
#define POSTRIDER_NAMES_H

#include "common/base/arena.h"

struct names;

struct names *names_new(struct arena *arena);

/* name must live as long as the arena; the first thing of a name stays. */
void names_add(struct names *names, const char *name, void *thing);
void *names_find(const struct names *names, const char *name);
size_t names_count(const struct names *names);

#endif
