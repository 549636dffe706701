#include "common/base/json_names.h"

/* Up to here comparing all pairs is cheaper than sorting. */
enum { PAIRS_MAX = 24 };

void json_names_done(struct json_names *names)
{
	free(names->items);
	*names = (struct json_names){ 0 };
}

void json_names_push(struct json_names *names, struct bytes name)
{
	if (names->count == names->room) {
		names->room = names->room ? names->room * 2 : 64;
		names->items = reallocarray(
		    names->items, names->room, sizeof(*names->items));
		if (!names->items)
			abort();
	}
	names->items[names->count++] = name;
}

static int compare(const void *left, const void *right)
{
	const struct bytes *a = left;
	const struct bytes *b = right;

	if (a->len != b->len)
		return a->len < b->len ? -1 : 1;
	return a->len ? memcmp(a->data, b->data, a->len) : 0;
}

static bool has_equal_pair(const struct bytes *items, size_t count)
{
	for (size_t i = 1; i < count; i++)
		for (size_t k = 0; k < i; k++)
			if (compare(&items[i], &items[k]) == 0)
				return true;
	return false;
}

static bool has_equal_neighbours(struct bytes *items, size_t count)
{
	qsort(items, count, sizeof(*items), compare);
	for (size_t i = 1; i < count; i++)
		if (compare(&items[i - 1], &items[i]) == 0)
			return true;
	return false;
}

bool json_names_pop(struct json_names *names, size_t first)
{
	size_t count = names->count - first;
	struct bytes *items;

	names->count = first;
	if (count < 2)
		return false;
	items = names->items + first;
	return count <= PAIRS_MAX ? has_equal_pair(items, count)
				  : has_equal_neighbours(items, count);
}

static unsigned hex4(const unsigned char *p)
{
	unsigned value = 0;

	for (int i = 0; i < 4; i++) {
		unsigned c = p[i];

		value =
		    value << 4 | (c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
	}
	return value;
}

static size_t put_utf8(unsigned char *out, unsigned code)
{
	if (code < 0x80) {
		out[0] = (unsigned char)code;
		return 1;
	}
	if (code < 0x800) {
		out[0] = (unsigned char)(0xc0 | code >> 6);
		out[1] = (unsigned char)(0x80 | (code & 0x3f));
		return 2;
	}
	if (code < 0x10000) {
		out[0] = (unsigned char)(0xe0 | code >> 12);
		out[1] = (unsigned char)(0x80 | (code >> 6 & 0x3f));
		out[2] = (unsigned char)(0x80 | (code & 0x3f));
		return 3;
	}
	out[0] = (unsigned char)(0xf0 | code >> 18);
	out[1] = (unsigned char)(0x80 | (code >> 12 & 0x3f));
	out[2] = (unsigned char)(0x80 | (code >> 6 & 0x3f));
	out[3] = (unsigned char)(0x80 | (code & 0x3f));
	return 4;
}

/* At \uXXXX: its character, with the second half of a pair if there is one. */
static unsigned code_at(const unsigned char **p, const unsigned char *end)
{
	unsigned code = hex4(*p + 2);
	unsigned low;

	*p += 6;
	if (code < 0xd800 || code > 0xdbff || end - *p < 6 || (*p)[0] != '\\' ||
	    (*p)[1] != 'u')
		return code;
	low = hex4(*p + 2);
	if (low < 0xdc00 || low > 0xdfff)
		return code;
	*p += 6;
	return 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
}

static unsigned char short_escape(unsigned char c)
{
	switch (c) {
	case 'b':
		return '\b';
	case 'f':
		return '\f';
	case 'n':
		return '\n';
	case 'r':
		return '\r';
	case 't':
		return '\t';
	default:
		return c;
	}
}

struct bytes json_unescape(struct arena *arena, struct bytes literal)
{
	const unsigned char *p = literal.data;
	const unsigned char *end = p + literal.len;
	unsigned char *text = arena_alloc(arena, literal.len + 1);
	size_t len = 0;

	while (p < end) {
		if (*p != '\\') {
			text[len++] = *p++;
		} else if (p[1] == 'u') {
			len += put_utf8(text + len, code_at(&p, end));
		} else {
			text[len++] = short_escape(p[1]);
			p += 2;
		}
	}
	return (struct bytes){ text, len };
}
