/*
 * deliver -- the loop's side of delivery: who is leased, who is being sent to.
 *
 * Hints of every kind end in deliver_wake, which looks for due peers as long
 * as there is room, or in deliver_wake_peer, which looks at one. Each leased
 * peer is one delivery, which goes round
 *
 *     stepping (a worker, drain.h) -> sending (curl) -> stepping -> ...
 *
 * until its outbox is empty, its peer fails, or its lease is lost. One that has
 * just taken something is kept for a second though nothing is left. A lease
 * that is lost ends what is on the wire; whoever took it over goes on.
 *
 * Loop thread only.
 */
#ifndef POSTRIDER_DELIVER_H
#define POSTRIDER_DELIVER_H

#include "common/base/work.h"
#include "common/federation/node.h"
#include "common/queue/worker.h"
#include "outboxd/outboxd.h"

struct deliverer;

struct deliver_def {
	struct loop *loop;
	struct work_pool *pool; /* of struct outboxd_worker */
	struct client *client;
	const struct node *node;
	const struct worker_self *self;
};

struct deliverer *deliver_new(const struct deliver_def *def);
/* Nothing may be under way. */
void deliver_free(struct deliverer **deliverer);

/* Something may be due; or for this peer. */
void deliver_wake(struct deliverer *deliverer);
void deliver_wake_peer(struct deliverer *deliverer, int64_t peer);

/* A peer was paused, revoked, or has another secret: ask about all leases. */
void deliver_recheck(struct deliverer *deliverer);

/* Our lock is held (again): what an earlier one left is given back first. */
void deliver_up(struct deliverer *deliverer);
/* Our lock is gone, and with it every lease. */
void deliver_down(struct deliverer *deliverer);

/* No new batches; leases go back within a second. */
void deliver_drain(struct deliverer *deliverer);
bool deliver_drained(const struct deliverer *deliverer);

#endif
