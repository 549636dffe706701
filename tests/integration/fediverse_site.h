/*
 * fediverse_site -- a node that delivers activities, an actor of its, and
 * receivers that a test scripts.
 *
 * Rows are enqueued through the SQL function, as an application does, unless
 * a test says otherwise. Receivers listen on loopback.
 */
#ifndef POSTRIDER_FEDIVERSE_SITE_H
#define POSTRIDER_FEDIVERSE_SITE_H

#include "common/fediverse/actor.h"
#include "common/fediverse/drain_one.h"
#include "tests/lib/test_db.h"
#include "tests/lib/test_node.h"
#include "tests/lib/test_peer.h"

#define INBOX "/users/bob/inbox"

enum { FEDIVERSE_SOON_MS = 15000 };

struct fediverse_site {
	struct test_node *node;
	struct arena *arena;
	const char *db;
	struct conn *conn;
	struct home home;
	struct node_key *key;
	struct actor actor; /* alice */
	struct pkey *alice; /* her public key */
};

/* The setting fediverse is on. */
struct fediverse_site fediverse_site_begin(void);
void fediverse_site_end(struct fediverse_site *site);

/* Owes activity to the inbox as alice; the row's id. */
const char *fediverse_owe(
    struct fediverse_site *site, const char *activity, const char *inbox);
/* The same with an end of its own: transport, shared. NULL: none. */
const char *fediverse_owe_as(struct fediverse_site *site, const char *activity,
    const char *inbox, const char *transport, bool shared);

/* One text or number of a row: "status", "attempts". */
const char *fediverse_row(
    struct fediverse_site *site, const char *id, const char *column);
bool fediverse_until(
    struct fediverse_site *site, const char *condition, int ms);

/* With outbound_drain_one. delivery NULL: by row and settings. */
bool fediverse_drain_one(struct fediverse_site *site,
    const struct outbound_delivery *delivery, struct outbound_item *item);

/* NULL: the request carries a signature of alice's, in the style; else why
 * not. */
const char *fediverse_unsigned(struct fediverse_site *site,
    const struct test_peer_request *request, enum sig_style *style);

/*
 * A receiver that answers by path: /code/410 that status, /only/cavage and
 * /only/rfc9421 401 to the other style, /busy/429 with Retry-After,
 * /endless/200 without an end, /to/307/inbox a redirect (/to/307 without
 * Location), /hop/2 two of them, /circle one to itself, /cut nothing, /hold/500
 * after so many ms; anything else 202.
 */
struct test_peer *fediverse_receiver(const char *host);
const char *fediverse_inbox(struct fediverse_site *site,
    const struct test_peer *receiver, const char *path);

struct test_daemon *fediverse_outboxd(struct fediverse_site *site);
/* Waits until the condition is true of the row. */
bool fediverse_becomes(
    struct fediverse_site *site, const char *id, const char *condition);
/* What waits for its time is due now. */
void fediverse_now(struct fediverse_site *site);

#endif
