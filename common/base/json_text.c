#include "common/base/json.h"
#include "common/base/utf8.h"

size_t json_units(const char *text)
{
	size_t units = 0;

	for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
		/* A lead byte is a unit, one of four bytes is two. */
		units += (*p & 0xc0) != 0x80;
		units += *p >= 0xf0;
	}
	return units;
}

/* ECMAScript's WhiteSpace and LineTerminator at p; its length, or 0. */
static size_t space_at(const unsigned char *p)
{
	if ((*p >= 0x09 && *p <= 0x0d) || *p == ' ')
		return 1;
	if (p[0] == 0xc2)
		return p[1] == 0xa0 ? 2 : 0;
	if (p[0] == 0xe1)
		return p[1] == 0x9a && p[2] == 0x80 ? 3 : 0;
	if (p[0] == 0xe2 && p[1] == 0x80)
		return (p[2] >= 0x80 && p[2] <= 0x8a) || p[2] == 0xa8 ||
			p[2] == 0xa9 || p[2] == 0xaf
		    ? 3
		    : 0;
	if (p[0] == 0xe2)
		return p[1] == 0x81 && p[2] == 0x9f ? 3 : 0;
	if (p[0] == 0xe3)
		return p[1] == 0x80 && p[2] == 0x80 ? 3 : 0;
	if (p[0] == 0xef)
		return p[1] == 0xbb && p[2] == 0xbf ? 3 : 0;
	return 0;
}

const char *json_trim(struct arena *arena, const char *text)
{
	const unsigned char *p = (const unsigned char *)text;
	const unsigned char *from;
	const unsigned char *to;
	size_t len;

	if (!text)
		return NULL;
	while ((len = space_at(p)) > 0)
		p += len;
	from = to = p;
	while (*p) {
		len = space_at(p);
		p += len ? len : utf8_sequence(p, 4) ? utf8_sequence(p, 4) : 1;
		if (!len)
			to = p;
	}
	return arena_textn(arena, from, (size_t)(to - from));
}
