/*
 * http_chars -- the classes of characters of the HTTP grammar.
 *
 * Internal to the parser (http_parse.c, http_chunks.c).
 */
#ifndef POSTRIDER_HTTP_CHARS_H
#define POSTRIDER_HTTP_CHARS_H

#include "common/base/base.h"

static inline bool http_is_digit(unsigned char c)
{
	return c >= '0' && c <= '9';
}

static inline bool http_is_alpha(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static inline bool http_is_token(unsigned char c)
{
	return http_is_alpha(c) || http_is_digit(c) ||
	    (c != 0 && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

/* What may stand in a value: no controls but the tab. */
static inline bool http_is_value(unsigned char c)
{
	return c == '\t' || (c >= 0x20 && c != 0x7f);
}

static inline int http_hex(unsigned char c)
{
	if (http_is_digit(c))
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static inline char http_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

#endif
