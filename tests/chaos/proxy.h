/*
 * proxy -- the line between the nodes, and what is wrong with it.
 *
 * It stands at a node's origin and brings requests to the node's real port,
 * one connection a request. While it is faulty it drops, delays, cuts after
 * delivery, delivers twice and stalls. What a relay presented, and what the
 * sender was told of it, is kept in order. Any thread.
 */
#ifndef POSTRIDER_CHAOS_PROXY_H
#define POSTRIDER_CHAOS_PROXY_H

#include "tests/chaos/chaos.h"

enum line_kind { LINE_PRESENTED, LINE_ACCEPTED, LINE_REFUSED };

struct proxy_line {
	enum line_kind kind;
	const char *event_type;
	const char *entity;
	const char *content; /* NULL: none */
	const char *reason;  /* of a refusal */
};

struct proxy_counts {
	int64_t requests;
	int64_t faults;
};

struct proxy;

/* host: of the node behind. */
struct proxy *proxy_new(const char *host, int behind, uint64_t seed);
void proxy_free(struct proxy **proxy);

const char *proxy_origin(const struct proxy *proxy);
/* How many relays in a thousand go wrong; 0: none. */
void proxy_set_faults(struct proxy *proxy, int permille);
/* Off, nothing more is kept. */
void proxy_set_log(struct proxy *proxy, bool on);
struct proxy_counts proxy_counts(struct proxy *proxy);
/* A copy of what was seen so far, texts included. */
struct rows proxy_lines(struct proxy *proxy, struct arena *arena);

#endif
