#include "common/chat/profile_text.h"

#include "common/base/json.h"
#include "common/base/utf8.h"
#include "common/chat/user.h"

/* Code points, the last one included. */
struct span {
	uint32_t first, last;
};

static const struct span unseen[] = {
	{ 0x00, 0x1f },			/* controls */
	{ 0x7f, 0x9f }, { 0xad, 0xad }, /* soft hyphen */
	{ 0x34f, 0x34f },		/* grapheme joiner */
	{ 0x61c, 0x61c },		/* Arabic letter mark */
	{ 0x115f, 0x1160 },		/* Hangul fillers */
	{ 0x17b4, 0x17b5 }, { 0x180b, 0x180e },
	{ 0x200b, 0x200b }, /* zero-width space */
	{ 0x200e, 0x200f }, /* direction marks */
	{ 0x2028, 0x202e }, /* separators, embeddings, overrides */
	{ 0x2060, 0x206f }, /* word joiner, isolates */
	{ 0x3164, 0x3164 }, { 0xfeff, 0xfeff }, { 0xffa0, 0xffa0 },
	{ 0xfff9, 0xfffb },
	{ 0xe0000, 0xe0fff }, /* tags, variation selectors */
};

/* Where a joiner or non-joiner belongs to the writing. */
static const struct span joined[] = {
	{ 0x600, 0x8ff },   /* Arabic and its neighbours */
	{ 0x900, 0xdff },   /* Indic scripts */
	{ 0x2190, 0x2bff }, /* symbols that emoji are made of */
	{ 0xfe0f, 0xfe0f },
	{ 0x1f000, 0x1faff },
};

static bool is_in(const struct span *spans, size_t count, uint32_t point)
{
	for (size_t i = 0; i < count; i++)
		if (point >= spans[i].first && point <= spans[i].last)
			return true;
	return false;
}

static bool is_shown(uint32_t point, uint32_t before)
{
	if (point == 0x200c || point == 0x200d)
		return is_in(joined, COUNT(joined), before);
	return !is_in(unseen, COUNT(unseen), point);
}

/* text is well-formed. */
static uint32_t point_at(const unsigned char *text, size_t len)
{
	static const unsigned char lead[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
	uint32_t point = text[0] & lead[len];

	for (size_t i = 1; i < len; i++)
		point = point << 6 | (text[i] & 0x3f);
	return point;
}

static size_t sequence_at(const char *text)
{
	size_t len = utf8_sequence((const unsigned char *)text, strlen(text));

	return len ? len : 1;
}

static const char *null_if_empty(const char *text)
{
	return text && *text ? text : NULL;
}

const char *text_cut(struct arena *arena, const char *text, size_t max)
{
	const char *end = text;
	size_t units = 0;

	if (!null_if_empty(text))
		return NULL;
	while (*end) {
		size_t len = sequence_at(end);

		units += len == 4 ? 2 : 1;
		if (units > max)
			break;
		end += len;
	}
	return null_if_empty(arena_textn(arena, text, (size_t)(end - text)));
}

const char *name_neutral(struct arena *arena, const char *name)
{
	size_t room = name ? strlen(name) : 0;
	char *kept = arena_alloc(arena, room + 1);
	uint32_t before = 0;
	size_t end = 0;

	for (size_t at = 0, len; at < room; at += len) {
		uint32_t point;

		len = sequence_at(name + at);
		point = point_at((const unsigned char *)name + at, len);
		if (!is_shown(point, before))
			continue;
		memcpy(kept + end, name + at, len);
		end += len;
		before = point;
	}
	return text_cut(arena, json_trim(arena, kept), DISPLAY_NAME_MAX);
}

bool is_accent_color(const char *color)
{
	return color[0] == '#' && strlen(color) == 7 &&
	    strspn(color + 1, "0123456789abcdefABCDEF") == 6;
}

bool is_avatar_color(const char *color)
{
	return strcmp(avatar_color_pick(color), color) == 0;
}

bool is_web_url(const char *text)
{
	return strncmp(text, "http://", 7) == 0 ||
	    strncmp(text, "https://", 8) == 0;
}

const char *asset_url(
    struct arena *arena, const char *asset, const char *origin)
{
	if (!null_if_empty(asset) || strlen(asset) > ASSET_MAX)
		return NULL;
	if (is_web_url(asset))
		return asset;
	if (strpbrk(asset, "/\\:?#") || strstr(asset, ".."))
		return NULL;
	return arena_printf(arena, "%s/api/uploads/%s", origin, asset);
}
