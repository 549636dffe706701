#include "common/chat/group.h"

#include "common/base/id.h"
#include "common/chat/event.h"
#include "common/chat/notice.h"

#include "common/chat/group.sql.h"

static const struct shape member_shape[] = {
	SHAPE(ID, struct group_member, user_id, NULL),
	SHAPE(BOOL, struct group_member, is_deleted, NULL),
	SHAPE_END(struct group_member),
};

/* ---- one group, held ---- */

bool group_open(struct tx *tx, int64_t channel, int64_t user,
    struct group *group, struct err *err)
{
	struct group opened;
	bool found;

	if (!sql_opt(tx, &SQL_group_lock, channel_shape, &opened.channel,
		&found, err, v_id(channel)) ||
	    !sql_many(tx, &SQL_group_members, member_shape, &opened.members,
		err, v_id(channel)))
		return false;
	if (!found || !group_has(&opened, user))
		return err_set(err, ERR_FORBIDDEN,
		    "You are not a member of this DM channel");
	if (!opened.channel.is_group)
		return err_set(err, ERR_INVALID, "This is not a group DM");
	*group = opened;
	return true;
}

bool group_check_owner(const struct group *group, int64_t user, struct err *err)
{
	return group->channel.owner_id == user ||
	    err_set(err, ERR_FORBIDDEN, "Only the owner may do this");
}

bool group_has(const struct group *group, int64_t user)
{
	const struct group_member *members = group->members.items;

	for (size_t i = 0; i < group->members.count; i++)
		if (members[i].user_id == user)
			return true;
	return false;
}

int64_t group_heir(const struct group *group, int64_t leaver)
{
	const struct group_member *members = group->members.items;

	for (size_t i = 0; i < group->members.count; i++)
		if (members[i].user_id != leaver && !members[i].is_deleted)
			return members[i].user_id;
	return 0;
}

bool group_check_invited(struct tx *tx, int64_t person, const int64_t *people,
    size_t count, int64_t pair, struct err *err)
{
	struct rows rows;

	return sql_many(tx, &SQL_group_uninvited, member_shape, &rows, err,
		   v_id(person), v_ids(people, count), v_id(pair)) &&
	    (rows.count == 0 ||
		err_set(err, ERR_FORBIDDEN,
		    "You can only add friends to a group DM"));
}

bool group_federate(struct tx *tx, int64_t channel, struct err *err)
{
	return sql_none(tx, &SQL_group_federate, err, v_id(channel));
}

/* ---- columns ---- */

struct pairs {
	int64_t *channels;
	int64_t *people;
	size_t count;
};

static struct pairs pairs_of_starts(
    struct arena *arena, const struct group_start *starts, size_t count)
{
	struct pairs pairs = { .count = 0 };
	size_t total = 0;

	for (size_t i = 0; i < count; i++)
		total += starts[i].count;
	pairs.channels = arena_array(arena, total, sizeof(int64_t));
	pairs.people = arena_array(arena, total, sizeof(int64_t));
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < starts[i].count; j++) {
			pairs.channels[pairs.count] = starts[i].id;
			pairs.people[pairs.count++] = starts[i].people[j];
		}
	return pairs;
}

static struct pairs pairs_of_memberships(
    struct arena *arena, const struct membership *all, size_t count)
{
	struct pairs pairs = {
		.channels = arena_array(arena, count, sizeof(int64_t)),
		.people = arena_array(arena, count, sizeof(int64_t)),
		.count = count,
	};

	for (size_t i = 0; i < count; i++) {
		pairs.channels[i] = all[i].channel;
		pairs.people[i] = all[i].person;
	}
	return pairs;
}

static bool insert_members(
    struct tx *tx, const struct pairs *pairs, struct err *err)
{
	return sql_none(tx, &SQL_members_insert, err,
	    v_ids(pairs->channels, pairs->count),
	    v_ids(pairs->people, pairs->count));
}

/* ---- beginning ---- */

/* Rows come in any order: each is known by its federated id. */
static bool take_ids(struct group_start *starts, size_t count,
    const struct rows *made, struct err *err)
{
	const struct channel *rows = made->items;

	if (made->count != count)
		return err_set(err, ERR_BUSY, "%zu of %zu groups were made",
		    made->count, count);
	if (count == 1)
		starts[0].id = rows[0].id;
	for (size_t i = 0; count > 1 && i < count; i++)
		for (size_t j = 0; j < count; j++)
			if (strcmp(starts[i].federated_id,
				rows[j].federated_id) == 0)
				starts[i].id = rows[j].id;
	return true;
}

static bool insert_groups(
    struct tx *tx, struct group_start *starts, size_t count, struct err *err)
{
	struct arena *arena = tx_arena(tx);
	const char **ids = arena_array(arena, count, sizeof(*ids));
	int64_t *owners = arena_array(arena, count, sizeof(*owners));
	struct rows made;

	for (size_t i = 0; i < count; i++) {
		ids[i] = starts[i].federated_id;
		owners[i] = starts[i].owner;
	}
	return sql_many(tx, &SQL_groups_insert, channel_shape, &made, err,
		   v_texts(ids, count), v_ids(owners, count)) &&
	    take_ids(starts, count, &made, err);
}

bool groups_start(
    struct tx *tx, struct group_start *starts, size_t count, struct err *err)
{
	struct arena *arena = tx_arena(tx);
	struct change *changes = arena_array(arena, count, sizeof(*changes));
	struct pairs pairs;

	if (count == 0)
		return true;
	if (!insert_groups(tx, starts, count, err))
		return false;
	for (size_t i = 0; i < count; i++)
		changes[i] = (struct change){ starts[i].id, "channel_created",
			starts[i].id, starts[i].actor };
	pairs = pairs_of_starts(arena, starts, count);
	return insert_members(tx, &pairs, err) &&
	    changes_append(tx, changes, count, NULL, err) &&
	    joins_append(tx, pairs.people, pairs.channels, pairs.count, err);
}

bool groups_renew(struct tx *tx, const struct group_start *starts, size_t count,
    struct err *err)
{
	struct arena *arena = tx_arena(tx);
	int64_t *ids = arena_array(arena, count, sizeof(*ids));
	int64_t *owners = arena_array(arena, count, sizeof(*owners));
	struct pairs pairs = pairs_of_starts(arena, starts, count);

	for (size_t i = 0; i < count; i++) {
		ids[i] = starts[i].id;
		owners[i] = starts[i].owner;
	}
	return count == 0 ||
	    (sql_none(tx, &SQL_groups_revive, err, v_ids(ids, count),
		 v_ids(pairs.channels, pairs.count),
		 v_ids(pairs.people, pairs.count)) &&
		insert_members(tx, &pairs, err) &&
		sql_none(tx, &SQL_owners_set, err, v_ids(ids, count),
		    v_ids(owners, count)) &&
		joins_append(
		    tx, pairs.people, pairs.channels, pairs.count, err));
}

/* ---- the line of changes ---- */

/* Posts the notices, and appends each with the change it tells of. */
static bool tell(struct tx *tx, struct notice *notices, size_t count,
    const char *kind, bool notice_first, struct err *err)
{
	struct change *changes =
	    arena_array(tx_arena(tx), 2 * count, sizeof(*changes));

	if (!notices_post(tx, notices, count, err))
		return false;
	for (size_t i = 0; i < count; i++) {
		const struct notice *n = &notices[i];
		size_t at = 2 * i;

		changes[at + !notice_first] = (struct change){ n->channel,
			"message_created", n->message, n->actor };
		changes[at + notice_first] =
		    (struct change){ n->channel, kind, n->person, n->actor };
	}
	return changes_append(tx, changes, 2 * count, NULL, err);
}

static struct notice *notices_of(struct arena *arena, enum notice_kind kind,
    const struct membership *all, size_t count)
{
	struct notice *notices = arena_array(arena, count, sizeof(*notices));

	for (size_t i = 0; i < count; i++)
		notices[i] = (struct notice){
			.channel = all[i].channel,
			.kind = kind,
			.actor = all[i].actor,
			.person = all[i].person,
			.reason = all[i].reason,
		};
	return notices;
}

bool group_introduce(
    struct tx *tx, const struct group_start *start, struct err *err)
{
	struct arena *arena = tx_arena(tx);
	struct notice *notices =
	    arena_array(arena, start->count, sizeof(*notices));
	struct change *changes =
	    arena_array(arena, start->count, sizeof(*changes));
	size_t count = 0;

	for (size_t i = 0; i < start->count; i++)
		if (start->people[i] != start->owner)
			notices[count++] = (struct notice){
				.channel = start->id,
				.kind = NOTICE_ADDED,
				.actor = start->actor,
				.person = start->people[i],
			};
	if (!notices_post(tx, notices, count, err))
		return false;
	for (size_t i = 0; i < count; i++)
		changes[i] = (struct change){ start->id, "message_created",
			notices[i].message, start->actor };
	return changes_append(tx, changes, count, NULL, err);
}

/* ---- coming and going ---- */

bool members_join(struct tx *tx, const struct membership *joins, size_t count,
    struct err *err)
{
	struct arena *arena = tx_arena(tx);
	struct pairs pairs = pairs_of_memberships(arena, joins, count);
	struct notice *notices = notices_of(arena, NOTICE_ADDED, joins, count);

	return count == 0 ||
	    (insert_members(tx, &pairs, err) &&
		tell(tx, notices, count, "member_added", false, err) &&
		joins_append(tx, pairs.people, pairs.channels, count, err));
}

static bool tell_leavers(struct tx *tx, const struct membership *leaves,
    size_t count, struct err *err)
{
	struct arena *arena = tx_arena(tx);
	struct user_change *changes =
	    arena_array(arena, count, sizeof(*changes));

	for (size_t i = 0; i < count; i++)
		changes[i] = (struct user_change){ leaves[i].person,
			"channel_left", id_text(arena, leaves[i].channel),
			leaves[i].actor };
	return user_changes_append(tx, changes, count, err);
}

bool members_leave(struct tx *tx, const struct membership *leaves, size_t count,
    struct err *err)
{
	struct arena *arena = tx_arena(tx);
	struct pairs pairs = pairs_of_memberships(arena, leaves, count);
	int64_t *times = arena_array(arena, count, sizeof(*times));
	struct notice *notices =
	    notices_of(arena, NOTICE_REMOVED, leaves, count);

	for (size_t i = 0; i < count; i++)
		times[i] = leaves[i].at;
	return count == 0 ||
	    (tell(tx, notices, count, "member_removed", true, err) &&
		sql_none(tx, &SQL_members_delete, err,
		    v_ids(pairs.channels, count), v_ids(pairs.people, count),
		    v_times(times, count)) &&
		sql_none(
		    tx, &SQL_groups_bury, err, v_ids(pairs.channels, count)) &&
		tell_leavers(tx, leaves, count, err));
}

bool owners_change(struct tx *tx, const struct ownership *changes, size_t count,
    struct err *err)
{
	struct arena *arena = tx_arena(tx);
	int64_t *channels = arena_array(arena, count, sizeof(*channels));
	int64_t *owners = arena_array(arena, count, sizeof(*owners));
	struct notice *notices = arena_array(arena, count, sizeof(*notices));

	for (size_t i = 0; i < count; i++) {
		channels[i] = changes[i].channel;
		owners[i] = changes[i].owner;
		notices[i] = (struct notice){
			.channel = changes[i].channel,
			.kind = NOTICE_OWNER,
			.actor = changes[i].actor,
			.person = changes[i].owner,
		};
	}
	return count == 0 ||
	    (sql_none(tx, &SQL_owners_set, err, v_ids(channels, count),
		 v_ids(owners, count)) &&
		tell(tx, notices, count, "owner_changed", false, err));
}
