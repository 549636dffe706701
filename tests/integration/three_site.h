/*
 * three_site -- two nodes of ours, a peer that plays false on request, and one
 * that has nothing to do with any of it.
 *
 * nova (alice, ann) and orbit (bob) run both daemons; luna (mia) and sol are
 * scripted. Everybody trusts everybody. alice owns a group with the three
 * others. luna keeps what it gets and can be told to fail; its requests are
 * signed with the secret that the node gave it.
 */
#ifndef POSTRIDER_THREE_SITE_H
#define POSTRIDER_THREE_SITE_H

#include "tests/lib/test_peer.h"
#include "tests/lib/test_trust.h"

enum { THREE_WAIT_MS = 20000 };

struct three {
	struct arena *arena;
	struct world *nova, *orbit;
	struct test_peer *luna, *sol;
	int luna_status; /* of its answers to batches; 0: takes everything */
	struct test_person alice, ann, bob;
	const char *group;	  /* its id at nova */
	const char *federated_id; /* everywhere */
};

/* Skips the test without a database. */
struct three *three_begin(void);
void three_end(struct three **three);

/* A call of a person at a node; the status. */
int three_call(struct three *three, struct world *world,
    const struct test_person *who, const char *method, const char *path,
    const char *body);
/* The group's id at a node. */
const char *three_group_at(struct three *three, struct world *world);
void three_say(struct three *three, struct world *world,
    const struct test_person *who, const char *text);
/* Waits until the query's boolean b is true there. */
void three_until(struct three *three, struct world *world, const char *query);
/* Waits until the group has these members there: usernames without domain of
 * natives, home ids of others as names, the owner with a star. */
void three_until_members(
    struct three *three, struct world *world, const char *members);
/* Waits until nothing is left to send. */
void three_until_quiet(struct three *three, struct world *world);

/* Events that a scripted peer has got: of a type, about a message's text or
 * somebody's home id; NULL: any. */
size_t three_got(struct three *three, struct test_peer *peer, const char *type,
    const char *text);
/* What luna says to a node: the content of "events"; the answer's body. */
const char *three_luna_says(
    struct three *three, struct world *world, const char *events);

#endif
