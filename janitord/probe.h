/*
 * probe -- does a silent peer live?
 *
 * A peer that fails while something waits for it is asked for its public
 * instance info after 30 s, 1, 5 and then every 15 minutes. Any 2xx is a sign
 * of life: it brings one trial batch forward, and that is all. Only a batch
 * that was accepted makes the peer active. A peer that is unreachable while
 * nothing waits is sent a signed empty relay every hour, by outboxd; its
 * answer makes the peer active.
 *
 * When a peer was asked is a column of its row, so two leaders or a new one
 * ask no more often. Loop thread.
 */
#ifndef POSTRIDER_PROBE_H
#define POSTRIDER_PROBE_H

#include "common/base/work.h"
#include "common/net/client.h"

struct prober;

struct prober_def {
	struct loop *loop;
	struct work_pool *pool;
	struct client *client;
	const char *origin; /* our own */
};

struct prober *prober_new(const struct prober_def *def);
/* After client_free and work_pool_free. */
void prober_free(struct prober **prober);

/* Asks nobody any more; before client_free. */
void prober_stop(struct prober *prober);

/* Asks whom it is time to ask. The leader calls it every second. */
void prober_look(struct prober *prober);

#endif
