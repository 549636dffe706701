/*
 * outboxd -- settings and worker state of the daemon that speaks to peers.
 * See main.c.
 */
#ifndef POSTRIDER_OUTBOXD_H
#define POSTRIDER_OUTBOXD_H

#include "common/base/conf.h"
#include "common/pg/sql.h"

struct outboxd_conf {
	struct conf_common common;
	int64_t answer_timeout; /* how long a peer may take for a batch */
	int64_t peers_max;	/* leases held at most */
	int64_t activities_max; /* activities on the way at most */
	const char *webhook_secret_file;
};

extern struct outboxd_conf outboxd_conf;

/* The state of a worker thread: what work_submit's run gets beside its item.
 * The arena is the worker's own; outboxd_tx resets it for a unit of work. */
struct outboxd_worker {
	struct conn *conn;
	struct arena *arena;
};

static inline struct tx *outboxd_tx(struct outboxd_worker *worker)
{
	arena_reset(worker->arena);
	return tx_new(worker->conn, worker->arena);
}

#endif
