/*
 * directory -- finding people by name, and browsing those who want to be found.
 *
 * Deleted people are never found. Worker threads; texts live in the
 * transaction's arena.
 */
#ifndef POSTRIDER_DIRECTORY_H
#define POSTRIDER_DIRECTORY_H

#include "common/pg/sql.h"

enum { DIRECTORY_QUERY_MAX = 200 };

/* User objects of at most ten, whose account or display name holds words. */
MUST_CHECK bool directory_search_json(struct tx *tx, int64_t seeker,
    const char *words, const char **json, struct err *err);

/* A page of our own people who are discoverable, the newest first, and within
 * it those with most friends in common: {"users":[...],"total":n}. words may be
 * empty. Nobody when the operator has switched it off. */
MUST_CHECK bool directory_browse_json(struct tx *tx, int64_t seeker,
    const char *words, int64_t limit, int64_t offset, const char **json,
    struct err *err);

#endif
