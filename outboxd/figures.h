/*
 * figures -- what outboxd counts.
 */
#ifndef POSTRIDER_FIGURES_H
#define POSTRIDER_FIGURES_H

#include "common/base/metrics.h"

/* Places of the label values. */
enum attempt_outcome {
	ATTEMPT_ACCEPTED,
	ATTEMPT_REFUSED_FOR_NOW,
	ATTEMPT_REFUSED_FOR_GOOD,
	ATTEMPT_TRANSPORT,
	ATTEMPT_EXPIRED,
	ATTEMPT_CANCELLED
};
enum removal_why {
	REMOVED_ACCEPTED,
	REMOVED_REFUSED,
	REMOVED_CANCELLED,
	REMOVED_EXPIRED,
	REMOVED_DEAD
};
enum failure_reason {
	FAILED_TRANSPORT,
	FAILED_AUTH,
	FAILED_PAUSE,
	FAILED_BATCH
};

extern struct metric figure_attempts; /* by enum attempt_outcome */
extern struct metric figure_failures; /* by enum failure_reason */
extern struct metric figure_removed;  /* by enum removal_why */
extern struct metric figure_duration;
extern struct metric figure_batch;
extern struct metric figure_leases;
extern struct metric figure_leases_lost;
extern struct metric figure_leases_taken_over;
extern struct metric figure_claim;
extern struct metric figure_wait;
extern struct metric figure_total;
extern struct metric figure_asks;	  /* by figure_asked */
extern struct metric figure_ask_duration; /* by kind */

void figures_register(void);

/* A question ended; the words of common/federation/ask.h. */
void figure_asked(const char *kind, const char *outcome);

#endif
