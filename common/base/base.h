/*
 * base -- what every file includes first.
 *
 * Attributes, the few macros the project allows itself, and the list of libc
 * functions that may not be used. Nothing here allocates or keeps state.
 */
#ifndef POSTRIDER_BASE_H
#define POSTRIDER_BASE_H

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The result says whether it worked; who ignores it has a bug. */
#define MUST_CHECK __attribute__((warn_unused_result))

/* Ends with the scope: end takes the variable's address and accepts NULL. */
#define AUTO(end) __attribute__((cleanup(end)))

#define PRINTF(text, first) __attribute__((format(printf, text, first)))
#define UNUSED __attribute__((unused))
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Bytes that belong to somebody else; not NUL-ended. */
struct bytes {
	const void *data;
	size_t len;
};

/* Under clang the fortified sprintf is a macro. */
#undef sprintf
#pragma GCC poison strcpy strcat strncpy sprintf gets strtok atoi

#endif
