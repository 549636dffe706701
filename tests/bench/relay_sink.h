/*
 * relay_sink -- a peer that takes every event as cheaply as can be.
 *
 * One thread, one poll loop; it looks for message ids by their text and never
 * parses. It measures from the first request to the last expected event.
 */
#ifndef POSTRIDER_RELAY_SINK_H
#define POSTRIDER_RELAY_SINK_H

#include "common/base/buf.h"

struct relay_sink;

struct relay_sink *relay_sink_new(void);
void relay_sink_free(struct relay_sink **sink);
int relay_sink_port(const struct relay_sink *sink);

/* Forget what came; expect so many events. */
void relay_sink_reset(struct relay_sink *sink, int64_t expected);
/* Waits for them; events a second. */
double relay_sink_rate(struct relay_sink *sink);
/* Waits for them; steady microseconds when the last one was there. */
int64_t relay_sink_last_us(struct relay_sink *sink);

#endif
