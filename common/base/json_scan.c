#include "common/base/json.h"
#include "common/base/json_names.h"
#include "common/base/json_scan.h"
#include "common/base/utf8.h"

/* Any integer of so many digits fits 64 bits, with its sign. */
enum { INT_DIGITS_MAX = 18 };

enum state {
	WANT_VALUE,
	WANT_VALUE_OR_END,
	WANT_NAME,
	WANT_NAME_OR_END,
	WANT_COMMA_OR_END,
	DONE
};

/* An open object or array. */
struct frame {
	bool is_object;
	bool in_constructor; /* the value of a member of that name */
	size_t first_name;
};

struct scan {
	struct arena *arena;
	struct err *err;
	const unsigned char *start;
	const unsigned char *p;
	const unsigned char *end;
	unsigned char *copy; /* made when something must be changed */
	struct json_names names;
	struct frame frames[JSON_DEPTH_MAX];
	int depth;
	size_t values;
	bool constructor; /* the member whose value comes next */
	bool forbidden;
	bool duplicate;
};

/* What ends the quick walk through a string. */
static const bool special[256] = {
	[0 ... 0x1f] = true,
	['"'] = true,
	['\\'] = true,
	[0x80 ... 0xff] = true,
};

static bool bad(struct scan *s, const unsigned char *at, const char *what)
{
	if (at >= s->end)
		return err_set(
		    s->err, ERR_INVALID, "Unexpected end of JSON input");
	return err_set(s->err, ERR_INVALID, "%s in JSON at position %td", what,
	    at - s->start);
}

static void skip_space(struct scan *s)
{
	while (s->p < s->end &&
	    (*s->p == ' ' || *s->p == '\n' || *s->p == '\r' || *s->p == '\t'))
		s->p++;
}

/* ---- strings ---- */

/* Replaces what stands at p in what json-c gets to see. */
static void change(struct scan *s, const unsigned char *p, const char *text)
{
	size_t len = (size_t)(s->end - s->start);

	if (!s->copy)
		s->copy = (unsigned char *)arena_textn(s->arena, s->start, len);
	memcpy(s->copy + (p - s->start), text, strlen(text));
}

static bool is_hex(unsigned char c)
{
	return (c >= '0' && c <= '9') ||
	    ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

/* The unit of \uXXXX at p, or -1. */
static int unit_at(const struct scan *s, const unsigned char *p)
{
	int unit = 0;

	if (s->end - p < 6 || p[0] != '\\' || p[1] != 'u')
		return -1;
	for (int i = 2; i < 6; i++) {
		if (!is_hex(p[i]))
			return -1;
		unit = unit << 4 |
		    (p[i] <= '9' ? p[i] - '0' : (p[i] | 0x20) - 'a' + 10);
	}
	return unit;
}

static bool scan_unit(struct scan *s, bool is_name)
{
	int unit = unit_at(s, s->p);
	int next;

	if (unit < 0)
		return bad(s, s->p + 2, "Bad Unicode escape");
	if (unit >= 0xd800 && unit <= 0xdbff) {
		next = unit_at(s, s->p + 6);
		if (next >= 0xdc00 && next <= 0xdfff) {
			s->p += 12;
			return true;
		}
	}
	if (unit >= 0xd800 && unit <= 0xdfff)
		change(s, s->p + 2, is_name ? "ffff" : "0000");
	else if (unit == 0 && is_name)
		change(s, s->p + 2, "ffff");
	s->p += 6;
	return true;
}

static bool scan_escape(struct scan *s, bool is_name)
{
	if (s->end - s->p < 2)
		return bad(s, s->end, "");
	if (s->p[1] == 'u')
		return scan_unit(s, is_name);
	if (!strchr("\"\\/bfnrt", s->p[1]) || !s->p[1])
		return bad(s, s->p + 1, "Bad escaped character");
	s->p += 2;
	return true;
}

static bool scan_special(struct scan *s, bool is_name, bool *escaped)
{
	size_t len;

	if (*s->p == '\\') {
		*escaped = true;
		return scan_escape(s, is_name);
	}
	if (*s->p < 0x20)
		return bad(s, s->p, "Bad control character in string literal");
	len = utf8_sequence(s->p, (size_t)(s->end - s->p));
	if (!len)
		return err_set(s->err, ERR_INVALID,
		    "Invalid UTF-8 in JSON at position %td", s->p - s->start);
	s->p += len;
	return true;
}

/* At the opening quote; literal is what lies between the quotes. */
static bool scan_string(
    struct scan *s, bool is_name, struct bytes *literal, bool *escaped)
{
	const unsigned char *from = ++s->p;

	*escaped = false;
	for (;;) {
		while (s->p < s->end && !special[*s->p])
			s->p++;
		if (s->p == s->end)
			return bad(s, s->end, "");
		if (*s->p == '"')
			break;
		if (!scan_special(s, is_name, escaped))
			return false;
	}
	*literal = (struct bytes){ from, (size_t)(s->p - from) };
	s->p++;
	return true;
}

static bool is_text(struct bytes name, const char *text)
{
	return name.len == strlen(text) &&
	    memcmp(name.data, text, name.len) == 0;
}

static bool scan_name(struct scan *s)
{
	struct frame *frame = &s->frames[s->depth - 1];
	struct bytes name;
	bool escaped;

	if (!scan_string(s, true, &name, &escaped))
		return false;
	if (escaped)
		name = json_unescape(s->arena, name);
	json_names_push(&s->names, name);
	s->constructor = is_text(name, "constructor");
	if (is_text(name, "__proto__") ||
	    (frame->in_constructor && is_text(name, "prototype")))
		s->forbidden = true;
	skip_space(s);
	if (s->p == s->end || *s->p != ':')
		return bad(s, s->p, "Expected ':' after property name");
	s->p++;
	return true;
}

/* ---- numbers and words ---- */

static bool digits(struct scan *s)
{
	const unsigned char *from = s->p;

	while (s->p < s->end && *s->p >= '0' && *s->p <= '9')
		s->p++;
	return s->p > from;
}

static bool scan_fraction(struct scan *s)
{
	if (s->p < s->end && *s->p == '.') {
		s->p++;
		if (!digits(s))
			return bad(s, s->p, "Unterminated fractional number");
	}
	if (s->p < s->end && (*s->p | 0x20) == 'e') {
		s->p++;
		if (s->p < s->end && (*s->p == '+' || *s->p == '-'))
			s->p++;
		if (!digits(s))
			return bad(
			    s, s->p, "Exponent part is missing a number");
	}
	return true;
}

static bool scan_number(struct scan *s)
{
	const unsigned char *from;

	if (*s->p == '-')
		s->p++;
	from = s->p;
	if (s->p < s->end && *s->p == '0')
		s->p++;
	else if (!digits(s))
		return bad(s, s->p, "No number after minus sign");
	if (s->p < s->end && (*s->p == '.' || (*s->p | 0x20) == 'e'))
		return scan_fraction(s);
	/*
	 * json-c would make the largest integer of it; with an exponent it
	 * is a real number, which has fewer digits than stay.
	 */
	if (s->p - from > INT_DIGITS_MAX)
		change(s, s->p - 2, "e2");
	return true;
}

static bool scan_word(struct scan *s, const char *word)
{
	for (; *word; word++, s->p++)
		if (s->p == s->end || *s->p != (unsigned char)*word)
			return bad(s, s->p, "Unexpected token");
	return true;
}

/* ---- objects and arrays ---- */

static bool open_frame(struct scan *s, enum state *state)
{
	bool is_object = *s->p == '{';

	if (s->depth == JSON_DEPTH_MAX)
		return bad(s, s->p, "Nesting too deep");
	s->frames[s->depth++] = (struct frame){
		.is_object = is_object,
		.in_constructor = is_object && s->constructor,
		.first_name = s->names.count,
	};
	s->constructor = false;
	s->p++;
	*state = is_object ? WANT_NAME_OR_END : WANT_VALUE_OR_END;
	return true;
}

static enum state close_frame(struct scan *s)
{
	struct frame *frame = &s->frames[--s->depth];

	if (frame->is_object && json_names_pop(&s->names, frame->first_name))
		s->duplicate = true;
	s->p++;
	return s->depth ? WANT_COMMA_OR_END : DONE;
}

static bool scan_value(struct scan *s, enum state *state)
{
	struct bytes literal;
	bool escaped;

	/* Each costs many times its text; no honest body holds so many. */
	if (++s->values > JSON_VALUES_MAX)
		return bad(s, s->p, "Too many values");
	*state = s->depth ? WANT_COMMA_OR_END : DONE;
	switch (*s->p) {
	case '{':
	case '[':
		return open_frame(s, state);
	case '"':
		return scan_string(s, false, &literal, &escaped);
	case 't':
		return scan_word(s, "true");
	case 'f':
		return scan_word(s, "false");
	case 'n':
		return scan_word(s, "null");
	case '-':
	case '0' ... '9':
		return scan_number(s);
	default:
		return bad(s, s->p, "Unexpected token");
	}
}

static bool scan_comma(struct scan *s, enum state *state)
{
	bool is_object = s->frames[s->depth - 1].is_object;

	if (*s->p == ',') {
		s->p++;
		*state = is_object ? WANT_NAME : WANT_VALUE;
		return true;
	}
	if (*s->p == (is_object ? '}' : ']')) {
		*state = close_frame(s);
		return true;
	}
	return bad(s, s->p,
	    is_object ? "Expected ',' or '}' after property value"
		      : "Expected ',' or ']' after array element");
}

static bool scan_step(struct scan *s, enum state *state)
{
	switch (*state) {
	case WANT_VALUE_OR_END:
		if (*s->p == ']') {
			*state = close_frame(s);
			return true;
		}
		return scan_value(s, state);
	case WANT_VALUE:
		return scan_value(s, state);
	case WANT_NAME_OR_END:
		if (*s->p == '}') {
			*state = close_frame(s);
			return true;
		}
		if (*s->p != '"')
			return bad(s, s->p, "Expected property name or '}'");
		*state = WANT_VALUE;
		return scan_name(s);
	case WANT_NAME:
		if (*s->p != '"')
			return bad(
			    s, s->p, "Expected double-quoted property name");
		*state = WANT_VALUE;
		return scan_name(s);
	case WANT_COMMA_OR_END:
		return scan_comma(s, state);
	case DONE:
		break;
	}
	return err_set(s->err, ERR_INVALID,
	    "Unexpected non-whitespace character after JSON at position %td",
	    s->p - s->start);
}

static bool scan_all(struct scan *s)
{
	enum state state = WANT_VALUE;

	for (skip_space(s); s->p < s->end; skip_space(s))
		if (!scan_step(s, &state))
			return false;
	if (state != DONE)
		return bad(s, s->end, "");
	if (s->forbidden)
		return err_set(s->err, ERR_INVALID,
		    "Object contains forbidden prototype property");
	if (s->duplicate)
		return err_set(s->err, ERR_INVALID,
		    "Object contains a duplicate property");
	return true;
}

bool json_scan(struct arena *arena, struct bytes text, struct bytes *clean,
    struct err *err)
{
	const unsigned char *start = text.data;
	struct scan s = { .arena = arena, .err = err };
	bool ok;

	if (text.len >= 3 && memcmp(start, "\xef\xbb\xbf", 3) == 0) {
		start += 3;
		text.len -= 3;
	}
	s.start = s.p = start;
	s.end = start + text.len;
	ok = scan_all(&s);
	json_names_done(&s.names);
	if (ok)
		*clean = (struct bytes){ s.copy ? s.copy : start, text.len };
	return ok;
}
