/*
 * relay_site -- what the figures of bench_relay are taken on: a database, a
 * hundred peers behind one sink, and the program itself.
 */
#ifndef POSTRIDER_RELAY_SITE_H
#define POSTRIDER_RELAY_SITE_H

#include <sys/types.h>

#include "common/federation/node.h"
#include "tests/bench/relay_sink.h"
#include "tests/lib/test_db.h"

enum { SITE_PEERS = 100, SITE_DAEMONS_MAX = 2 };

struct bench {
	struct arena *arena;
	char *conninfo;
	const char *key;
	const char *origin;
	struct node node;
	struct relay_sink *sink;
	int64_t peers[SITE_PEERS];
	pid_t daemons[SITE_DAEMONS_MAX];
	int daemon_count;
	double database_before_us;
	/* Processor time while the daemons ran that were stopped last: */
	double cpu_us;		/* theirs */
	double database_cpu_us; /* of PostgreSQL, all of the cluster's */
};

void site_begin(struct bench *bench);
void site_end(struct bench *bench);

/* entries, evenly to the first peers of them. */
void site_fill(struct bench *bench, int peers, int entries);
void site_empty(struct bench *bench);
/* One entry, and its signal after the commit if wanted. */
void site_insert(struct conn *conn, struct arena *arena, int64_t peer,
    bool signals, int place);

void site_start(struct bench *bench, int daemons);
/* Stops them and adds up their processor time. */
void site_stop(struct bench *bench);

/* Ends the bench with a line when good is false. */
void must(bool good, const char *what, const struct err *err);
double median(double *values, size_t count);

/* Events a second; the outbox is filled before. */
double site_drain(struct bench *bench, int peers, int entries, int daemons);

#endif
