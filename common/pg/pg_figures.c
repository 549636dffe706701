#include "common/pg/pg_figures.h"

#include "common/pg/schema.h"

struct metric figure_db_up = {
	.name = "db_up",
	.help = "Whether the database answered when it was last called.",
	.type = METRIC_GAUGE,
};
struct metric figure_listener_up = {
	.name = "listener_up",
	.help = "Whether notifications are being listened for.",
	.type = METRIC_GAUGE,
};
struct metric figure_listener_reconnects = {
	.name = "listener_reconnects_total",
	.help = "Times the listening connection came back.",
	.type = METRIC_COUNTER,
};

void pg_figures_register(void)
{
	metrics_schema_set(schema_needed);
	metrics_register(&figure_db_up);
	metrics_register(&figure_listener_up);
	metrics_register(&figure_listener_reconnects);
}
