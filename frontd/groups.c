#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/federation/outbox_group.h"
#include "common/federation/person.h"
#include "frontd/target.h"

enum { BODY_MAX = 1024 * 1024, INSTANCE_MAX = 512 };

static struct outbox_group told(const struct request *req, int64_t channel)
{
	return (struct outbox_group){ .node = req->node, .channel = channel };
}

static bool reply_group(
    struct request *req, int status, int64_t channel, struct err *err)
{
	const char *json;

	return channel_json(req->tx, channel, true, &json, err) &&
	    reply_json(req, status, json);
}

/* ---- POST /api/dm/group ---- */

static bool others_check(const struct request *req, const int64_t *ids,
    size_t count, struct err *err)
{
	for (size_t i = 0; i < count; i++) {
		if (ids[i] == req->user.id)
			return err_set(
			    err, ERR_INVALID, "You are in the group anyway");
		for (size_t j = 0; j < i; j++)
			if (ids[j] == ids[i])
				return err_set(
				    err, ERR_INVALID, "A user is there twice");
	}
	return true;
}

static bool others_read(struct request *req, int64_t *ids, size_t *count,
    int64_t *pair, struct err *err)
{
	struct json_in in = json_read(req->arena, req->body, err);
	const struct json *list =
	    json_list(&in, "users", GROUP_MEMBERS_MAX - 1);

	*pair = json_id_opt(&in, "fromDmChannelId");
	if (!json_done(&in))
		return false;
	*count = json_count(list);
	if (*count < GROUP_OTHERS_MIN)
		return err_set(err, ERR_INVALID,
		    "A group DM needs at least %d other users",
		    GROUP_OTHERS_MIN);
	return targets_find(req, list, ids, err) &&
	    others_check(req, ids, *count, err);
}

static bool group_post(struct request *req, struct err *err)
{
	int64_t people[GROUP_MEMBERS_MAX];
	struct group_start start = {
		.owner = req->user.id,
		.actor = req->user.id,
		.people = people,
	};
	struct outbox_group group;
	size_t others;
	int64_t pair;

	if (!others_read(req, people, &others, &pair, err) ||
	    !group_check_invited(
		req->tx, req->user.id, people, others, pair, err))
		return false;
	people[others] = req->user.id;
	start.count = others + 1;
	if (!groups_start(req->tx, &start, 1, err) ||
	    !group_introduce(req->tx, &start, err) ||
	    !group_federate(req->tx, start.id, err))
		return false;
	group = told(req, start.id);
	return outbox_add_start(req->tx, &group, req->user.id, err) &&
	    reply_group(req, 201, start.id, err);
}

/* ---- POST /api/dm/:id/members ---- */

static bool join_check(
    const struct group *group, const struct user *target, struct err *err)
{
	if (group_has(group, target->id))
		return err_set(
		    err, ERR_INVALID, "This user is already a member");
	if (group->members.count >= GROUP_MEMBERS_MAX)
		return err_set(err, ERR_INVALID,
		    "A group DM has at most %d members", GROUP_MEMBERS_MAX);
	return true;
}

static bool members_post(struct request *req, struct err *err)
{
	struct outbox_group out = told(req, path_id(req, "id"));
	struct membership join = { .channel = out.channel,
		.actor = req->user.id };
	struct user target;
	struct group group;

	/* People before conversations: batches of peers lock in this order. */
	if (!target_read(req, &target, err) ||
	    !group_open(req->tx, out.channel, req->user.id, &group, err) ||
	    !group_check_owner(&group, req->user.id, err) ||
	    !join_check(&group, &target, err) ||
	    !group_check_invited(req->tx, req->user.id, &target.id, 1, 0, err))
		return false;
	join.person = target.id;
	return members_join(req->tx, &join, 1, err) &&
	    group_federate(req->tx, out.channel, err) &&
	    outbox_add_joins(req->tx, &out, req->user.id, &target.id, 1, err) &&
	    reply_group(req, 200, out.channel, err);
}

/* ---- leaving, removing, handing over ---- */

static bool leave(struct request *req, const struct outbox_group *out,
    int64_t person, const char *reason, struct err *err)
{
	struct membership leave = {
		.channel = out->channel,
		.person = person,
		.actor = req->user.id,
		.reason = reason,
		.at = clock_wall_ms(),
	};

	/* Others are told while he is still among them. */
	return outbox_add_leave(req->tx, out, &leave, err) &&
	    members_leave(req->tx, &leave, 1, err);
}

static bool hand_over(struct request *req, const struct outbox_group *out,
    int64_t owner, struct err *err)
{
	struct ownership change = {
		.channel = out->channel,
		.owner = owner,
		.actor = req->user.id,
	};

	return outbox_add_owner(req->tx, out, &change, err) &&
	    owners_change(req->tx, &change, 1, err);
}

/* DELETE /api/dm/:id/members */
static bool members_delete(struct request *req, struct err *err)
{
	struct outbox_group out = told(req, path_id(req, "id"));
	struct group group;
	int64_t heir;

	if (!group_open(req->tx, out.channel, req->user.id, &group, err))
		return false;
	heir = group.channel.owner_id == req->user.id
	    ? group_heir(&group, req->user.id)
	    : 0;
	return leave(req, &out, req->user.id, "leave", err) &&
	    (!heir || hand_over(req, &out, heir, err)) && reply_success(req);
}

/* The id in the path is of this node, or with homeInstance of that one. */
static bool path_person(struct request *req, int64_t *id, struct err *err)
{
	const char *instance = query_text(req, "homeInstance");
	struct person person = { .home_user_id = path_text(req, "userId") };
	int port;

	*id = path_id(req, "userId");
	if (!*instance)
		return true;
	person.host = instance_host(req->arena, instance, &port);
	if (!person.host)
		return err_set(err, ERR_INVALID, "Invalid home instance");
	if (!persons_find(req->tx, req->node, &person, 1, err))
		return false;
	*id = person.id;
	return true;
}

/* DELETE /api/dm/:id/members/:userId */
static bool member_delete(struct request *req, struct err *err)
{
	struct outbox_group out = told(req, path_id(req, "id"));
	struct group group;
	int64_t person;

	if (!path_person(req, &person, err) ||
	    !group_open(req->tx, out.channel, req->user.id, &group, err) ||
	    !group_check_owner(&group, req->user.id, err))
		return false;
	if (person == req->user.id)
		return err_set(
		    err, ERR_INVALID, "Leave the group to remove yourself");
	if (!group_has(&group, person))
		return err_set(err, ERR_ABSENT, "This user is not a member");
	return leave(req, &out, person, "kick", err) && reply_success(req);
}

/* PATCH /api/dm/:id */
static bool group_patch(struct request *req, struct err *err)
{
	struct json_in in = json_read(req->arena, req->body, err);
	int64_t owner = json_id(&in, "ownerId");
	struct outbox_group out = told(req, path_id(req, "id"));
	struct group group;

	if (!json_done(&in) ||
	    !group_open(req->tx, out.channel, req->user.id, &group, err) ||
	    !group_check_owner(&group, req->user.id, err))
		return false;
	if (!group_has(&group, owner))
		return err_set(err, ERR_INVALID, "The owner must be a member");
	return (owner == req->user.id || hand_over(req, &out, owner, err)) &&
	    reply_group(req, 200, out.channel, err);
}

/* clang-format off */
const struct route group_routes[] = {
	{ "POST",   "/api/dm/group",               USER, BODY_MAX, 0, 0, group_post },
	{ "PATCH",  "/api/dm/:id",                 USER, BODY_MAX, 0, 0, group_patch },
	{ "POST",   "/api/dm/:id/members",         USER, BODY_MAX, 0, 0, members_post },
	{ "DELETE", "/api/dm/:id/members",         USER, 1024,     0, 0, members_delete },
	{ "DELETE", "/api/dm/:id/members/:userId", USER, 1024,     0, 0, member_delete },
	{ .method = NULL }
};
/* clang-format on */
