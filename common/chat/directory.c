#include "common/chat/directory.h"

#include "common/chat/user.h"

#include "common/chat/directory.sql.h"

enum { JSON_MAX = 4 << 20 };

bool directory_search_json(struct tx *tx, int64_t seeker, const char *words,
    const char **json, struct err *err)
{
	struct rows rows = { 0 };
	const struct user *all;
	struct buf text;
	struct json_out out = { .buf = &text };

	if (*words &&
	    !sql_many(tx, &SQL_directory_search, user_shape, &rows, err,
		v_id(seeker), v_text(words)))
		return false;
	all = rows.items;
	buf_init(&text, tx_arena(tx), JSON_MAX);
	json_open_list(&out, NULL);
	for (size_t i = 0; i < rows.count; i++) {
		json_open(&out, NULL);
		user_put(&out, &all[i], false);
		json_close(&out);
	}
	json_close_list(&out);
	*json = text.data;
	return true;
}

/* ---- browsing ---- */

struct listed {
	int64_t id;
	const char *username;
	const char *display_name;
	const char *avatar;
	const char *banner;
	const char *avatar_color;
	const char *bio;
	const char *status;
	const char *custom_status;
	int64_t created_at;
	int64_t mutual_friends;
	const char *relationship;
	int64_t request;
};

/* clang-format off */
static const struct shape listed_shape[] = {
	SHAPE(ID,   struct listed, id, NULL),
	SHAPE(TEXT, struct listed, username, NULL),
	SHAPE(TEXT, struct listed, display_name, NULL),
	SHAPE(TEXT, struct listed, avatar, NULL),
	SHAPE(TEXT, struct listed, banner, NULL),
	SHAPE(TEXT, struct listed, avatar_color, NULL),
	SHAPE(TEXT, struct listed, bio, NULL),
	SHAPE(TEXT, struct listed, status, NULL),
	SHAPE(TEXT, struct listed, custom_status, NULL),
	SHAPE(TIME, struct listed, created_at, NULL),
	SHAPE(INT,  struct listed, mutual_friends, NULL),
	SHAPE(TEXT, struct listed, relationship, NULL),
	SHAPE(ID,   struct listed, request, NULL),
	SHAPE_END(struct listed),
};
/* clang-format on */

static void put_listed(struct json_out *out, const struct listed *who)
{
	json_open(out, NULL);
	json_put_id(out, "id", who->id);
	json_put_text(out, "username", who->username);
	json_put_text(out, "displayName", who->display_name);
	json_put_text(out, "avatar", who->avatar);
	json_put_text(out, "banner", who->banner);
	json_put_text(out, "avatarColor", who->avatar_color);
	json_put_text(out, "bio", who->bio);
	json_put_text(out, "status", who->status);
	json_put_text(out, "customStatus", who->custom_status);
	json_put_int(out, "createdAt", who->created_at);
	/* At home here. */
	json_put_null(out, "homeInstance");
	json_put_null(out, "homeUserId");
	json_put_int(out, "mutualFriendCount", who->mutual_friends);
	json_put_int(out, "mutualSpaceCount", 0);
	json_put_text(out, "relationship", who->relationship);
	if (who->request)
		json_put_id(out, "requestId", who->request);
	json_close(out);
}

bool directory_browse_json(struct tx *tx, int64_t seeker, const char *words,
    int64_t limit, int64_t offset, const char **json, struct err *err)
{
	struct extent {
		int64_t total;
	} extent;
	static const struct shape extent_shape[] = {
		SHAPE(INT, struct extent, total, NULL),
		SHAPE_END(struct extent),
	};
	struct rows rows;
	const struct listed *all;
	struct buf text;
	struct json_out out = { .buf = &text };

	if (!sql_one(tx, &SQL_directory_total, extent_shape, &extent, err,
		v_id(seeker), v_text(words)) ||
	    !sql_many(tx, &SQL_directory_page, listed_shape, &rows, err,
		v_id(seeker), v_text(words), v_int(limit), v_int(offset)))
		return false;
	all = rows.items;
	buf_init(&text, tx_arena(tx), JSON_MAX);
	json_open(&out, NULL);
	json_open_list(&out, "users");
	for (size_t i = 0; i < rows.count; i++)
		put_listed(&out, &all[i]);
	json_close_list(&out);
	json_put_int(&out, "total", extent.total);
	json_close(&out);
	*json = text.data;
	return true;
}
