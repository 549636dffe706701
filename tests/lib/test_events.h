/*
 * test_events -- batches of every type of event, as a peer sends them.
 *
 * A crowd: people of a peer, each with a counterpart of ours, a conversation,
 * a group and a friendship. Event i of a batch is about the i-th of them, so
 * that a batch of n events speaks of n distinct things.
 */
#ifndef POSTRIDER_TEST_EVENTS_H
#define POSTRIDER_TEST_EVENTS_H

#include "common/base/arena.h"

enum { TEST_CROWD = 50 };

struct test_crowd {
	struct arena *arena;
	const char *origin; /* of the peer: https://luna.test */
	const char *host;   /* ours */
	const char *conninfo;
	int64_t natives[TEST_CROWD];
};

/* Makes our people, crowd0 and so on. */
void test_crowd_begin(struct test_crowd *crowd);

/* The types in an order in which each finds what it needs; NULL: no more. */
const char *test_events_type(size_t place);

/* What a type needs that no earlier batch brings, put there by SQL. */
void test_events_prepare(const struct test_crowd *crowd, const char *type);

/* The content of the list of events: n of this type. round tells batches of
 * one type apart. */
const char *test_events_of(
    const struct test_crowd *crowd, const char *type, int round, int count);

#endif
