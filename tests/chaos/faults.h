/*
 * faults -- what is done to the site while people write.
 *
 * A scenario is a line of the table: which faults, how often, how much the
 * proxies spoil. Main thread only.
 */
#ifndef POSTRIDER_CHAOS_FAULTS_H
#define POSTRIDER_CHAOS_FAULTS_H

#include "tests/chaos/site.h"

struct scenario {
	const char *name;
	unsigned int kinds; /* of enum fault_kind, a bit each */
	int gap_ms;	    /* between two faults, about */
	int permille;	    /* of relays that the proxies spoil */
};

struct faults {
	struct site *site;
	const struct scenario *scenario;
	struct dice dice;
	int64_t next_at;
	int64_t idle_until;
	struct conn *idle[IDLE_CONNECTIONS];
	int idle_count;
	int64_t retry_at;
	bool operator_retries;
	int retry_every_ms;
	int done;
};

/* NULL: no more. */
const struct scenario *scenario_at(size_t place);
const struct scenario *scenario_named(const char *name);

void faults_begin(struct faults *faults, struct site *site,
    const struct scenario *scenario, const struct options *options);
/* Does what is due; false: PostgreSQL did not come back. */
MUST_CHECK bool faults_turn(struct faults *faults, struct err *err);
/* Everything is well again. */
void faults_end(struct faults *faults);
/* What an operator does who has mended something. */
void faults_retry(const struct site *site);

#endif
