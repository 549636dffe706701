/*
 * limit -- counted windows per key, in one process's memory.
 *
 * A fixed window per key, bounded in number of keys (the oldest go). Keys are
 * hashed with a random seed. Loop thread only.
 */
#ifndef POSTRIDER_LIMIT_H
#define POSTRIDER_LIMIT_H

#include "common/base/base.h"

struct limit;

struct limit_state {
	bool allowed;
	int64_t max;
	int64_t remaining;
	int64_t reset_s; /* until the window ends, at least 1 */
};

struct limit *limit_new(size_t keys_max);
void limit_free(struct limit **limit);

/* Counts one under (scope, key); max 0 means no limit. */
struct limit_state limit_count(struct limit *limit, const char *scope,
    const char *key, int64_t max, int64_t window_ms);
/* One that was counted in this window was no such thing after all. */
void limit_give_back(struct limit *limit, const char *scope, const char *key);

#endif
