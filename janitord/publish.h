/*
 * publish -- the mutation log becomes readable (federation_sync_entries).
 *
 * Whoever asks what he has missed does the same (common/federation/sync), so
 * this only keeps it short for him: rows of the log get their time in the
 * order of sync within seconds of their commit. Loop thread.
 */
#ifndef POSTRIDER_PUBLISH_H
#define POSTRIDER_PUBLISH_H

#include "common/base/work.h"

struct publisher;

struct publisher *publisher_new(struct work_pool *pool);
/* After work_pool_free. */
void publisher_free(struct publisher **publisher);

/* The leader calls it every second. */
void publisher_look(struct publisher *publisher);

#endif
