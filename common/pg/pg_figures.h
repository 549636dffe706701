/*
 * pg_figures -- what every daemon shows of its connections.
 *
 * Any thread but for the registration, which is the loop's, before the first
 * connection.
 */
#ifndef POSTRIDER_PG_FIGURES_H
#define POSTRIDER_PG_FIGURES_H

#include "common/base/metrics.h"

/* Did the last one that was opened open? 0 once the listening one is lost. */
extern struct metric figure_db_up;
extern struct metric figure_listener_up;
extern struct metric figure_listener_reconnects;

void pg_figures_register(void);

#endif
