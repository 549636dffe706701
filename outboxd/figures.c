#include "outboxd/figures.h"

enum { PAGE_MAX = 4 << 20 };

/* clang-format off */
static const char *const outcomes[] = {
	"accepted", "refused_for_now", "refused_for_good", "transport",
	"expired", "cancelled", NULL
};
static const char *const reasons[] = {
	"transport", "auth", "paused", "batch", NULL
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
};

void figures_register(void)
{
	for (size_t i = 0; i < COUNT(figures); i++)
		metrics_register(figures[i]);
}

/* ---- the page ---- */

static int64_t on_head(
    struct http_exchange *ex, struct http_reply *reply, void *arg UNUSED)
{
	const struct http_head *head = http_head(ex);
	struct buf *page = ARENA_NEW(http_arena(ex), struct buf);

	reply->status = 404;
	if (strcmp(head->path, "/metrics") != 0)
		return -1;
	buf_init(page, http_arena(ex), PAGE_MAX);
	metrics_write(page);
	reply->status = 200;
	reply->content_type = "text/plain; version=0.0.4";
	reply->body = buf_bytes(page);
	return -1;
}

/* on_head answers everything. */
static void on_request(struct http_exchange *ex, void *arg UNUSED)
{
	http_reply(ex, &(struct http_reply){ .status = 404 });
}

static void on_error(struct arena *arena UNUSED, int status UNUSED,
    struct http_reply *reply UNUSED, void *arg UNUSED)
{
}

struct http_server *figures_serve(
    struct loop *loop, const char *address, struct err *err)
{
	static const struct http_server_def def = {
		.limits = &http_limits_default,
		.on_head = on_head,
		.on_request = on_request,
		.on_error = on_error,
	};
	struct http_server *server = http_server_new(loop, &def, err);

	if (server && !http_server_listen(server, address, err))
		http_server_free(&server);
	return server;
}
