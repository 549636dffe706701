/*
 * rotation_site -- nodes for the tests of rotation, and words for them.
 *
 * Not for several threads.
 */
#ifndef POSTRIDER_ROTATION_SITE_H
#define POSTRIDER_ROTATION_SITE_H

#include "tests/lib/test_peer.h"
#include "tests/lib/test_trust.h"

#define ROTATE "/api/federation/peer/rotate"
#define RELAY "/api/federation/relay"
#define IN_PROGRESS \
	"{\"error\":\"A secret rotation is already in progress \xe2\x80\x94 " \
	"wait for it to complete\",\"statusCode\":409}"
#define DONE "{\"success\":true,\"gracePeriodMs\":900000}"
#define TAKEN "{\"accepted\":true,\"gracePeriodMs\":900000}"
#define OLD "00000000000000000000000000000000000000000000000000000000000000aa"
#define THEIRS \
	"11111111111111111111111111111111111111111111111111111111111111bb"
#define OTHER "22222222222222222222222222222222222222222222222222222222222222cc"

enum { WAIT_MS = 15000, ANSWERS_MAX = 8 };

/* What the scripted peer answers to its n-th rotate, and to relays. */
struct script {
	struct test_peer_answer rotate[ANSWERS_MAX];
	size_t count;
	size_t next;
	struct test_peer_answer relay; /* status -1: takes them */
};

extern struct world *nova, *orbit;
extern struct test_peer *luna;
extern struct script script;

/* .fini of a suite. */
void rotation_site_end(void);

/* nova and a scripted peer that knows OLD; its host decides whose rotation
 * stands. */
void one_node(const char *host);
/* nova and orbit, peers. */
void two_nodes(void);

/* The scripted peer's. */
const char *origin(void);
/* Of the world's first peer, as text. */
const char *row(struct world *world, const char *expression);
/* "none", or who began it and how far it is: "us unknown", "peer grace". */
const char *state(struct world *world);
bool becomes(struct world *world, const char *condition);
void hours_pass(struct world *world, double hours);

/* The place-th new secret that the scripted peer got. */
const char *sent(size_t place);
bool is_signed_with(const char *path, size_t place, const char *secret);
/* Status of an empty relay. */
int relay(struct world *world, const char *from, const char *secret);
/* Something for the peer, sent by outboxd: which secret signs it? */
void expect_delivery_with(const char *secret);
/* nova and orbit take from each other what it signs. */
void expect_both(const char *secret, int status);
/* They have the same one, and still do when the grace is over. */
void expect_one_secret(void);

#endif
