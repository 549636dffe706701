/*
 * asks -- performs s2s_requests: what somebody waits for
 * (common/federation/ask).
 *
 * A row is claimed before its deadline, sent once, never again, and its answer
 * written and signalled; who asked may have given up by then. At most
 * ASKS_PER_PEER run against one origin over all outboxd; ephemeral ones beyond
 * that are dropped, others wait. Whoever is paused or revoked is asked nothing:
 * such a question ends unsent. Questions for actors, which any stranger can
 * cause, take at most half of the room. What was claimed by an outboxd that
 * died is not found again: its outcome is unknown, as it is after a lost
 * connection, and becomes so within seconds.
 *
 * Loop thread only. asks_wake is cheap and is called for every hint and every
 * second. At the end free the client and the work pool first: what they still
 * hold ends in here.
 */
#ifndef POSTRIDER_ASKS_H
#define POSTRIDER_ASKS_H

#include "common/base/work.h"
#include "common/federation/node.h"
#include "common/net/client.h"
#include "common/queue/worker.h"

enum {
	ASKS_AT_ONCE = 64,
	ASKS_PER_PEER = 4,
	ASKS_OF_STRANGERS = 32, /* for actors, over all outboxd */
	ASKS_ANSWER_MAX = 64 * 1024
};

struct asks;

struct asks_def {
	struct loop *loop;
	struct work_pool *pool; /* its state is struct outboxd_worker */
	struct client *client;
	const struct node *node;
	const struct worker_self *self; /* read at every claim */
};

struct asks *asks_new(const struct asks_def *def);
void asks_free(struct asks **asks);

void asks_wake(struct asks *asks);
/* Claims nothing more. */
void asks_drain(struct asks *asks);
bool asks_drained(const struct asks *asks);
size_t asks_running(const struct asks *asks);

#endif
