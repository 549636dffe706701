/*
 * check -- what must be true when everything has come to rest.
 *
 * Both nodes hold the same conversations, and what the people were told is
 * true; nothing is doubled or a dead letter; entries were first presented in
 * the order of their conversation and accepted in the order of their thing.
 * Every difference is a line on stderr. Main thread; no actor runs.
 */
#ifndef POSTRIDER_CHAOS_CHECK_H
#define POSTRIDER_CHAOS_CHECK_H

#include "tests/chaos/people.h"

struct verdict {
	int64_t messages;
	int64_t entries;
	int missing; /* on the other node, or although acknowledged */
	int doubled;
	int differing;
	int unordered;
	int dead;
};

/* Are both outboxes empty? False also while a database is away. */
bool check_drained(const struct site *site);

MUST_CHECK bool check_all(const struct site *site, const struct crowd *crowd,
    struct verdict *verdict, struct err *err);
/* Only what both nodes hold, and dead letters. */
MUST_CHECK bool check_same(
    const struct site *site, struct verdict *verdict, struct err *err);
bool verdict_is_good(const struct verdict *verdict);

/* check_order.c */
MUST_CHECK bool check_order(const struct site *site, int sender,
    struct verdict *verdict, struct err *err);
void check_say(const char *what, const char *about, const char *detail);

#endif
