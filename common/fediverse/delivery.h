/*
 * delivery -- OutboundDelivery: how a row travels.
 *
 * A way of delivery is a table of two functions that take turns: prepare makes
 * the next request of an attempt, answered looks at what came back and says
 * whether there is another one to make (a second style of signature, a
 * redirect). In between whoever runs the attempt puts the request on the wire:
 * outboxd on its loop, outbound_drain_one by itself. What one attempt needs
 * lives in its arena.
 *
 * A further way is one file and one line in the list of delivery.c.
 */
#ifndef POSTRIDER_FEDIVERSE_DELIVERY_H
#define POSTRIDER_FEDIVERSE_DELIVERY_H

#include "common/fediverse/outbound.h"
#include "common/fediverse/signature.h"
#include "common/net/client.h"
#include "common/net/url.h"

enum {
	DELIVERY_TIMEOUT_MS = 20000,
	DELIVERY_CONNECT_MS = 5000,
	DELIVERY_STALL_S = 10, /* Lemmy works up to nine */
	DELIVERY_ANSWER_MAX = 64 * 1024,
	DELIVERY_HOPS_MAX = 3,
	DELIVERY_HEADERS_MAX = 8
};

/* One attempt of one row. */
struct delivery_try {
	struct arena *arena;
	const struct home *home;
	const struct outbound_item *item;
	/* The actor's key, when the way needs one; NULL: it has none. */
	const struct pkey *key;
	/* The style to begin with, whether it is remembered to work, and
	 * whether the other one has been tried. */
	enum sig_style style;
	bool style_known;
	bool knocked_twice;
	/* Where it has been led; the last is where the next request goes. */
	const char *urls[DELIVERY_HOPS_MAX + 1];
	size_t url_count;
	bool barred; /* an operator blocked that server */
	/* What prepare made. */
	struct http_header headers[DELIVERY_HEADERS_MAX];
	struct client_request request;
	/* What it came to; style as text when a signature was accepted. */
	struct outcome outcome;
	const char *style_worked;
	bool style_failed;
};

struct outbound_delivery {
	const char *name;
	bool needs_key;
	/* Worker thread. False: nothing is sent, the outcome stands. */
	bool (*prepare)(struct delivery_try *attempt);
	/* Any thread, does not block. True: prepare the next request. */
	bool (*answered)(
	    struct delivery_try *attempt, const struct client_result *result);
};

extern const struct outbound_delivery delivery_noop;
extern const struct outbound_delivery delivery_signed;
extern const struct outbound_delivery delivery_webhook;

/* By name; NULL: no such way. */
const struct outbound_delivery *outbound_delivery_find(const char *name);

/* The beginning of an attempt. */
void delivery_begin(struct delivery_try *attempt, struct arena *arena,
    const struct home *home, const struct outbound_item *item);
/* The style to knock with first: of the domain, else of the settings. */
void delivery_style(
    struct delivery_try *attempt, const struct outbound_domain *domain);

/* What its actor signs with; NULL when it has none, or its key does not open.
 * To be freed. */
MUST_CHECK bool delivery_key(struct tx *tx, const struct home *home,
    const struct outbound_item *item, struct pkey **key, struct err *err);

/* What its end is to the queue. */
struct outbound_result delivery_result(const struct delivery_try *attempt);
/* Before prepare, once it was led elsewhere: may that server be asked? */
MUST_CHECK bool delivery_hop_look(
    struct delivery_try *attempt, struct tx *tx, struct err *err);

/* The row ends here and nothing more is sent: our own affair. Returns false.
 */
bool delivery_fail(struct delivery_try *attempt, const char *text);
/* Where it stands now; false, and the outcome stands: no inbox is there. */
MUST_CHECK bool delivery_target(
    struct delivery_try *attempt, struct origin *origin, const char **path);
/* The request to where it stands now, with count headers made. */
void delivery_request(struct delivery_try *attempt, size_t count);
/* What the answer, or its absence, comes to; status and reason as text. */
void delivery_conclude(
    struct delivery_try *attempt, const struct client_result *result);
/* A redirect that may be followed is, and true is returned; another one is
 * the outcome. Call only for a status of 3xx. */
bool delivery_redirect(
    struct delivery_try *attempt, const struct client_result *result);

#endif
