/*
 * relay_figures -- what is counted of what peers send.
 *
 * Any thread but for the registration, which comes before the first request.
 */
#ifndef POSTRIDER_RELAY_FIGURES_H
#define POSTRIDER_RELAY_FIGURES_H

#include "common/base/metrics.h"

/* Places of the label value. */
enum signature_result {
	SIGNATURE_GOOD,
	SIGNATURE_PENDING,
	SIGNATURE_BAD,
	SIGNATURE_LATE
};

extern struct metric figure_signatures; /* by enum signature_result */

void relay_figures_register(void);

/* type is NULL when it is none we know. */
void relay_figure_event(const char *type, bool accepted);

#endif
