#include "outboxd/figures.h"

#include "common/pg/pg_figures.h"

/* clang-format off */
static const char *const outcomes[] = {
	"accepted", "refused_for_now", "refused_for_good", "transport",
	"expired", "cancelled", NULL
};
static const char *const reasons[] = {
	"transport", "auth", "paused", "batch", NULL
};
static const char *const asked[] = {
	"accept/answered", "accept/no_connection", "accept/refused",
	"accept/unknown", "accept/too_late",
	"counter/answered", "counter/no_connection", "counter/refused",
	"counter/unknown", "counter/too_late",
	"relay/answered", "relay/no_connection", "relay/refused",
	"relay/unknown", "relay/too_late",
	"info/answered", "info/no_connection", "info/refused",
	"info/unknown", "info/too_late",
	"rotate/answered", "rotate/no_connection", "rotate/refused",
	"rotate/unknown", "rotate/too_late",
	"other/other", NULL
};
static const char *const kinds[] = {
	"accept", "counter", "relay", "info", "rotate", "actor", "other", NULL
};
static const char *const whys[] = {
	"accepted", "refused", "cancelled", "expired", "dead", NULL
};
/* clang-format on */

struct metric figure_attempts = {
	.name = "delivery_attempts_total",
	.help = "Entries of the outbox by what became of an attempt.",
	.type = METRIC_COUNTER,
	.label = "outcome",
	.values = outcomes,
};
struct metric figure_failures = {
	.name = "delivery_failures_total",
	.help = "Batches that brought no answer about their events.",
	.type = METRIC_COUNTER,
	.label = "reason",
	.values = reasons,
};
struct metric figure_removed = {
	.name = "entries_removed_total",
	.help = "Entries that left the outbox, by why.",
	.type = METRIC_COUNTER,
	.label = "why",
	.values = whys,
};
struct metric figure_duration = {
	.name = "delivery_duration_seconds",
	.help = "From sending a batch to its answer.",
	.type = METRIC_HISTOGRAM,
};
struct metric figure_batch = {
	.name = "batch_entries",
	.help = "Events in the last batch.",
	.type = METRIC_GAUGE,
};
struct metric figure_leases = {
	.name = "leases_held",
	.help = "Peers this process delivers to now.",
	.type = METRIC_GAUGE,
};
struct metric figure_leases_lost = {
	.name = "leases_lost_total",
	.help = "Leases that ended under their holder.",
	.type = METRIC_COUNTER,
};
struct metric figure_leases_taken_over = {
	.name = "leases_taken_over_total",
	.help = "Leases of dead workers that were freed.",
	.type = METRIC_COUNTER,
};
struct metric figure_claim = {
	.name = "claim_seconds",
	.help = "Looking for peers that are due.",
	.type = METRIC_HISTOGRAM,
};
struct metric figure_wait = {
	.name = "delivery_wait_seconds",
	.help = "From writing an entry to sending it, while its peer answers.",
	.type = METRIC_HISTOGRAM,
};
struct metric figure_total = {
	.name = "delivery_total_seconds",
	.help = "From writing an entry to its acceptance.",
	.type = METRIC_HISTOGRAM,
};
struct metric figure_asks = {
	.name = "asks_total",
	.help = "Questions that somebody waits for, by what came of them.",
	.type = METRIC_COUNTER,
	.label = "kind",
	.second = "outcome",
	.values = asked,
};
struct metric figure_ask_duration = {
	.name = "ask_duration_seconds",
	.help = "From sending a question to its answer.",
	.type = METRIC_HISTOGRAM,
	.label = "kind",
	.values = kinds,
};
static struct metric *const figures[] = {
	&figure_attempts,
	&figure_failures,
	&figure_removed,
	&figure_duration,
	&figure_batch,
	&figure_leases,
	&figure_leases_lost,
	&figure_leases_taken_over,
	&figure_claim,
	&figure_wait,
	&figure_total,
	&figure_asks,
	&figure_ask_duration,
};

void figures_register(void)
{
	pg_figures_register();
	for (size_t i = 0; i < COUNT(figures); i++)
		metrics_register(figures[i]);
}

void figure_asked(const char *kind, const char *outcome)
{
	char value[64];

	snprintf(value, sizeof(value), "%s/%s", kind, outcome);
	metric_add(&figure_asks, metric_place(&figure_asks, value), 1);
}
