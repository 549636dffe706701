/*
 * sig_field -- structured fields (RFC 8941), as far as signatures need them:
 * dictionaries whose members are inner lists or single items.
 *
 * Strict: what is not the grammar is refused, and so is a key or a parameter
 * that occurs twice, where the grammar would let the last one win. raw is the
 * text as it stands, which is what a signature covers. Any thread; everything
 * lives in the arena.
 */
#ifndef POSTRIDER_SIG_FIELD_H
#define POSTRIDER_SIG_FIELD_H

#include "common/base/arena.h"

enum field_kind {
	FIELD_TEXT,
	FIELD_TOKEN,
	FIELD_BYTES,
	FIELD_WHOLE,
	FIELD_FLAG
};

struct field_item {
	enum field_kind kind;
	const char *text; /* TEXT, TOKEN */
	struct bytes bytes;
	int64_t whole; /* WHOLE; FLAG: 0 or 1 */
};

struct field_param {
	const char *name;
	struct field_item value;
};

enum { FIELD_PARAMS_MAX = 12, FIELD_ITEMS_MAX = 32, FIELD_MEMBERS_MAX = 16 };

struct field_params {
	struct field_param items[FIELD_PARAMS_MAX];
	size_t count;
};

/* An element of an inner list. */
struct field_element {
	struct field_item item;
	struct field_params params;
	const char *raw; /* with its parameters */
};

struct field_member {
	const char *name;
	bool is_list;
	struct field_item item;		/* of a single one */
	struct field_element *elements; /* of a list */
	size_t count;
	struct field_params params;
	const char *raw; /* what follows "name=" */
};

struct field_members {
	struct field_member items[FIELD_MEMBERS_MAX];
	size_t count;
};

MUST_CHECK bool field_dictionary(
    struct arena *arena, const char *text, struct field_members *members);
/* One inner list with its parameters. */
MUST_CHECK bool field_list(
    struct arena *arena, const char *text, struct field_member *member);

const struct field_member *field_find(
    const struct field_members *members, const char *name);
const struct field_item *field_param(
    const struct field_params *params, const char *name);

#endif
