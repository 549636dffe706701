#include "common/chat/notice.h"

#include "common/chat/user.h"

#include "common/chat/notice.sql.h"

enum { CONTENT_MAX = 4096 };

struct posted {
	int64_t id;
};

static const struct shape posted_shape[] = {
	SHAPE(ID, struct posted, id, NULL),
	SHAPE_END(struct posted),
};

/* The account's name without its domain stands in for a name to show. */
static const char *name_of(struct arena *arena, const struct user *user)
{
	if (user->is_deleted)
		return "Deleted User";
	if (user->display_name && *user->display_name)
		return user->display_name;
	return arena_textn(arena, user->username, strcspn(user->username, "@"));
}

static const char *content_of(
    struct arena *arena, const struct notice *notice, const struct user *person)
{
	static const char *const events[] = {
		[NOTICE_ADDED] = "member_added",
		[NOTICE_REMOVED] = "member_removed",
		[NOTICE_OWNER] = "owner_changed",
	};
	bool owner = notice->kind == NOTICE_OWNER;
	struct buf text;
	struct json_out out = { .buf = &text };

	buf_init(&text, arena, CONTENT_MAX);
	json_open(&out, NULL);
	json_put_text(&out, "event", events[notice->kind]);
	json_put_id(
	    &out, owner ? "newOwnerId" : "targetUserId", notice->person);
	json_put_text(&out, owner ? "newOwnerDisplayName" : "targetDisplayName",
	    name_of(arena, person));
	if (notice->kind == NOTICE_REMOVED)
		json_put_text(&out, "reason", notice->reason);
	json_close(&out);
	assert(buf_ok(&text));
	return text.data;
}

bool notices_post(
    struct tx *tx, struct notice *notices, size_t count, struct err *err)
{
	struct arena *arena = tx_arena(tx);
	int64_t *channels = arena_array(arena, count, sizeof(*channels));
	int64_t *actors = arena_array(arena, count, sizeof(*actors));
	int64_t *people = arena_array(arena, count, sizeof(*people));
	const char **contents = arena_array(arena, count, sizeof(*contents));
	struct rows users, rows;
	const struct posted *posted;

	for (size_t i = 0; i < count; i++)
		people[i] = notices[i].person;
	if (!users_by_ids(tx, people, count, &users, err))
		return false;
	for (size_t i = 0; i < count; i++) {
		channels[i] = notices[i].channel;
		actors[i] = notices[i].actor;
		contents[i] = content_of(
		    arena, &notices[i], users_find(&users, notices[i].person));
	}
	if (count == 0)
		return true;
	if (!sql_many(tx, &SQL_notices_insert, posted_shape, &rows, err,
		v_ids(channels, count), v_ids(actors, count),
		v_texts(contents, count)))
		return false;
	assert(rows.count == count);
	posted = rows.items;
	for (size_t i = 0; i < count; i++)
		notices[i].message = posted[i].id;
	return true;
}
