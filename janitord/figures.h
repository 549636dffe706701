/*
 * figures -- what janitord counts, and what the leader shows of the whole
 * cluster.
 */
#ifndef POSTRIDER_JANITORD_FIGURES_H
#define POSTRIDER_JANITORD_FIGURES_H

#include "common/base/metrics.h"

/* Places of the label values. */
enum probe_outcome { PROBE_ANSWERED, PROBE_REFUSED, PROBE_SILENT };
enum queue_state {
	QUEUE_WAITING,
	QUEUE_LEASED,
	QUEUE_SET_ASIDE,
	QUEUE_DEAD,
	QUEUE_STATES
};

extern struct metric figure_leader;
extern struct metric figure_probes;  /* by enum probe_outcome */
extern struct metric figure_purged;  /* by table */
extern struct metric figure_removed; /* 0: expired */
/* The cluster's: only while we lead. */
extern struct metric figure_queue; /* by queue, each in QUEUE_STATES places */
extern struct metric figure_queue_age; /* by queue */
extern struct metric figure_peers;     /* by state */
extern struct metric figure_notify_usage;
extern struct metric figure_snapshot_age;
extern struct metric figure_dead_rows; /* by table */

void janitor_figures_register(void);

/* We lead no longer: somebody else shows the cluster's. */
void janitor_figures_forget(void);

#endif
