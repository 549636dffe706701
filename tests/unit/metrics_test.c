#include <pthread.h>

#include <criterion/criterion.h>

#include "common/base/metrics.h"

static const char *const colours[] = { "red", "blue", "other", NULL };
static struct metric counter = { .name = "things_total",
	.help = "Things.",
	.type = METRIC_COUNTER,
	.label = "colour",
	.values = colours };
static struct metric gauge = {
	.name = "level", .help = "Level.", .type = METRIC_GAUGE
};
static const char *const pairs[] = { "red/big", "red/small", NULL };
static struct metric sized = { .name = "sized",
	.help = "Things by two labels.",
	.type = METRIC_GAUGE,
	.label = "colour",
	.second = "size",
	.values = pairs };
static struct metric histogram = {
	.name = "wait_seconds", .help = "Wait.", .type = METRIC_HISTOGRAM
};

static void expect_line(const char *line)
{
	char wanted[200];
	struct buf out;

	snprintf(wanted, sizeof(wanted), "\n%s\n", line);
	buf_init(&out, NULL, 1 << 20);
	buf_char(&out, '\n');
	metrics_write(&out);
	cr_expect(buf_ok(&out));
	cr_expect_not_null(
	    strstr(out.data, wanted), "%s is not in\n%s", line, out.data);
	buf_done(&out);
}

static void *add_many(void *arg UNUSED)
{
	for (int i = 0; i < 10000; i++)
		metric_add(&counter, 1, 1);
	return NULL;
}

Test(metrics, counters_of_several_threads_add_up)
{
	pthread_t threads[4];

	metrics_register(&counter);
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, add_many, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	metric_add(&counter, metric_place(&counter, "green"), 3);
	expect_line("# HELP postrider_things_total Things.");
	expect_line("# TYPE postrider_things_total counter");
	expect_line("postrider_things_total{colour=\"red\"} 0");
	expect_line("postrider_things_total{colour=\"blue\"} 40000");
	expect_line("postrider_things_total{colour=\"other\"} 3");
}

Test(metrics, a_gauge_is_set_and_moved)
{
	metrics_register(&gauge);
	metric_set(&gauge, 0, 2.5);
	metric_add(&gauge, 0, -4);
	expect_line("postrider_level -1.5");
}

Test(metrics, a_histogram_counts_into_its_buckets)
{
	metrics_register(&histogram);
	metric_observe_us(&histogram, 0, 900);
	metric_observe_us(&histogram, 0, 1000);
	metric_observe_us(&histogram, 0, 30 * 1000);
	metric_observe_us(&histogram, 0, 11 * 1000 * 1000);
	expect_line("postrider_wait_seconds_bucket{le=\"0.001\"} 2");
	expect_line("postrider_wait_seconds_bucket{le=\"0.05\"} 3");
	expect_line("postrider_wait_seconds_bucket{le=\"10\"} 3");
	expect_line("postrider_wait_seconds_bucket{le=\"+Inf\"} 4");
	expect_line("postrider_wait_seconds_sum 11.031900");
	expect_line("postrider_wait_seconds_count 4");
}

Test(metrics, the_process_and_the_build_are_told)
{
	struct buf out;

	metrics_daemon_set("outboxd", "a\"b");
	metrics_schema_set(5);
	buf_init(&out, NULL, 1 << 20);
	metrics_write(&out);
	cr_expect_not_null(strstr(out.data,
	    "postrider_build_info{daemon=\"outboxd\",instance=\"a\\\"b\","
	    "version="));
	cr_expect_not_null(strstr(out.data, "schema=\"5\"} 1"));
	cr_expect_not_null(
	    strstr(out.data, "\nprocess_resident_memory_bytes "));
	cr_expect_not_null(strstr(out.data, "\nprocess_open_fds "));
	cr_expect_not_null(strstr(out.data, "\nprocess_start_time_seconds "));
	buf_done(&out);
}

Test(metrics, a_metric_may_have_a_second_label)
{
	metrics_register(&sized);
	metric_set(&sized, 1, 2);
	expect_line("postrider_sized{colour=\"red\",size=\"big\"} 0");
	expect_line("postrider_sized{colour=\"red\",size=\"small\"} 2");
}

Test(metrics, counting_before_registration_does_nothing)
{
	metric_add(&counter, 0, 1);
	metric_set(&gauge, 0, 1);
	metric_observe_us(&histogram, 0, 1);
	cr_expect_null(counter.cells);
}
