/*
 * person -- who an event speaks of, as rows of users.
 *
 * A person is (home user id, host), always both. People of our own host are
 * found by id only. Others are found by their identity; failing that, for
 * people of the node that speaks, by a registered account of that domain and
 * name that has no home user id yet, which it then gets. Whoever is still
 * missing becomes a stub. A deleted identity never comes back. A bound id is
 * never overwritten. Profiles only fill what is empty.
 *
 * Everything is done for many people at once, in sorted order, so that
 * batches that introduce the same people neither deadlock nor double them.
 *
 * Worker threads; records live in the transaction's arena.
 */
#ifndef POSTRIDER_PERSON_H
#define POSTRIDER_PERSON_H

#include "common/federation/node.h"
#include "common/pg/sql.h"

enum { HOME_USER_ID_MAX = 256 };

struct person {
	/* who, and what the event says about him */
	const char *host;
	const char *home_user_id;
	const char *username;
	const char *display_name;
	const char *avatar;
	const char *avatar_color;
	const char *banner;
	const char *bio;
	bool wanted; /* persons_make shall make a row if there is none */
	/* what was found */
	int64_t id; /* 0: nobody yet */
	bool is_native;
	bool is_stub; /* has no account here */
	bool is_gone;
	const char *has_display_name;
	const char *has_avatar;
	const char *has_avatar_color;
	const char *has_banner;
	const char *has_bio;
	const char *replicated_instances;
};

/* Looks all of them up. */
MUST_CHECK bool persons_find(struct tx *tx, const struct node *node,
    struct person *people, size_t count, struct err *err);

/* Rows and profiles for those who are wanted, after persons_find. source is
 * the node that speaks; NULL: we ourselves, without profiles. */
MUST_CHECK bool persons_make(struct tx *tx, const struct node *node,
    const struct origin *source, struct person *people, size_t count,
    struct err *err);

/* Has somebody with these replicated_instances an account at this origin? */
bool instances_declare(struct arena *arena, const char *replicated_instances,
    const struct origin *origin);

/* Calls take for the host of each declared instance. */
void instances_each(struct arena *arena, const char *replicated_instances,
    void (*take)(void *arg, const char *host, int port), void *arg);

#endif
