/*
 * talk -- our node as nova, a scripted peer as orbit, and what nova sends.
 *
 * alice acts through the client API. Before comparing with a record, every id
 * becomes #1, #2 ... in the order in which it first shows, so that what was
 * equal must still be equal, every time becomes #t, a group's id #g, and the
 * names of the recorded hosts become those of this test.
 */
#ifndef POSTRIDER_TALK_H
#define POSTRIDER_TALK_H

#include "tests/lib/test_http.h"
#include "tests/lib/test_node.h"
#include "tests/lib/test_peer.h"
#include "tests/wire/recording.h"

#define TALK_RELAY "/api/federation/relay"
#define TALK_BOB "385898137274384384"

struct talk {
	struct arena *arena;
	struct test_node *node;
	struct test_peer *peer;
	struct test_person alice;
	int port;
	int failures; /* batches the peer refuses with 503 first */
	bool rejects; /* the next batch's events, with unknown_message */
	const char *secret;
	const char *channel;
};

/* Skips the test without the recordings; a pair of alice and bob is open. */
void talk_begin(struct talk *talk);
void talk_end(struct talk *talk);

void talk_sql(struct talk *talk, const char *text);
/* As alice. */
struct test_reply talk_call(
    struct talk *talk, const char *method, const char *path, const char *body);
/* Writes a message; its id. */
const char *talk_write(struct talk *talk, const char *body);
void talk_edit(struct talk *talk, const char *id, const char *content);
void talk_erase(struct talk *talk, const char *id);

/* The place-th batch that the peer got, rightly signed. */
struct test_peer_request talk_batch(struct talk *talk, size_t place);
/* The body that nova sent as the place-th batch of a case, typing left out. */
const char *talk_recorded(struct talk *talk, const char *name, size_t place);
void talk_expect(struct talk *talk, const char *recorded,
    const struct test_peer_request *sent);

#endif
