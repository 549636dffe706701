/*
 * delivery_site -- a node with real outboxd and scripted peers to deliver to.
 *
 * Entries are put into the outbox by hand, as any writer does; peers are
 * active rows with a sealed secret. Not for several threads.
 */
#ifndef POSTRIDER_DELIVERY_SITE_H
#define POSTRIDER_DELIVERY_SITE_H

#include "tests/lib/test_db.h"
#include "tests/lib/test_node.h"
#include "tests/lib/test_peer.h"

#define RELAY_PATH "/api/federation/relay"
#define SITE_SECRET "a1b441e77440ecdb79a98e5d0ff8dc8bc426fc257e6bb88d96acd12d"

struct site {
	struct test_node *node;
	struct arena *arena;
	const char *db;
};

struct site site_begin(void);
void site_end(struct site *site);

/* A row for an active peer that listens at origin; its id. */
int64_t site_peer(struct site *site, const char *origin);

/* Entries in one transaction: NULL-ended "create a", "update a @x" (type,
 * thing, conversation). Signalled by the trigger. */
void site_enqueue(struct site *site, int64_t peer, const char *const *entries);
/* count creates named <prefix><n>. */
void site_enqueue_many(
    struct site *site, int64_t peer, const char *prefix, int count);

/* A number, and the wait for a condition, in SQL. */
int64_t site_number(struct site *site, const char *query);
bool site_until(struct site *site, const char *condition, int ms);
/* The outbox of everybody is empty, and no lease is held. */
bool site_drained(struct site *site, int ms);

/* "create a, delete b": the place-th batch a peer got, in words. */
const char *site_batch(struct site *site, struct test_peer *peer, size_t place);
/* All batches in order, parted by " | ". */
const char *site_told(struct site *site, struct test_peer *peer);
/* Events in all batches. */
size_t site_events(struct site *site, struct test_peer *peer);

#define ENTRIES(...) ((const char *const[]){ __VA_ARGS__, NULL })

#endif
