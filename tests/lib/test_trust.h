/*
 * test_trust -- a node with both daemons and an administrator, and requests
 * that peers sign.
 *
 * Everything lives in the world's arena.
 */
#ifndef POSTRIDER_TEST_TRUST_H
#define POSTRIDER_TEST_TRUST_H

#include "tests/lib/test_http.h"
#include "tests/lib/test_node.h"

struct world {
	struct arena *arena;
	struct test_node *node;
	struct test_daemon *frontd;
	struct test_daemon *outboxd;
	const char *token; /* of the administrator */
};

/* settings as for test_frontd; policy NULL leaves "verify". */
struct world *world_new(
    const char *host, const char *policy, const char *const *settings);
void world_free(struct world **world);

/* ---- the handshake ---- */

struct test_reply world_initiate(struct world *world, const char *origin);
struct test_reply world_accept(
    struct world *world, const char *origin, const char *secret);
/* The same on a thread of its own; world_ended waits for its end. */
struct world_call;
struct world_call *world_initiate_begin(
    struct world *world, const char *origin);
struct world_call *world_accept_begin(
    struct world *world, const char *origin, const char *secret);
struct test_reply world_ended(struct world_call **call);

/* Rotation, by the administrator. */
struct test_reply world_rotate(struct world *world, const char *origin);
struct world_call *world_rotate_begin(struct world *world, const char *origin);
/* The same by the peer, signed with its secret. */
struct test_reply world_rotate_by(struct world *world, const char *origin,
    const char *secret, const char *fresh);

/* "" when there is no such peer. */
const char *world_status(struct world *world, const char *origin);
/* The opened secrets of a peer's row; NULL: none. */
const char *world_secret(struct world *world, const char *origin);
const char *world_other_secret(struct world *world, const char *origin);
/* One SQL statement on its database. */
void world_sql(struct world *world, const char *format, ...) PRINTF(2, 3);

/* ---- signed requests ---- */

struct signed_request {
	const char *path;
	const char *origin;
	const char *secret;
	const char *body;
	const char *nonce;     /* NULL: a fresh one; "": none */
	const char *timestamp; /* NULL: now */
	const char *signature; /* NULL: the right one */
	int port;	       /* 0: the node's first */
};

struct test_reply world_send(
    struct world *world, const struct signed_request *request);
/* An empty relay. */
struct test_reply world_relay(
    struct world *world, const char *origin, const char *secret);
/* A countering accept; stands adds yourSecretStands. */
struct test_reply world_counter(struct world *world, const char *origin,
    const char *offered, const char *signer, bool stands);

/* Member of a JSON text; NULL: absent. */
const char *member_text(
    struct arena *arena, struct bytes json, const char *name);

#endif
