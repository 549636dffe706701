/*
 * work -- where the loop and the worker threads meet; nowhere else.
 *
 * work_submit runs run(item, worker) on a worker thread, then done(item) on
 * the loop thread. An item has one owner at a time. A worker has one state
 * object of the daemon's (a connection and an arena), made on its own thread.
 * The queue is bounded: a full queue refuses, so that load is answered with
 * 503 and not with memory.
 */
#ifndef POSTRIDER_WORK_H
#define POSTRIDER_WORK_H

#include "common/base/loop.h"

struct work_pool;

struct work_def {
	int threads;
	size_t queue_max;
	/* On the worker thread, at its start and end. */
	void *(*worker_begin)(void *ctx);
	void (*worker_end)(void *state);
	void *ctx;
};

struct work_pool *work_pool_new(struct loop *loop, const struct work_def *def);

/* Waits for what runs, runs what is queued, calls their done. Loop thread. */
void work_pool_free(struct work_pool **pool);

/* Loop thread. False when the queue is full; nothing was called then. */
MUST_CHECK bool work_submit(struct work_pool *pool,
    void (*run)(void *item, void *state), void (*done)(void *item), void *item);

size_t work_waiting(const struct work_pool *pool);
size_t work_running(const struct work_pool *pool);

#endif
