/*
 * outbox_friend -- friend requests and friendships on their way out.
 *
 * Only the home of whoever acts tells the other's home; an account that is at
 * home elsewhere is told to its home (homeward), which does the rest. Nobody
 * else hears of it, and nobody when both are at home here.
 *
 * Worker threads, in the transaction of the change, after the pair's lock.
 */
#ifndef POSTRIDER_OUTBOX_FRIEND_H
#define POSTRIDER_OUTBOX_FRIEND_H

#include "common/federation/outbox.h"

enum friend_news_type {
	NEWS_REQUEST_CREATE,
	NEWS_REQUEST_UPDATE,
	NEWS_REQUEST_CANCEL,
	NEWS_FRIEND_ADD,
	NEWS_FRIEND_REMOVE
};

struct friend_news {
	enum friend_news_type type;
	int64_t from; /* who asked, or who ends it */
	int64_t to;
	int64_t actor;
	const char *status; /* of an update: accepted, declined */
	int64_t created_at; /* of the request; of the friendship or its end */
	int64_t at;	    /* when it happened */
};

/* except_host has told us; may be NULL. */
MUST_CHECK bool outbox_add_friend(struct tx *tx, const struct node *node,
    const struct friend_news *news, const char *except_host, struct err *err);

#endif
