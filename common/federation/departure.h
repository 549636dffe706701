/*
 * departure -- a person goes: deleted by himself, or by his home here.
 *
 * What is left is a tombstone that resolves to nobody and shows a fixed name.
 * He leaves his groups, which pass to the next, and a pair's other person
 * keeps what was written; friendships, requests, read states, sessions and the
 * list of instances go. full also takes his reactions, and conversations in
 * which nobody is left. Those who knew him are told; other nodes only of our
 * own people: who is at home elsewhere is that home's to tell of.
 *
 * Worker threads; one transaction.
 */
#ifndef POSTRIDER_DEPARTURE_H
#define POSTRIDER_DEPARTURE_H

#include "common/chat/user.h"
#include "common/federation/node.h"

enum departure_mode { DEPART_SOFT, DEPART_FULL };

MUST_CHECK bool person_depart(struct tx *tx, const struct node *node,
    const struct user *person, enum departure_mode mode, struct err *err);

/* The living person of this identity; *found is false when he is gone or was
 * never here. */
MUST_CHECK bool person_of_home(struct tx *tx, const char *host,
    const char *home_user_id, struct user *person, bool *found,
    struct err *err);

#endif
