/*
 * inbox_site -- a node with an actor, and a foreign server that delivers.
 *
 * The foreign server is scripted: it shows actors at /users/..., whatever
 * their document says, and signs with keys of its own.
 */
#ifndef POSTRIDER_INBOX_SITE_H
#define POSTRIDER_INBOX_SITE_H

#include "common/fediverse/signature.h"
#include "tests/lib/test_peer.h"
#include "tests/lib/test_trust.h"

struct key_pair {
	const char *private_pem;
	const char *public_pem;
};

/* What the foreign server answers to a path; the default: 404. */
struct page {
	const char *path;
	struct test_peer_answer answer;
};

enum { SITE_PAGES_MAX = 8 };

struct inbox_site {
	struct world *world;
	struct arena *arena;
	struct test_peer *luna;
	const char *origin;   /* luna's */
	const char *bob;      /* an actor there */
	const char *alice;    /* ours */
	const char *alice_id; /* her UUID */
	struct key_pair key;  /* bob's */
	struct page pages[SITE_PAGES_MAX];
	size_t page_count;
};

/* settings of frontd; bob's document is shown. */
void inbox_site_begin(struct inbox_site *site, const char *const *settings);
void inbox_site_end(struct inbox_site *site);

struct key_pair key_pair_fresh(struct arena *arena);

/* A later page of a path replaces an earlier one. */
void inbox_shows(struct inbox_site *site, const char *path,
    const struct test_peer_answer *answer);
/* The usual document of an actor of luna's, with bob's key unless given. */
const char *inbox_actor(
    struct inbox_site *site, const char *name, const struct key_pair *key);
/* It is shown with the media type of activities. */
void inbox_shows_actor(
    struct inbox_site *site, const char *name, const struct key_pair *key);

struct parcel {
	const char *path;   /* NULL: the shared inbox */
	const char *body;   /* NULL: a Create of bob's with a fresh id */
	const char *sent;   /* another body than was signed; or NULL */
	const char *key_id; /* NULL: bob's */
	const struct key_pair *key; /* NULL: bob's */
	enum sig_style style;
	const char *host; /* signed and sent; NULL: ours */
	int64_t age_s;
	const char *type; /* NULL: application/activity+json */
	bool is_unsigned;
};

struct test_reply inbox_deliver(
    struct inbox_site *site, const struct parcel *parcel);

/* {"id":origin/activities/id,"type":type,"actor":bob,"object":object}; object
 * is JSON text. */
const char *inbox_activity(struct inbox_site *site, const char *id,
    const char *type, const char *object);

int64_t inbox_number(struct inbox_site *site, const char *query);

#endif
