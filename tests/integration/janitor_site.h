/*
 * janitor_site -- a node for the tests of janitord, and words for them.
 *
 * Not for several threads.
 */
#ifndef POSTRIDER_JANITOR_SITE_H
#define POSTRIDER_JANITOR_SITE_H

#include "tests/integration/delivery_site.h"
#include "tests/lib/test_http.h"

#define INFO_PATH "/api/instance/info"

enum { SOON_MS = 8000 };

extern struct site janitor;

/* .init and .fini of a suite. */
void janitor_begin(void);
void janitor_end(void);

void janitor_sql(const char *script);
/* Rows of "table WHERE ...". */
int64_t janitor_count(const char *from);
bool janitor_soon(const char *condition);
/* Has it said that it leads? */
bool janitor_leads(const struct test_daemon *janitord, int ms);

/* A peer that failed ten times, two hours ago, with its next attempt a day
 * away. */
int64_t janitor_failing_peer(struct test_peer *peer, const char *status);

#endif
