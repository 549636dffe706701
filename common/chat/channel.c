#include <openssl/sha.h>

#include "common/base/id.h"
#include "common/chat/channel.h"

#include "common/chat/attachment.h"
#include "common/chat/event.h"

#include "common/chat/channel.sql.h"

enum { JSON_MAX = 64 << 20, EVENTS_MAX = 1000 };

/* clang-format off */
const struct shape channel_shape[] = {
	SHAPE(ID,   struct channel, id, "id"),
	SHAPE(ID,   struct channel, owner_id, "ownerId"),
	SHAPE(TEXT, struct channel, federated_id, "federatedId"),
	SHAPE(BOOL, struct channel, is_group, NULL),
	SHAPE(ID,   struct channel, pair_low, NULL),
	SHAPE(ID,   struct channel, pair_high, NULL),
	SHAPE(INT,  struct channel, seq, NULL),
	SHAPE(TIME, struct channel, created_at, "createdAt"),
	SHAPE_END(struct channel),
};

const struct shape conversation_event_shape[] = {
	SHAPE(INT,  struct conversation_event, seq, "seq"),
	SHAPE(TEXT, struct conversation_event, kind, "kind"),
	SHAPE(ID,   struct conversation_event, entity_id, "entityId"),
	SHAPE(ID,   struct conversation_event, actor_id, "actorId"),
	SHAPE(TIME, struct conversation_event, at, "at"),
	SHAPE_OPT(ID, struct conversation_event, message_id, "messageId"),
	SHAPE_END(struct conversation_event),
};
/* clang-format on */

void federated_id_of_pair(
    const char *a, const char *b, char id[FEDERATED_ID_SIZE])
{
	static const char hex[] = "0123456789abcdef";
	unsigned char hash[SHA256_DIGEST_LENGTH];
	const char *first = strcmp(a, b) <= 0 ? a : b;
	const char *second = first == a ? b : a;
	struct buf text;

	buf_init(&text, NULL, SIZE_MAX / 2);
	buf_printf(&text, "%s:%s", first, second);
	SHA256((const unsigned char *)text.data, text.len, hash);
	buf_done(&text);
	for (int i = 0; i < FEDERATED_ID_SIZE / 2; i++) {
		id[2 * i] = hex[hash[i] >> 4];
		id[2 * i + 1] = hex[hash[i] & 15];
	}
	id[FEDERATED_ID_SIZE - 1] = '\0';
}

bool channel_check_member(struct tx *tx, int64_t channel, int64_t user,
    struct channel *found, struct err *err)
{
	struct channel record;
	bool is_member;

	if (!sql_opt(tx, &SQL_channel_of_member, channel_shape, &record,
		&is_member, err, v_id(channel), v_id(user)))
		return false;
	if (!is_member)
		return err_set(err, ERR_FORBIDDEN,
		    "You are not a member of this DM channel");
	*found = record;
	return true;
}

bool channel_event(struct tx *tx, int64_t channel, const char *kind,
    int64_t entity, int64_t actor, int64_t *seq, struct err *err)
{
	const struct change change = { channel, kind, entity, actor };

	return changes_append(tx, &change, 1, seq, err);
}

static const char *canonical_id(struct arena *arena, const struct user *user)
{
	return user->home_user_id ? user->home_user_id
				  : id_text(arena, user->id);
}

/* Only a pair that concerns another node has an id there. */
static const char *pair_federated_id(
    struct arena *arena, const struct user *a, const struct user *b)
{
	char *id;

	if (!a->home_instance && !b->home_instance)
		return NULL;
	id = arena_alloc(arena, FEDERATED_ID_SIZE);
	federated_id_of_pair(
	    canonical_id(arena, a), canonical_id(arena, b), id);
	return id;
}

static int64_t opener_of(const struct channel_pair *pairs, size_t count,
    const struct channel *channel)
{
	for (size_t i = 0; i < count; i++)
		if (pairs[i].low == channel->pair_low &&
		    pairs[i].high == channel->pair_high)
			return pairs[i].opener;
	return 0;
}

/* The first event of each, and a word to its people. */
static bool channels_announce(struct tx *tx, const struct rows *made,
    const struct channel_pair *pairs, size_t count, struct err *err)
{
	const struct channel *channels = made->items;
	struct arena *arena = tx_arena(tx);
	struct change *changes =
	    arena_array(arena, made->count, sizeof(*changes));
	int64_t *people = arena_array(arena, 2 * made->count, sizeof(int64_t));
	int64_t *joined = arena_array(arena, 2 * made->count, sizeof(int64_t));
	size_t joins = 0;

	for (size_t i = 0; i < made->count; i++) {
		const struct channel *c = &channels[i];

		changes[i] = (struct change){ c->id, "channel_created", c->id,
			opener_of(pairs, count, c) };
		joined[joins] = c->id;
		people[joins++] = c->pair_low;
		if (c->pair_high == c->pair_low)
			continue;
		joined[joins] = c->id;
		people[joins++] = c->pair_high;
	}
	return changes_append(tx, changes, made->count, NULL, err) &&
	    joins_append(tx, people, joined, joins, err);
}

bool channels_make_pairs(struct tx *tx, const struct channel_pair *pairs,
    size_t count, struct err *err)
{
	struct arena *arena = tx_arena(tx);
	int64_t *lows = arena_array(arena, count, sizeof(*lows));
	int64_t *highs = arena_array(arena, count, sizeof(*highs));
	const char **ids = arena_array(arena, count, sizeof(*ids));
	struct rows made;

	for (size_t i = 0; i < count; i++) {
		lows[i] = pairs[i].low;
		highs[i] = pairs[i].high;
		ids[i] = pairs[i].federated_id;
	}
	return sql_many(tx, &SQL_channels_make_pairs, channel_shape, &made, err,
		   v_ids(lows, count), v_ids(highs, count),
		   v_texts(ids, count)) &&
	    (made.count == 0 ||
		channels_announce(tx, &made, pairs, count, err));
}

/* A pair that must be there by now. */
static bool pair_read(struct tx *tx, int64_t low, int64_t high,
    struct channel *channel, struct err *err)
{
	bool found;

	if (!sql_opt(tx, &SQL_channel_pair_find, channel_shape, channel, &found,
		err, v_id(low), v_id(high)))
		return false;
	return found || err_set(err, ERR_BUSY, "conversation is gone again");
}

/* *made: by us, not by somebody else at the same moment. */
static bool pair_make(struct tx *tx, const struct user *opener,
    const struct user *other, struct channel *channel, bool *made,
    struct err *err)
{
	struct channel_pair pair = {
		.low = opener->id < other->id ? opener->id : other->id,
		.high = opener->id < other->id ? other->id : opener->id,
		.opener = opener->id,
		.federated_id = pair_federated_id(tx_arena(tx), opener, other),
	};

	if (!channels_make_pairs(tx, &pair, 1, err) ||
	    !pair_read(tx, pair.low, pair.high, channel, err))
		return false;
	*made = channel->seq <= 1;
	return true;
}

bool channel_open_pair(struct tx *tx, const struct user *opener,
    const struct user *other, struct channel *channel, bool *created,
    struct err *err)
{
	int64_t low = opener->id < other->id ? opener->id : other->id;
	int64_t high = opener->id < other->id ? other->id : opener->id;
	struct channel pair;
	bool found = false;
	bool made = false;

	if (opener->is_deleted || other->is_deleted)
		return err_set(err, ERR_ABSENT, "User not found");
	if (!sql_opt(tx, &SQL_channel_pair_find, channel_shape, &pair, &found,
		err, v_id(low), v_id(high)))
		return false;
	if (!found && !pair_make(tx, opener, other, &pair, &made, err))
		return false;
	/* Somebody else made it at the same moment. */
	if (!found && !made && !pair_read(tx, low, high, &pair, err))
		return false;
	if (!made &&
	    !sql_none(tx, &SQL_channel_closed_set, err, v_id(pair.id),
		v_id(opener->id), v_bool(false)))
		return false;
	*channel = pair;
	*created = made;
	return true;
}

bool channel_name_pair(
    struct tx *tx, int64_t channel, const char *federated_id, struct err *err)
{
	return sql_none(tx, &SQL_channel_name_pair, err, v_id(channel),
	    v_text(federated_id));
}

bool channel_close_for(
    struct tx *tx, int64_t channel, int64_t user, struct err *err)
{
	return sql_none(tx, &SQL_channel_closed_set, err, v_id(channel),
	    v_id(user), v_bool(true));
}

bool channel_events_since(struct tx *tx, int64_t channel, int64_t since,
    int64_t limit, struct event_page *page, struct err *err)
{
	struct reach {
		int64_t seq;
		int64_t events_kept_from;
	} reach;
	static const struct shape shape[] = {
		SHAPE(INT, struct reach, seq, NULL),
		SHAPE(INT, struct reach, events_kept_from, NULL),
		SHAPE_END(struct reach),
	};
	struct event_page found = { .has_more = false };

	if (limit < 1 || limit > EVENTS_MAX)
		limit = EVENTS_MAX;
	/* The events first: what comes in between is then only told late. */
	if (!sql_many(tx, &SQL_channel_events_since, conversation_event_shape,
		&found.events, err, v_id(channel), v_int(since),
		v_int(limit + 1)) ||
	    !sql_one(tx, &SQL_channel_reach, shape, &reach, err, v_id(channel)))
		return false;
	found.seq = reach.seq;
	found.gone = since + 1 < reach.events_kept_from;
	if (found.events.count > (size_t)limit) {
		found.events.count = (size_t)limit;
		found.has_more = true;
	}
	*page = found;
	return true;
}

/* ---- the objects of the client API ---- */

struct line {
	int64_t id;
	int64_t owner_id;
	const char *federated_id;
	int64_t created_at;
	int64_t last_id;
	int64_t last_user_id;
	const char *last_content;
	int64_t last_created_at;
};

/* clang-format off */
static const struct shape line_shape[] = {
	SHAPE(ID,   struct line, id, "id"),
	SHAPE(ID,   struct line, owner_id, "ownerId"),
	SHAPE(TEXT, struct line, federated_id, "federatedId"),
	SHAPE(TIME, struct line, created_at, "createdAt"),
	SHAPE(ID,   struct line, last_id, NULL),
	SHAPE(ID,   struct line, last_user_id, NULL),
	SHAPE(TEXT, struct line, last_content, NULL),
	SHAPE(TIME, struct line, last_created_at, NULL),
	SHAPE_END(struct line),
};
/* clang-format on */

struct membership {
	int64_t dm_channel_id;
	int64_t user_id;
};

static const struct shape membership_shape[] = {
	SHAPE(ID, struct membership, dm_channel_id, NULL),
	SHAPE(ID, struct membership, user_id, NULL),
	SHAPE_END(struct membership),
};

/* Everything a list of conversations needs, in four statements. */
struct listing {
	struct rows lines;
	struct rows members;
	struct rows users;
	struct rows files;
};

static bool listing_people(struct tx *tx, struct listing *list,
    const int64_t *channels, struct err *err)
{
	const struct membership *members;
	int64_t *ids;

	if (!sql_many(tx, &SQL_channel_members, membership_shape,
		&list->members, err, v_ids(channels, list->lines.count)))
		return false;
	members = list->members.items;
	ids = arena_array(tx_arena(tx), list->members.count, sizeof(*ids));
	for (size_t i = 0; i < list->members.count; i++)
		ids[i] = members[i].user_id;
	return users_by_ids(tx, ids, list->members.count, &list->users, err);
}

static bool listing_read(struct tx *tx, int64_t channel, int64_t user,
    struct listing *list, struct err *err)
{
	const struct line *lines;
	int64_t *channels;
	int64_t *last;

	if (!sql_many(tx, &SQL_channel_lines, line_shape, &list->lines, err,
		v_id(channel), v_id(user)))
		return false;
	lines = list->lines.items;
	channels =
	    arena_array(tx_arena(tx), list->lines.count, sizeof(*channels));
	last = arena_array(tx_arena(tx), list->lines.count, sizeof(*last));
	for (size_t i = 0; i < list->lines.count; i++) {
		channels[i] = lines[i].id;
		last[i] = lines[i].last_id;
	}
	return listing_people(tx, list, channels, err) &&
	    attachments_of(tx, last, list->lines.count, &list->files, err);
}

static void put_members(
    struct json_out *out, const struct listing *list, int64_t channel)
{
	const struct membership *members = list->members.items;

	json_open_list(out, "members");
	for (size_t i = 0; i < list->members.count; i++) {
		if (members[i].dm_channel_id != channel)
			continue;
		json_put_raw(out, NULL, (struct bytes){ "", 0 });
		user_write(out->buf,
		    users_find(&list->users, members[i].user_id), false);
	}
	json_close_list(out);
}

static void put_preview(
    struct json_out *out, const struct listing *list, const struct line *line)
{
	const struct attachment *files = list->files.items;

	if (!line->last_id) {
		json_put_null(out, "lastMessage");
		return;
	}
	json_open(out, "lastMessage");
	json_put_id(out, "id", line->last_id);
	json_put_id(out, "dmChannelId", line->id);
	json_put_id(out, "userId", line->last_user_id);
	json_put_text(out, "content", line->last_content);
	json_put_int(out, "createdAt", line->last_created_at);
	json_open_list(out, "attachments");
	for (size_t i = 0; i < list->files.count; i++) {
		if (files[i].dm_message_id != line->last_id)
			continue;
		json_open(out, NULL);
		json_put_text(out, "type", files[i].mimetype);
		json_put_text(out, "filename", files[i].original_name);
		json_close(out);
	}
	json_close_list(out);
	json_close(out);
}

static void put_line(struct json_out *out, const struct listing *list,
    const struct line *line, bool federated_id)
{
	json_open(out, NULL);
	json_put_id(out, "id", line->id);
	json_put_id(out, "ownerId", line->owner_id);
	if (federated_id)
		json_put_text(out, "federatedId", line->federated_id);
	json_put_int(out, "createdAt", line->created_at);
	put_members(out, list, line->id);
	put_preview(out, list, line);
	json_close(out);
}

bool channel_json(struct tx *tx, int64_t channel, bool federated_id,
    const char **json, struct err *err)
{
	struct listing list = { .lines = { 0 } };
	struct buf text;
	struct json_out out = { .buf = &text };

	if (!listing_read(tx, channel, 0, &list, err))
		return false;
	if (list.lines.count == 0)
		return err_set(err, ERR_ABSENT, "Channel not found");
	buf_init(&text, tx_arena(tx), JSON_MAX);
	put_line(&out, &list, list.lines.items, federated_id);
	*json = text.data;
	return true;
}

bool channel_list_json(
    struct tx *tx, int64_t user, const char **json, struct err *err)
{
	struct listing list = { .lines = { 0 } };
	struct buf text;
	struct json_out out = { .buf = &text };
	const struct line *lines;

	if (!listing_read(tx, 0, user, &list, err))
		return false;
	buf_init(&text, tx_arena(tx), JSON_MAX);
	json_open_list(&out, NULL);
	lines = list.lines.items;
	for (size_t i = 0; i < list.lines.count; i++)
		put_line(&out, &list, &lines[i], false);
	json_close_list(&out);
	*json = text.data;
	return true;
}
