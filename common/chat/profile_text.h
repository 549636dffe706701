/*
 * profile_text -- what may stand in a profile.
 *
 * Of texts that other nodes tell us, what could make a name look like another
 * is left out: direction marks, zero-width and control characters. What is too
 * long is cut between characters. Limits count UTF-16 units.
 *
 * Any thread; texts live in the arena.
 */
#ifndef POSTRIDER_PROFILE_TEXT_H
#define POSTRIDER_PROFILE_TEXT_H

#include "common/base/arena.h"

enum {
	DISPLAY_NAME_MAX = 32,
	BIO_MAX = 190,
	CUSTOM_STATUS_MAX = 128,
	ASSET_MAX = 2048
};

/* A name as we show it; NULL when nothing is left. */
const char *name_neutral(struct arena *arena, const char *name);
/* At most max units of it; NULL stays NULL, and nothing becomes NULL. */
const char *text_cut(struct arena *arena, const char *text, size_t max);

/* #rrggbb */
bool is_accent_color(const char *color);
/* Of the palette. */
bool is_avatar_color(const char *color);

bool is_web_url(const char *text);
/* Where an avatar or banner lies that a node names: an address as it is, a
 * bare file name in that node's uploads. NULL: nowhere. */
const char *asset_url(
    struct arena *arena, const char *asset, const char *origin);

#endif
