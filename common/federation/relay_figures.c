#include "common/federation/relay_figures.h"

/* clang-format off */
static const char *const types[] = {
	"create/accepted", "create/refused",
	"update/accepted", "update/refused",
	"delete/accepted", "delete/refused",
	"reaction_add/accepted", "reaction_add/refused",
	"reaction_remove/accepted", "reaction_remove/refused",
	"read_state_update/accepted", "read_state_update/refused",
	"file_rejected/accepted", "file_rejected/refused",
	"dm_typing_start/accepted", "dm_typing_start/refused",
	"dm_typing_stop/accepted", "dm_typing_stop/refused",
	"other/accepted", "other/refused", NULL
};
static const char *const results[] = {
	"good", "pending", "bad", "out_of_window", NULL
};
/* clang-format on */

static struct metric events = {
	.name = "relay_events_total",
	.help = "Events of peers, by what became of them.",
	.type = METRIC_COUNTER,
	.label = "type",
	.second = "outcome",
	.values = types,
};
struct metric figure_signatures = {
	.name = "signature_checks_total",
	.help = "Signatures of known peers, by the secret they were made with.",
	.type = METRIC_COUNTER,
	.label = "result",
	.values = results,
};

void relay_figures_register(void)
{
	metrics_register(&events);
	metrics_register(&figure_signatures);
}

/* A type that the list lacks ends at its last place, other/refused. */
void relay_figure_event(const char *type, bool accepted)
{
	char value[64];

	snprintf(value, sizeof(value), "%s/%s", type ? type : "other",
	    accepted ? "accepted" : "refused");
	metric_add(&events, metric_place(&events, value), 1);
}
