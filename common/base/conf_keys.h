/*
 * conf_keys -- how the text of a setting becomes a value.
 *
 * Internal to conf.
 */
#ifndef POSTRIDER_CONF_KEYS_H
#define POSTRIDER_CONF_KEYS_H

#include "common/base/conf.h"

/* The value of a key, whichever its kind uses. */
struct conf_value {
	int64_t number;
	bool flag;
	const char *text; /* borrowed */
};

/* Parses and checks the bounds; the error says what is wrong with it. */
MUST_CHECK bool conf_value_parse(const struct conf_key *key, const char *text,
    struct conf_value *value, struct err *err);

/* Does any daemon have a setting of this name? */
bool conf_is_name(const char *name);

#endif
