#include "janitord/figures.h"

#include "common/pg/pg_figures.h"

/* clang-format off */
static const char *const outcomes[] = {
	"answered", "refused", "silent", NULL
};
static const char *const purged[] = {
	"nonces", "s2s_requests", "sessions", "message_tombstones",
	"reaction_tombstones", "dm_departures", "events_heard", "dm_messages", "dm_channels", "typing_told", "dead_letters", "peer_rates", "fediverse_outbound_queue",
	"fediverse_keys", "fediverse_fetches", "fediverse_moved_inboxes", "fediverse_inbound",
	"federation_outbox", "federation_mutation_log", "conversation_events",
	"user_events", NULL
};
static const char *const whys[] = { "expired", NULL };
/* The places of a queue follow one another: enum queue_state. */
static const char *const queue_states[] = {
	"outbox/waiting", "outbox/leased", "outbox/set_aside", "outbox/dead",
	"fediverse/waiting", "fediverse/leased", "fediverse/set_aside",
	"fediverse/dead",
	"files/waiting", "files/leased", "files/set_aside", "files/dead",
	"requests/waiting", "requests/leased", "requests/set_aside",
	"requests/dead", NULL
};
static const char *const queues[] = {
	"outbox", "fediverse", "files", "requests", NULL
};
static const char *const states[] = {
	"active", "failing", "unreachable", "refuses our signature",
	"asks us to wait", "paused", "pending", "awaiting approval", "revoked",
	"other", NULL
};
static const char *const churned[] = {
	"federation_outbox", "federation_peers", "s2s_requests", "nonces",
	"conversation_events", "dm_channels", "fediverse_outbound_queue",
	"federation_file_queue", NULL
};
/* clang-format on */

struct metric figure_leader = {
	.name = "leader",
	.help = "1 while this janitord leads.",
	.type = METRIC_GAUGE,
};
struct metric figure_probes = {
	.name = "probes_total",
	.help = "Peers asked for a sign of life, by what came.",
	.type = METRIC_COUNTER,
	.label = "outcome",
	.values = outcomes,
};
struct metric figure_purged = {
	.name = "rows_purged_total",
	.help = "Rows taken away because their time was over.",
	.type = METRIC_COUNTER,
	.label = "table",
	.values = purged,
};
struct metric figure_removed = {
	.name = "entries_removed_total",
	.help = "Entries that left the outbox, by why.",
	.type = METRIC_COUNTER,
	.label = "why",
	.values = whys,
};
struct metric figure_queue = {
	.name = "queue_entries",
	.help = "What waits, as in ops.queue.",
	.type = METRIC_GAUGE,
	.label = "queue",
	.second = "state",
	.values = queue_states,
};
struct metric figure_queue_age = {
	.name = "queue_oldest_age_seconds",
	.help = "Age of the oldest that waits.",
	.type = METRIC_GAUGE,
	.label = "queue",
	.values = queues,
};
struct metric figure_peers = {
	.name = "peers",
	.help = "Peers by state, as in ops.peers.",
	.type = METRIC_GAUGE,
	.label = "state",
	.values = states,
};
struct metric figure_notify_usage = {
	.name = "notification_queue_usage_ratio",
	.help = "How full the server's notification queue is.",
	.type = METRIC_GAUGE,
};
struct metric figure_snapshot_age = {
	.name = "oldest_snapshot_age_seconds",
	.help = "Age of the oldest transaction that holds a snapshot.",
	.type = METRIC_GAUGE,
};
struct metric figure_dead_rows = {
	.name = "dead_rows",
	.help = "Rows that vacuum has yet to take away.",
	.type = METRIC_GAUGE,
	.label = "table",
	.values = churned,
};

static struct metric *const own[] = {
	&figure_leader,
	&figure_probes,
	&figure_purged,
	&figure_removed,
};

static struct metric *const cluster[] = {
	&figure_queue,
	&figure_queue_age,
	&figure_peers,
	&figure_notify_usage,
	&figure_snapshot_age,
	&figure_dead_rows,
};

void janitor_figures_register(void)
{
	pg_figures_register();
	for (size_t i = 0; i < COUNT(own); i++)
		metrics_register(own[i]);
	for (size_t i = 0; i < COUNT(cluster); i++)
		metrics_register(cluster[i]);
}

static void forget(struct metric *metric)
{
	size_t place = 0;

	do
		metric_set(metric, place++, 0);
	while (metric->label && metric->values[place]);
}

void janitor_figures_forget(void)
{
	for (size_t i = 0; i < COUNT(cluster); i++)
		forget(cluster[i]);
}
