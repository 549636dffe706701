/*
 * sweep -- takes away what is over.
 *
 * A round goes through a table of tasks, each in batches of SWEEP_BATCH rows,
 * a short transaction a batch: nonces, questions, sessions, tombstones, dead
 * letters, rates, the outbox's expired entries, events of conversations and
 * people. Nobody waits for it longer than for one batch.
 *
 * A leased peer's entries are its holder's to expire. What a create that was
 * never presented takes with it is said in sweep.sql. Loop thread.
 */
#ifndef POSTRIDER_SWEEP_H
#define POSTRIDER_SWEEP_H

#include "common/base/work.h"

enum { SWEEP_BATCH = 1000 };

struct sweeper;

struct sweeper *sweeper_new(struct loop *loop, struct work_pool *pool);
/* After work_pool_free. */
void sweeper_free(struct sweeper **sweeper);

/* Rounds go on from now, or end with the batch under way. */
void sweeper_run(struct sweeper *sweeper, bool on);

#endif
