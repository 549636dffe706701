/*
 * utf8 -- is it well-formed, and how long is it. Any thread, no state.
 */
#ifndef POSTRIDER_UTF8_H
#define POSTRIDER_UTF8_H

#include "common/base/base.h"

/* Length of the well-formed sequence (1..4) at text, or 0. left > 0. */
static inline size_t utf8_sequence(const unsigned char *text, size_t left)
{
	unsigned char c = text[0];

	if (c < 0x80)
		return 1;
	if (c < 0xc2 || c > 0xf4 || left < 2 || (text[1] & 0xc0) != 0x80)
		return 0;
	if (c < 0xe0)
		return 2;
	if ((c == 0xe0 && text[1] < 0xa0) || (c == 0xed && text[1] > 0x9f) ||
	    (c == 0xf0 && text[1] < 0x90) || (c == 0xf4 && text[1] > 0x8f))
		return 0;
	if (left < 3 || (text[2] & 0xc0) != 0x80)
		return 0;
	if (c < 0xf0)
		return 3;
	return left >= 4 && (text[3] & 0xc0) == 0x80 ? 4 : 0;
}

#endif
