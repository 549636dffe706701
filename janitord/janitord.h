/*
 * janitord -- settings and worker state of the daemon that keeps order.
 * See main.c.
 */
#ifndef POSTRIDER_JANITORD_H
#define POSTRIDER_JANITORD_H

#include "common/base/conf.h"
#include "common/pg/sql.h"

struct janitord_conf {
	struct conf_common common;
	int64_t probes_max;	   /* under way at once */
	int64_t sweep_every;	   /* between rounds */
	int64_t dead_letters_kept; /* how long */
	int64_t events_kept;	   /* of conversations and people, how long */
};

extern struct janitord_conf janitord_conf;

/* The state of a worker thread: what work_submit's run gets beside its item.
 * The arena is the worker's own; janitord_tx resets it for a unit of work. */
struct janitord_worker {
	struct conn *conn;
	struct arena *arena;
};

static inline struct tx *janitord_tx(struct janitord_worker *worker)
{
	arena_reset(worker->arena);
	return tx_new(worker->conn, worker->arena);
}

/* worker_begin and worker_end of a pool; ctx: the application's name. */
void *janitord_worker_begin(void *ctx);
void janitord_worker_end(void *state);

#endif
