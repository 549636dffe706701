#include "common/chat/channel.h"
#include "common/federation/event_group.h"

enum { ROSTER_MAX = 64 };

static const char no_membership[] = "missing_membership_payload";
static const char no_ownership[] = "missing_ownership_payload";

/* A pair's id must not become a group's. */
static bool is_pair_id(const char *id)
{
	size_t len = strlen(id);

	return len == FEDERATED_ID_SIZE - 1 &&
	    strspn(id, "0123456789abcdef") == len;
}

static bool is_usable(const char *text)
{
	return text && *text && json_units(text) <= HOME_USER_ID_MAX;
}

/* Who acts comes first: attribution before anything else is looked at. */
static bool actor_read(const struct relay_batch *batch,
    struct relay_event *event, const struct json *who, const char *reason,
    struct err *err)
{
	const char *person = json_string(json_member(who, "homeUserId"));
	const char *instance = json_string(json_member(who, "homeInstance"));

	if (json_type(who) != JSON_OBJECT)
		return err_refuse(err, ERR_INVALID, reason, "nobody acts");
	if (!event_attribute(batch, event, person, instance, err))
		return false;
	return is_usable(person) ||
	    err_refuse(err, ERR_INVALID, reason, "the actor is nobody");
}

/* Which group, which event, when. */
static bool head_read(const struct relay_batch *batch,
    struct relay_event *event, struct group_news *news, const char *reason,
    struct err *err)
{
	const char *id = json_string(json_member(event->value, "federatedId"));
	int64_t at;

	if (!is_usable(id) || is_pair_id(id) || !is_usable(event->message_id))
		return err_refuse(
		    err, ERR_INVALID, reason, "no usable federated id or id");
	event->federated_id = arena_text(batch->arena, id);
	event->place = PLACE_GROUP;
	if (!json_whole(json_member(event->value, "timestamp"), &at))
		at = 0;
	news->at = time_capped(at);
	event->detail = news;
	return true;
}

static bool person_read(const struct relay_batch *batch,
    struct relay_event *event, const struct json *who, size_t room,
    const char *reason, struct err *err)
{
	event->people = arena_array(batch->arena, room, sizeof(*event->people));
	event->people_count = 1;
	return mention_read(batch, who, &event->people[0]) ||
	    err_refuse(err, ERR_INVALID, reason, "the person is nobody");
}

/* ---- member_add ---- */

static bool roster_read(const struct relay_batch *batch,
    struct relay_event *event, const struct json *group, struct err *err)
{
	const struct json *list = json_member(group, "members");
	size_t count = json_count(list);

	if (!mention_read(
		batch, json_member(group, "owner"), &event->people[1]))
		return err_refuse(err, ERR_INVALID, no_membership,
		    "the group's owner is nobody");
	for (size_t i = 0; i < count; i++)
		if (!mention_read(
			batch, json_element(list, i), &event->people[2 + i]))
			return err_refuse(err, ERR_INVALID, no_membership,
			    "member %zu is nobody", i);
	event->people_count = 2 + count;
	return true;
}

bool member_add_read(
    const struct relay_batch *batch, struct relay_event *event, struct err *err)
{
	const struct json *membership = json_member(event->value, "membership");
	const struct json *group = json_member(event->value, "group");
	size_t count = json_count(json_member(group, "members"));
	struct group_news *news = ARENA_NEW(batch->arena, struct group_news);

	if (!actor_read(batch, event, json_member(membership, "addedBy"),
		no_membership, err) ||
	    !head_read(batch, event, news, no_membership, err))
		return false;
	if (count > ROSTER_MAX)
		return err_refuse(err, ERR_INVALID, "max_members_exceeded",
		    "%zu members", count);
	if (!person_read(batch, event, json_member(membership, "user"),
		count + 2, no_membership, err))
		return false;
	event->place = PLACE_ROSTER;
	news->has_roster = json_type(group) == JSON_OBJECT;
	return !news->has_roster || roster_read(batch, event, group, err);
}

/* ---- member_remove, ownership_transfer ---- */

static bool is_himself(const struct relay_event *event)
{
	const struct mention *who = &event->people[0];

	return strcmp(who->host, event->actor.host) == 0 &&
	    strcmp(who->home_user_id, event->actor.home_user_id) == 0;
}

bool member_remove_read(
    const struct relay_batch *batch, struct relay_event *event, struct err *err)
{
	const struct json *membership = json_member(event->value, "membership");
	const struct json *user = json_member(membership, "user");
	const struct json *actor = json_member(membership, "removedBy");
	const char *reason = json_string(json_member(membership, "reason"));
	struct group_news *news = ARENA_NEW(batch->arena, struct group_news);

	if (json_type(actor) != JSON_OBJECT)
		actor = user;
	if (!actor_read(batch, event, actor, no_membership, err) ||
	    !head_read(batch, event, news, no_membership, err) ||
	    !person_read(batch, event, user, 1, no_membership, err))
		return false;
	if (!is_himself(event) && reason && strcmp(reason, "leave") == 0)
		return err_set(
		    err, ERR_FORBIDDEN, "nobody leaves for somebody else");
	news->reason = is_himself(event) ? "leave" : "kick";
	return true;
}

bool ownership_transfer_read(
    const struct relay_batch *batch, struct relay_event *event, struct err *err)
{
	const struct json *ownership = json_member(event->value, "ownership");
	struct group_news *news = ARENA_NEW(batch->arena, struct group_news);

	return actor_read(batch, event, json_member(ownership, "previousOwner"),
		   no_ownership, err) &&
	    head_read(batch, event, news, no_ownership, err) &&
	    person_read(batch, event, json_member(ownership, "newOwner"), 1,
		no_ownership, err);
}
