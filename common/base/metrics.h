/*
 * metrics -- counters, gauges and histograms in Prometheus text.
 *
 * A daemon has one table of metrics; each row is name, help, type and the
 * closed list of its label values. Counting is a relaxed atomic add; any
 * thread.
 */
#ifndef POSTRIDER_METRICS_H
#define POSTRIDER_METRICS_H

#include "common/base/buf.h"

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

/* Static storage; registered once, before the first use. */
struct metric {
	const char *name; /* without the postrider_ prefix */
	const char *help;
	enum metric_type type;
	const char *label;	   /* one label name or NULL */
	const char *second;	   /* another; values are "first/second" then */
	const char *const *values; /* its closed list, NULL-ended */
	struct metric_cell *cells; /* made by metrics_register */
	struct metric *next;
};

void metrics_register(struct metric *metric);

/* place is the index into values, 0 without a label. */
void metric_add(struct metric *metric, size_t place, int64_t amount);
void metric_set(struct metric *metric, size_t place, double value);
/* Seconds into the histogram's fixed buckets 1 ms .. 10 s. */
void metric_observe_us(struct metric *metric, size_t place, int64_t us);

/* Of a counter: all its places together. */
int64_t metric_total(const struct metric *metric);

/* Index of a label value, or the last one of the list ("other"). */
size_t metric_place(const struct metric *metric, const char *value);

/* Labels of build_info; texts are static for good. Before metrics_write. */
void metrics_daemon_set(const char *name, const char *instance);
void metrics_schema_set(int schema);

/* All registered metrics and the usual process_* ones. Loop thread. */
void metrics_write(struct buf *out);

#endif
