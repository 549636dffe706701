/*
 * state -- what a node holds, in words that mean the same on every node.
 *
 * People are named by host and home id, messages by where they were born,
 * groups by their federated id. Main thread; nothing moves any more.
 */
#ifndef POSTRIDER_CHAOS_STATE_H
#define POSTRIDER_CHAOS_STATE_H

#include "tests/chaos/site.h"

struct state_line {
	const char *scope; /* a conversation, a pair of friends, a person */
	const char *key;
	const char *value;
	bool needed; /* wherever the scope is known */
	int64_t at;  /* when it began, for whom joined later; 0: always */
};

/* Sorted by scope and key. */
MUST_CHECK bool state_read(const struct side *side, struct arena *arena,
    struct rows *lines, struct err *err);

/* Differences of what both ought to hold, each a line on stderr. */
int state_differences(const struct side *a, const struct rows *of_a,
    const struct side *b, const struct rows *of_b);

#endif
