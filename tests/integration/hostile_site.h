/*
 * hostile_site -- a node with one peer, luna, and means to misbehave.
 *
 * The node is nova with frontd, outboxd and the administrator alice; luna
 * has no daemon, her secret is known. Relay bodies are signed anew unless a
 * test says otherwise. hostile_state() digests every table a stranger could
 * hope to change: equal before and after, nothing happened.
 */
#ifndef POSTRIDER_HOSTILE_SITE_H
#define POSTRIDER_HOSTILE_SITE_H

#include "tests/lib/test_trust.h"

#define HOSTILE_LUNA "http://luna.localhost:9"
#define HOSTILE_SECRET "luna-secret"
#define HOSTILE_RELAY "/api/federation/relay"
#define HOSTILE_ACCEPT "/api/federation/peer/accept"

struct hostile {
	struct world *world;
	struct arena *arena;
	int port;
	const char *alice; /* id of the administrator */
};

/* settings as for test_frontd; the policy is "open" while luna comes. */
struct hostile hostile_begin(const char *const *settings);
void hostile_end(struct hostile *site);

/* events is the content of the list. */
const char *hostile_body(struct hostile *site, const char *events);
struct test_reply hostile_relay(struct hostile *site, const char *events);
struct test_reply hostile_send(struct hostile *site, const char *body);
/* A whole signed request as bytes, to be sent as often as one likes. */
struct bytes hostile_request(struct hostile *site, const char *body);

/* A create of zed of luna to alice. */
const char *hostile_create(
    struct hostile *site, const char *id, const char *content);

const char *hostile_joined(
    struct hostile *site, const char *const *events, size_t count);
/* Rewrites the first occurrence of what in an event. */
const char *hostile_with(
    struct hostile *site, const char *event, const char *what, const char *by);
const char *hostile_repeated(
    struct hostile *site, const char *what, size_t times);

const char *hostile_state(struct hostile *site);
int64_t hostile_number(struct hostile *site, const char *query);
/* length letters that do not compress. */
const char *hostile_noise(struct hostile *site, size_t length);
/* Lines of frontd's log that hold text. */
int hostile_lines(struct hostile *site, const char *text);

#endif
