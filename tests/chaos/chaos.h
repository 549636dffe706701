/*
 * chaos -- two nodes, people who write, and everything that can go wrong.
 *
 * The main thread starts and ends processes, injects faults and checks; each
 * person of a conversation has a thread (actors), each connection of the
 * proxies one more. What happened is in the ledger of the actors, in the log
 * of the proxies, and in a table that records every entry of an outbox.
 */
#ifndef POSTRIDER_CHAOS_H
#define POSTRIDER_CHAOS_H

#include <pthread.h>
#include <sys/types.h>

#include "common/base/buf.h"
#include "common/base/json.h"

enum {
	SIDES = 2, /* of most scenarios */
	SIDES_MAX = 3,
	PEOPLE = 2, /* a side; everybody talks to everybody over there */
	OUTBOXDS = 3,
	DAEMONS = OUTBOXDS + 2,
	CONVERSATIONS = PEOPLE * PEOPLE,
	IDLE_CONNECTIONS = 300
};

struct options {
	uint64_t seed;
	int rounds;
	int seconds;
	int drain_s;
	bool operator_retries;
	bool keep;
	const char *scenario;
	int burst;
	int snapshot_s;
	int nodes; /* of converge */
	bool guests;
};

/* A seeded source of numbers; one thread. */
struct dice {
	uint64_t state;
};

static inline uint64_t dice_next(struct dice *dice)
{
	uint64_t z = (dice->state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* From 0 to below, evenly. */
static inline int dice_below(struct dice *dice, int below)
{
	return below > 0 ? (int)(dice_next(dice) % (uint64_t)below) : 0;
}

static inline int dice_between(struct dice *dice, int from, int to)
{
	return from + dice_below(dice, to - from + 1);
}

void pause_ms(int ms);
/* Set by SIGINT and SIGTERM; everybody comes to an end then. */
bool chaos_interrupted(void);

#endif
