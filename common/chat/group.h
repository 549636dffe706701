/*
 * group -- conversations of up to ten people.
 *
 * A group has an owner, always: whoever owns it and leaves passes it on. When
 * its last member leaves it is marked deleted. Whoever changes who is in it
 * holds its row first (group_open; a batch of another node by its range), so
 * the limit holds whoever hurries. Every change posts a notice, appends to
 * the line of changes and tells the people who gained or lost the group; each
 * function does any number of changes with a fixed number of statements.
 *
 * A request and a relayed event end here; who may do what is checked before.
 *
 * Worker threads; records live in the transaction's arena.
 */
#ifndef POSTRIDER_GROUP_H
#define POSTRIDER_GROUP_H

#include "common/chat/channel.h"

enum { GROUP_MEMBERS_MAX = 10, GROUP_OTHERS_MIN = 2 };

struct group_member {
	int64_t user_id;
	bool is_deleted;
};

struct group {
	struct channel channel;
	struct rows members; /* struct group_member, by id */
};

/* Locks it for a member: ERR_FORBIDDEN for strangers, ERR_INVALID for pairs. */
MUST_CHECK bool group_open(struct tx *tx, int64_t channel, int64_t user,
    struct group *group, struct err *err);
MUST_CHECK bool group_check_owner(
    const struct group *group, int64_t user, struct err *err);
bool group_has(const struct group *group, int64_t user);
/* Who owns it after somebody has left: the first of the others, 0: nobody. */
int64_t group_heir(const struct group *group, int64_t leaver);

/* Whom may person not invite: neither friends nor in the pair channel (0:
 * none) with him. ERR_FORBIDDEN if there is one. */
MUST_CHECK bool group_check_invited(struct tx *tx, int64_t person,
    const int64_t *people, size_t count, int64_t pair, struct err *err);

/* New groups. people holds the owner, too. Fills id. ERR_BUSY when somebody
 * else made one of that federated id at the same moment. */
struct group_start {
	const char *federated_id; /* NULL: none so far */
	int64_t owner;
	int64_t actor;
	const int64_t *people;
	size_t count;
	int64_t id;
};
MUST_CHECK bool groups_start(
    struct tx *tx, struct group_start *starts, size_t count, struct err *err);
/* Notices of everybody who was added at the start. */
MUST_CHECK bool group_introduce(
    struct tx *tx, const struct group_start *start, struct err *err);

/* Gives it a federated id if another node is concerned and it has none. */
MUST_CHECK bool group_federate(struct tx *tx, int64_t channel, struct err *err);

/* Somebody who is not in it joins, somebody who is leaves. */
struct membership {
	int64_t channel;
	int64_t person;
	int64_t actor;
	const char *reason; /* of a removal: "leave", "kick" */
	int64_t at;	    /* of a removal: ms, by who says so */
};
MUST_CHECK bool members_join(struct tx *tx, const struct membership *joins,
    size_t count, struct err *err);
MUST_CHECK bool members_leave(struct tx *tx, const struct membership *leaves,
    size_t count, struct err *err);

/* In their order: the last one of a group stands. */
struct ownership {
	int64_t channel;
	int64_t owner;
	int64_t actor; /* who owned it */
};
MUST_CHECK bool owners_change(struct tx *tx, const struct ownership *changes,
    size_t count, struct err *err);

/* Groups that nobody here took part in for a while, as they are now. */
MUST_CHECK bool groups_renew(struct tx *tx, const struct group_start *starts,
    size_t count, struct err *err);

#endif
