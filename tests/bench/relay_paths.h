/*
 * relay_paths -- figures of bench_relay beside the drain: latency of one
 * event, what a claim costs beside a deep outbox, inserts that signal, and a
 * job queue of others on the same cluster.
 */
#ifndef POSTRIDER_RELAY_PATHS_H
#define POSTRIDER_RELAY_PATHS_H

#include "tests/bench/relay_site.h"

void figure_latency(struct bench *bench);
void figure_claim_cost(struct bench *bench);
void figure_inserts(struct bench *bench);
/* rate: our drain, to hold it against. */
void figure_graphile(struct bench *bench, double rate);

#endif
