/*
 * fediverse_figures -- what is counted of activities.
 */
#ifndef POSTRIDER_FEDIVERSE_FIGURES_H
#define POSTRIDER_FEDIVERSE_FIGURES_H

#include "common/base/metrics.h"

extern struct metric figure_activities; /* by outcome_class */
extern struct metric figure_activities_ended;
extern struct metric figure_activity_duration;
extern struct metric figure_activity_wait;
extern struct metric figure_domains;

void fediverse_figures_register(void);

#endif
