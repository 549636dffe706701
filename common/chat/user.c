#include <sodium.h>

#include "common/base/id.h"
#include "common/chat/user.h"

#include "common/chat/user.sql.h"

enum { LOCAL_MIN = 3, LOCAL_MAX = 32, REPLICATED_MAX = 100, DOMAIN_MAX = 253 };

static const char *const palette[] = { "mint", "sky", "lavender", "coral",
	"rose", "teal", "amber" };

/* clang-format off */
const struct shape user_shape[] = {
	SHAPE(ID,   struct user, id, "id"),
	SHAPE(TEXT, struct user, username, "username"),
	SHAPE(TEXT, struct user, display_name, "displayName"),
	SHAPE(TEXT, struct user, avatar, "avatar"),
	SHAPE(TEXT, struct user, banner, "banner"),
	SHAPE(TEXT, struct user, accent_color, "accentColor"),
	SHAPE(TEXT, struct user, avatar_color, "avatarColor"),
	SHAPE(TEXT, struct user, bio, "bio"),
	SHAPE(TEXT, struct user, status, "status"),
	SHAPE(TEXT, struct user, custom_status, "customStatus"),
	SHAPE(BOOL, struct user, is_admin, "isAdmin"),
	SHAPE(BOOL, struct user, discoverable, "discoverable"),
	SHAPE(TIME, struct user, profile_updated_at, "profileUpdatedAt"),
	SHAPE(TIME, struct user, created_at, "createdAt"),
	SHAPE(TEXT, struct user, home_instance, "homeInstance"),
	SHAPE(TEXT, struct user, home_user_id, "homeUserId"),
	SHAPE(RAW,  struct user, replicated_instances, "replicatedInstances"),
	SHAPE(BOOL, struct user, show_activity, NULL),
	SHAPE(BOOL, struct user, is_deleted, NULL),
	SHAPE(TEXT, struct user, password_hash, NULL),
	SHAPE_END(struct user),
};
/* clang-format on */

/* What is left of a person who has gone. */
static struct user tombstone_of(const struct user *user)
{
	return (struct user){
		.id = user->id,
		.username = "Deleted User",
		.status = "offline",
		.replicated_instances = "[]",
		.is_deleted = true,
	};
}

static void put_profile(struct json_out *out, const struct user *user)
{
	json_put_id(out, "id", user->id);
	json_put_text(out, "username", user->username);
	json_put_text(out, "displayName", user->display_name);
	json_put_text(out, "avatar", user->avatar);
	json_put_text(out, "banner", user->banner);
	json_put_text(out, "accentColor", user->accent_color);
	json_put_text(out, "avatarColor", user->avatar_color);
	json_put_text(out, "bio", user->bio);
	json_put_text(out, "status", user->status);
	json_put_text(out, "customStatus", user->custom_status);
}

void user_put(struct json_out *out, const struct user *user, bool self)
{
	struct user gone = tombstone_of(user);
	const struct user *shown = user->is_deleted ? &gone : user;
	const char *instances = shown->replicated_instances;

	if (!instances)
		instances = "[]";
	put_profile(out, shown);
	json_put_bool(out, "isAdmin", shown->is_admin);
	if (shown->is_deleted)
		json_put_bool(out, "isDeleted", true);
	json_put_bool(out, "discoverable", shown->discoverable);
	/* 0, not null, for a profile that never changed and a tombstone. */
	json_put_int(out, "profileUpdatedAt", shown->profile_updated_at);
	json_put_int(out, "createdAt", shown->created_at);
	json_put_text(out, "homeInstance", shown->home_instance);
	json_put_text(out, "homeUserId", shown->home_user_id);
	json_put_raw(out, "replicatedInstances",
	    (struct bytes){ instances, strlen(instances) });
	if (self)
		json_put_bool(out, "showActivity", shown->show_activity);
}

void user_write(struct buf *out, const struct user *user, bool self)
{
	struct json_out json = { .buf = out };

	json_open(&json, NULL);
	user_put(&json, user, self);
	json_close(&json);
}

bool user_by_id(struct tx *tx, int64_t id, struct user *user, struct err *err)
{
	return sql_one(tx, &SQL_user_by_id, user_shape, user, err, v_id(id)) ||
	    (err->code == ERR_ABSENT &&
		err_set(err, ERR_ABSENT, "User not found"));
}

bool user_by_name(struct tx *tx, const char *username, struct user *user,
    bool *found, struct err *err)
{
	return sql_opt(tx, &SQL_user_by_name, user_shape, user, found, err,
	    v_text(username));
}

bool user_by_any_id(
    struct tx *tx, const char *said, int64_t *id, struct err *err)
{
	struct answer {
		int64_t id;
	} answer = { 0 };
	static const struct shape shape[] = {
		SHAPE(ID, struct answer, id, NULL),
		SHAPE_END(struct answer),
	};
	bool found = false;

	if (*said &&
	    !sql_opt(tx, &SQL_user_by_any_id, shape, &answer, &found, err,
		v_id(id_parse(said)), v_text(said)))
		return false;
	*id = found ? answer.id : 0;
	return true;
}

bool users_by_ids(struct tx *tx, const int64_t *ids, size_t count,
    struct rows *users, struct err *err)
{
	if (count == 0) {
		*users = (struct rows){ 0 };
		return true;
	}
	return sql_many(
	    tx, &SQL_users_by_ids, user_shape, users, err, v_ids(ids, count));
}

const struct user *users_find(const struct rows *users, int64_t id)
{
	const struct user *all = users->items;

	for (size_t i = 0; i < users->count; i++)
		if (all[i].id == id)
			return &all[i];
	assert(!"a person without a row");
	return NULL;
}

/* ---- registration ---- */

static bool is_stub(const struct user *user)
{
	return strcmp(user->password_hash, USER_STUB_PASSWORD) == 0;
}

/* Turns the relay's stub into an account; *done when there was one. */
static bool upgrade(struct tx *tx, const struct registration *reg,
    struct user *user, bool *done, struct err *err)
{
	struct user stub;
	bool found;

	if (!sql_opt(tx, &SQL_user_living_identity, user_shape, &stub, &found,
		err, v_text(reg->home_instance), v_text(reg->home_user_id)))
		return false;
	*done = found;
	if (!found)
		return true;
	if (!is_stub(&stub))
		return err_set(err, ERR_CONFLICT,
		    "This account already exists; its name is already taken");
	if (sql_one(tx, &SQL_user_stub_upgrade, user_shape, user, err,
		v_id(stub.id), v_text(reg->username),
		v_text(reg->password_hash), v_text(reg->display_name),
		v_text(reg->avatar_color)))
		return true;
	if (err->code == ERR_DUPLICATE)
		err_set(err, ERR_CONFLICT, "Username already taken");
	return false;
}

bool user_register(struct tx *tx, const struct registration *reg,
    struct user *user, bool *created, struct err *err)
{
	bool done = false;
	bool found;

	if (!sql_none(tx, &SQL_user_register_lock, err))
		return false;
	if (reg->home_instance && reg->home_user_id &&
	    !upgrade(tx, reg, user, &done, err))
		return false;
	*created = !done;
	if (done)
		return true;
	return sql_opt(tx, &SQL_user_insert, user_shape, user, &found, err,
		   v_text(reg->username), v_text(reg->display_name),
		   v_text(reg->password_hash), v_text(reg->avatar_color),
		   v_text(reg->home_instance), v_text(reg->home_user_id)) &&
	    (found || err_set(err, ERR_CONFLICT, "Username already taken"));
}

bool user_password_change(
    struct tx *tx, const struct user *user, const char *hash, struct err *err)
{
	int64_t changed;

	return sql_count(tx, &SQL_user_password_change, &changed, err,
		   v_id(user->id), v_text(hash), v_text(user->password_hash)) &&
	    (changed == 1 ||
		err_set(err, ERR_CONFLICT, "The password was just changed")) &&
	    sql_none(tx, &SQL_user_sessions_end, err, v_id(user->id));
}

bool user_status_set(
    struct tx *tx, int64_t user, const char *status, struct err *err)
{
	return sql_none(
	    tx, &SQL_user_status_set, err, v_id(user), v_text(status));
}

bool username_taken(
    struct tx *tx, const char *username, bool *taken, struct err *err)
{
	struct answer {
		bool taken;
	} answer;
	static const struct shape shape[] = {
		SHAPE(BOOL, struct answer, taken, NULL),
		SHAPE_END(struct answer),
	};

	if (!sql_one(
		tx, &SQL_username_taken, shape, &answer, err, v_text(username)))
		return false;
	*taken = answer.taken;
	return true;
}

/* ---- names ---- */

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

static bool is_local_part(const char *name, size_t len)
{
	return len >= LOCAL_MIN && len <= LOCAL_MAX &&
	    strspn(name, LOWER DIGITS "_") >= len;
}

bool username_is_native(const char *name)
{
	return is_local_part(name, strlen(name));
}

bool username_is_replicated(const char *name)
{
	const char *at = strchr(name, '@');
	size_t domain;

	if (!at || !is_local_part(name, (size_t)(at - name)))
		return false;
	domain = strlen(at + 1);
	return domain >= 1 && domain <= DOMAIN_MAX &&
	    strspn(at + 1, LOWER UPPER DIGITS "._-") == domain &&
	    strlen(name) <= REPLICATED_MAX;
}

const char *avatar_color_pick(const char *wished)
{
	for (size_t i = 0; wished && i < COUNT(palette); i++)
		if (strcmp(palette[i], wished) == 0)
			return palette[i];
	return palette[randombytes_uniform(COUNT(palette))];
}
