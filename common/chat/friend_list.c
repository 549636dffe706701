#include "common/chat/friend_list.h"

#include "common/chat/friend.h"

#include "common/chat/friend_list.sql.h"

enum { JSON_MAX = 16 << 20 };

struct friendship {
	int64_t person;
	int64_t added_at;
};

static const struct shape friendship_shape[] = {
	SHAPE(ID, struct friendship, person, NULL),
	SHAPE(TIME, struct friendship, added_at, NULL),
	SHAPE_END(struct friendship),
};

/* The object of a person with one member more. */
static void put_friend(
    struct json_out *out, const struct user *user, int64_t added_at)
{
	json_open(out, NULL);
	user_put(out, user, false);
	json_put_int(out, "addedAt", added_at);
	json_close(out);
}

bool friends_json(
    struct tx *tx, int64_t person, const char **json, struct err *err)
{
	struct rows rows, users;
	const struct friendship *all;
	int64_t *ids;
	struct buf text;
	struct json_out out = { .buf = &text };

	if (!sql_many(tx, &SQL_friends_of, friendship_shape, &rows, err,
		v_id(person)))
		return false;
	all = rows.items;
	ids = arena_array(tx_arena(tx), rows.count, sizeof(*ids));
	for (size_t i = 0; i < rows.count; i++)
		ids[i] = all[i].person;
	if (!users_by_ids(tx, ids, rows.count, &users, err))
		return false;
	buf_init(&text, tx_arena(tx), JSON_MAX);
	json_open_list(&out, NULL);
	for (size_t i = 0; i < rows.count; i++)
		put_friend(
		    &out, users_find(&users, all[i].person), all[i].added_at);
	json_close_list(&out);
	*json = text.data;
	return true;
}

static void put_request(struct json_out *out,
    const struct friend_request *request, const struct user *other)
{
	json_open(out, NULL);
	json_put_id(out, "id", request->id);
	json_put_id(out, "fromId", request->from_id);
	json_put_id(out, "toId", request->to_id);
	json_put_text(out, "status", request->status);
	json_put_int(out, "createdAt", request->created_at);
	json_open(out, "user");
	user_put(out, other, false);
	json_close(out);
	json_close(out);
}

bool friend_requests_json(
    struct tx *tx, int64_t person, const char **json, struct err *err)
{
	struct rows rows, users;
	const struct friend_request *all;
	int64_t *others;
	struct buf text;
	struct json_out out = { .buf = &text };

	if (!sql_many(tx, &SQL_friend_requests_pending, friend_request_shape,
		&rows, err, v_id(person)))
		return false;
	all = rows.items;
	others = arena_array(tx_arena(tx), rows.count, sizeof(*others));
	for (size_t i = 0; i < rows.count; i++)
		others[i] =
		    all[i].from_id == person ? all[i].to_id : all[i].from_id;
	if (!users_by_ids(tx, others, rows.count, &users, err))
		return false;
	buf_init(&text, tx_arena(tx), JSON_MAX);
	json_open_list(&out, NULL);
	for (size_t i = 0; i < rows.count; i++)
		put_request(&out, &all[i], users_find(&users, others[i]));
	json_close_list(&out);
	*json = text.data;
	return true;
}
