/*
 * friend_list -- a person's friends and requests as the client API shows them.
 *
 * Worker threads; texts live in the transaction's arena.
 */
#ifndef POSTRIDER_FRIEND_LIST_H
#define POSTRIDER_FRIEND_LIST_H

#include "common/chat/user.h"

/* Friend and FriendRequest objects of the client API, as JSON texts: all
 * friends, all pending requests, of a person. */
MUST_CHECK bool friends_json(
    struct tx *tx, int64_t person, const char **json, struct err *err);
MUST_CHECK bool friend_requests_json(
    struct tx *tx, int64_t person, const char **json, struct err *err);

#endif
