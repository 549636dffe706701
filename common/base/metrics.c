#include <dirent.h>
#include <math.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "common/base/build.h"
#include "common/base/metrics.h"

static const int64_t bounds_us[] = { 1000, 2500, 5000, 10000, 25000, 50000,
	100000, 250000, 500000, 1000000, 2500000, 5000000, 10000000 };

/* One label value: amount counts, gauge holds the bits of a double. */
struct metric_cell {
	_Atomic int64_t amount;
	_Atomic uint64_t gauge;
	_Atomic int64_t sum_us;
	_Atomic int64_t buckets[COUNT(bounds_us) + 1];
};

/* What is registered, in order. */
static struct metric *first;
/* Labels of build_info. */
static const char *daemon_label = "";
static const char *instance_label = "";
static int schema_label;

static size_t places(const struct metric *metric)
{
	size_t count = 0;

	if (!metric->label)
		return 1;
	while (metric->values[count])
		count++;
	return count;
}

void metrics_register(struct metric *metric)
{
	struct metric **end = &first;

	if (metric->cells)
		return;
	metric->cells = calloc(places(metric), sizeof(*metric->cells));
	if (!metric->cells)
		abort();
	while (*end)
		end = &(*end)->next;
	*end = metric;
}

static uint64_t to_bits(double real)
{
	uint64_t bits;

	memcpy(&bits, &real, sizeof(bits));
	return bits;
}

static double from_bits(uint64_t bits)
{
	double real;

	memcpy(&real, &bits, sizeof(real));
	return real;
}

static void gauge_add(struct metric_cell *cell, int64_t amount)
{
	uint64_t old = atomic_load(&cell->gauge);
	uint64_t new;

	do
		new = to_bits(from_bits(old) + (double)amount);
	while (!atomic_compare_exchange_weak(&cell->gauge, &old, new));
}

void metric_add(struct metric *metric, size_t place, int64_t amount)
{
	if (!metric->cells)
		return;
	if (metric->type == METRIC_GAUGE)
		gauge_add(&metric->cells[place], amount);
	else
		atomic_fetch_add_explicit(
		    &metric->cells[place].amount, amount, memory_order_relaxed);
}

int64_t metric_total(const struct metric *metric)
{
	int64_t total = 0;

	for (size_t i = 0; metric->cells && i < places(metric); i++)
		total += atomic_load_explicit(
		    &metric->cells[i].amount, memory_order_relaxed);
	return total;
}

void metric_set(struct metric *metric, size_t place, double value)
{
	if (metric->cells)
		atomic_store(&metric->cells[place].gauge, to_bits(value));
}

void metric_observe_us(struct metric *metric, size_t place, int64_t us)
{
	struct metric_cell *cell;
	size_t bucket = 0;

	if (!metric->cells)
		return;
	cell = &metric->cells[place];
	while (bucket < COUNT(bounds_us) && us > bounds_us[bucket])
		bucket++;
	atomic_fetch_add_explicit(
	    &cell->buckets[bucket], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&cell->sum_us, us, memory_order_relaxed);
}

size_t metric_place(const struct metric *metric, const char *value)
{
	size_t count = places(metric);

	for (size_t i = 0; metric->label && value && i < count; i++)
		if (strcmp(metric->values[i], value) == 0)
			return i;
	return count - 1;
}

void metrics_daemon_set(const char *name, const char *instance)
{
	daemon_label = name;
	instance_label = instance;
}

void metrics_schema_set(int schema)
{
	schema_label = schema;
}

/* ---- text ---- */

/* label="value", or both labels. */
static void put_label(
    struct buf *out, const struct metric *metric, size_t place)
{
	const char *value = metric->values[place];
	int len = (int)strcspn(value, metric->second ? "/" : "");

	buf_printf(out, "%s=\"%.*s\"", metric->label, len, value);
	if (metric->second)
		buf_printf(out, ",%s=\"%s\"", metric->second, value + len + 1);
}

/* name_suffix{label="value",le="bound"} and a space. */
static void put_name(struct buf *out, const struct metric *metric,
    const char *suffix, size_t place, const char *bound)
{
	buf_printf(out, "postrider_%s%s", metric->name, suffix);
	if (metric->label || bound)
		buf_char(out, '{');
	if (metric->label)
		put_label(out, metric, place);
	if (bound)
		buf_printf(out, "%sle=\"%s\"", metric->label ? "," : "", bound);
	if (metric->label || bound)
		buf_char(out, '}');
	buf_char(out, ' ');
}

static void put_histogram(
    struct buf *out, const struct metric *metric, size_t place)
{
	struct metric_cell *cell = &metric->cells[place];
	int64_t count = 0;
	char bound[32];

	for (size_t i = 0; i < COUNT(bounds_us); i++) {
		count += atomic_load(&cell->buckets[i]);
		snprintf(
		    bound, sizeof(bound), "%g", (double)bounds_us[i] / 1e6);
		put_name(out, metric, "_bucket", place, bound);
		buf_printf(out, "%" PRId64 "\n", count);
	}
	count += atomic_load(&cell->buckets[COUNT(bounds_us)]);
	put_name(out, metric, "_bucket", place, "+Inf");
	buf_printf(out, "%" PRId64 "\n", count);
	put_name(out, metric, "_sum", place, NULL);
	buf_printf(out, "%.6f\n", (double)atomic_load(&cell->sum_us) / 1e6);
	put_name(out, metric, "_count", place, NULL);
	buf_printf(out, "%" PRId64 "\n", count);
}

static void put_cell(struct buf *out, const struct metric *metric, size_t place)
{
	struct metric_cell *cell = &metric->cells[place];

	switch (metric->type) {
	case METRIC_COUNTER:
		put_name(out, metric, "", place, NULL);
		buf_printf(out, "%" PRId64 "\n", atomic_load(&cell->amount));
		break;
	case METRIC_GAUGE:
		put_name(out, metric, "", place, NULL);
		buf_printf(
		    out, "%.15g\n", from_bits(atomic_load(&cell->gauge)));
		break;
	case METRIC_HISTOGRAM:
		put_histogram(out, metric, place);
		break;
	}
}

static void put_metric(struct buf *out, const struct metric *metric)
{
	static const char *const types[] = { "counter", "gauge", "histogram" };

	buf_printf(out, "# HELP postrider_%s %s\n# TYPE postrider_%s %s\n",
	    metric->name, metric->help, metric->name, types[metric->type]);
	for (size_t i = 0; i < places(metric); i++)
		put_cell(out, metric, i);
}

/* ---- the process ---- */

static void put_process(
    struct buf *out, const char *name, const char *type, double value)
{
	buf_printf(out, "# TYPE process_%s %s\nprocess_%s %.15g\n", name, type,
	    name, value);
}

static int open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = -3; /* . and .. and the directory itself */

	if (!dir)
		return 0;
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

/* Fields 22 to 24 of /proc/self/stat, which follow the last bracket. */
static void put_stat(struct buf *out)
{
	unsigned long long start = 0;
	unsigned long long virtual = 0;
	long pages = 0;
	struct timespec up;
	struct timespec now;
	char text[1024] = "";
	FILE *file = fopen("/proc/self/stat", "re");
	const char *rest;

	if (!file)
		return;
	if (!fgets(text, sizeof(text), file))
		text[0] = '\0';
	fclose(file);
	rest = strrchr(text, ')');
	if (!rest ||
	    sscanf(rest + 1,
		" %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u "
		"%*u %*u %*d %*d %*d %*d %*d %*d %llu %llu %ld",
		&start, &virtual, &pages) != 3)
		return;
	clock_gettime(CLOCK_BOOTTIME, &up);
	clock_gettime(CLOCK_REALTIME, &now);
	put_process(out, "virtual_memory_bytes", "gauge", (double)virtual);
	put_process(out, "resident_memory_bytes", "gauge",
	    (double)pages * (double)sysconf(_SC_PAGESIZE));
	put_process(out, "start_time_seconds", "gauge",
	    (double)(now.tv_sec - up.tv_sec) +
		(double)start / (double)sysconf(_SC_CLK_TCK));
}

static double seconds(struct timeval time)
{
	return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

static void put_processes(struct buf *out)
{
	struct rusage usage;
	struct rlimit limit;

	if (getrusage(RUSAGE_SELF, &usage) == 0)
		put_process(out, "cpu_seconds_total", "counter",
		    seconds(usage.ru_utime) + seconds(usage.ru_stime));
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		put_process(out, "max_fds", "gauge", (double)limit.rlim_cur);
	put_process(out, "open_fds", "gauge", open_fds());
	put_stat(out);
}

/* A name that an operator chose. */
static void put_quoted(struct buf *out, const char *text)
{
	for (; *text; text++)
		if (*text == '"' || *text == '\\')
			buf_printf(out, "\\%c", *text);
		else if (*text >= ' ')
			buf_char(out, *text);
}

static void put_build(struct buf *out)
{
	buf_printf(out,
	    "# HELP postrider_build_info Who this is, the version of the "
	    "program and of the schema it needs.\n"
	    "# TYPE postrider_build_info gauge\n"
	    "postrider_build_info{daemon=\"%s\",instance=\"",
	    daemon_label);
	put_quoted(out, instance_label);
	buf_printf(out, "\",version=\"%s\",schema=\"%d\"} 1\n",
	    POSTRIDER_VERSION, schema_label);
}

void metrics_write(struct buf *out)
{
	put_build(out);
	for (const struct metric *m = first; m; m = m->next)
		put_metric(out, m);
	put_processes(out);
}
