/*
 * event_group -- who is in a group, told by other nodes: member_add,
 * member_remove, ownership_transfer (specification, section 6).
 *
 * Whose node speaks is not enough: who is named as acting must be entitled.
 * Only a member adds; only the owner removes others and passes the group on;
 * everybody may leave. A group that is not known here begins with the roster
 * of a member_add, if its owner is at home at the node that speaks (or ours,
 * with an account declared there) and somebody of this node is in it. Where
 * nobody of this node was any more the roster renews what is known, if the
 * node that speaks had a part in it.
 *
 * Each event counts once, whatever the group looks like by now (heard.h). Who
 * has left meanwhile is not brought back by an addition from before. What
 * comes homeward is sent on by us.
 *
 * Worker threads.
 */
#ifndef POSTRIDER_EVENT_GROUP_H
#define POSTRIDER_EVENT_GROUP_H

#include "common/federation/range.h"

/* What events of groups say beside their people: people[0] joins, leaves or
 * becomes the owner; with a roster people[1] is its owner, the others its
 * members. */
struct group_news {
	const char *reason;
	int64_t at; /* by the sender's clock, never to come */
	bool has_roster;
};

bool member_add_read(const struct relay_batch *batch, struct relay_event *event,
    struct err *err);
bool member_remove_read(const struct relay_batch *batch,
    struct relay_event *event, struct err *err);
bool ownership_transfer_read(const struct relay_batch *batch,
    struct relay_event *event, struct err *err);

bool member_add_admit(const struct relay_range *range,
    struct relay_event *event, struct err *err);
bool member_remove_admit(const struct relay_range *range,
    struct relay_event *event, struct err *err);
bool ownership_transfer_admit(const struct relay_range *range,
    struct relay_event *event, struct err *err);

/* May its roster say who is in the group, as far as the event tells? */
bool group_may_start(const struct relay_range *range,
    const struct relay_event *event, struct err *err);
/* May the node that speaks tell a group anew that nobody here is in? */
bool group_may_renew(const struct relay_range *range,
    const struct relay_event *event, const struct conversation *conversation);
/* Those of its people who are or can be members, each once. */
size_t group_people(
    const struct relay_event *event, const struct person **people, size_t room);

MUST_CHECK bool member_add_apply(struct relay_range *run, struct err *err);
MUST_CHECK bool member_remove_apply(struct relay_range *run, struct err *err);
MUST_CHECK bool ownership_transfer_apply(
    struct relay_range *run, struct err *err);

#endif
