/*
 * target -- whom a request means.
 *
 * Somebody of this node by his id, or anybody by home user id and home
 * instance, both together. Deleted people are nobody.
 */
#ifndef POSTRIDER_TARGET_H
#define POSTRIDER_TARGET_H

#include "common/base/json.h"
#include "frontd/request.h"

/* userId, or homeUserId and homeInstance: a person of another node gets a row
 * if he has none. */
MUST_CHECK bool target_of(struct request *req, struct json_in *in,
    struct user *target, struct err *err);
/* The same of the whole body. */
MUST_CHECK bool target_read(
    struct request *req, struct user *target, struct err *err);

/* A living person by account name: alice, or bob@chat.example in any spelling
 * of the host. */
MUST_CHECK bool target_by_name(struct request *req, const char *said,
    struct user *target, struct err *err);

/* Ids of people that a list of {id, homeUserId, homeInstance} names, who must
 * have rows. */
MUST_CHECK bool targets_find(struct request *req, const struct json *list,
    int64_t *ids, struct err *err);

#endif
