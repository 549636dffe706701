/*
 * watch -- what the leader shows and warns of.
 *
 * Every ten seconds: the queues and peers of the whole cluster as figures, how
 * full the notification queue is (commits fail when it is full), how old the
 * oldest snapshot (vacuum takes nothing away behind it), how many dead rows
 * the busy tables carry. A limit that is passed is logged once, until it is
 * kept again. Loop thread.
 */
#ifndef POSTRIDER_WATCH_H
#define POSTRIDER_WATCH_H

#include "common/base/work.h"

struct watch;

struct watch *watch_new(struct work_pool *pool);
/* After work_pool_free. */
void watch_free(struct watch **watch);

/* The leader calls it every second. */
void watch_look(struct watch *watch);
/* We lead no longer. */
void watch_stop(struct watch *watch);

#endif
