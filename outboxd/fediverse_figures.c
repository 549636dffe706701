#include "outboxd/fediverse_figures.h"

/* clang-format off */
static const char *const classes[] = {
	"delivered", "refused", "gone", "unauthorized", "too_many",
	"server_error", "no_answer", "not_sent", NULL
};
/* clang-format on */

struct metric figure_activities = {
	.name = "activity_attempts_total",
	.help = "Attempts to deliver an activity, by what became of them.",
	.type = METRIC_COUNTER,
	.label = "outcome",
	.values = classes,
};
struct metric figure_activities_ended = {
	.name = "activities_ended_total",
	.help = "Activities delivered or refused for good.",
	.type = METRIC_COUNTER,
};
struct metric figure_activity_duration = {
	.name = "activity_duration_seconds",
	.help = "From the first request of an attempt to its last answer.",
	.type = METRIC_HISTOGRAM,
};
struct metric figure_activity_wait = {
	.name = "activity_wait_seconds",
	.help = "From enqueueing an activity to its first attempt.",
	.type = METRIC_HISTOGRAM,
};
struct metric figure_domains = {
	.name = "activity_domains_held",
	.help = "Servers this process delivers activities to now.",
	.type = METRIC_GAUGE,
};

void fediverse_figures_register(void)
{
	metrics_register(&figure_activities);
	metrics_register(&figure_activities_ended);
	metrics_register(&figure_activity_duration);
	metrics_register(&figure_activity_wait);
	metrics_register(&figure_domains);
}
