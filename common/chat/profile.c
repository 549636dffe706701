#include "common/chat/profile.h"

#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/chat/event.h"

#include "common/chat/profile.sql.h"

enum { JSON_MAX = 16 << 20 };

static const struct shape listener_shape[] = {
	SHAPE(ID, struct listener, person, NULL),
	SHAPE(ID, struct listener, listener, NULL),
	SHAPE_END(struct listener),
};

/* ---- who hears of it ---- */

bool profiles_listeners(struct tx *tx, const int64_t *people, size_t count,
    struct rows *listeners, struct err *err)
{
	return sql_many(tx, &SQL_profiles_listeners, listener_shape, listeners,
	    err, v_ids(people, count));
}

static bool is_among(const int64_t *people, size_t count, int64_t person)
{
	for (size_t i = 0; i < count; i++)
		if (people[i] == person)
			return true;
	return false;
}

bool profiles_tell(struct tx *tx, const struct rows *listeners,
    const int64_t *people, size_t count, const char *kind, struct err *err)
{
	struct arena *arena = tx_arena(tx);
	const struct listener *all = listeners->items;
	struct user_change *changes =
	    arena_array(arena, listeners->count, sizeof(*changes));
	size_t n = 0;

	for (size_t i = 0; i < listeners->count; i++) {
		if (!is_among(people, count, all[i].person))
			continue;
		changes[n++] = (struct user_change){
			.user = all[i].listener,
			.kind = kind,
			.entity = id_text(arena, all[i].person),
			.actor = all[i].person,
		};
	}
	return n == 0 || user_changes_append(tx, changes, n, err);
}

/* ---- a person changes himself ---- */

bool profile_edit_is_durable(const struct profile_edit *edit)
{
	return edit->display_name.given || edit->avatar.given ||
	    edit->banner.given || edit->accent_color.given ||
	    edit->avatar_color.given || edit->bio.given;
}

static bool same(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "") == 0;
}

static bool is_durably_same(const struct user *a, const struct user *b)
{
	return same(a->display_name, b->display_name) &&
	    same(a->avatar, b->avatar) && same(a->banner, b->banner) &&
	    same(a->accent_color, b->accent_color) &&
	    same(a->avatar_color, b->avatar_color) && same(a->bio, b->bio);
}

static void take(const char **value, const struct text_edit *edit)
{
	if (edit->given)
		*value = edit->value;
}

static struct user edited(
    const struct user *user, const struct profile_edit *edit)
{
	struct user after = *user;

	take(&after.display_name, &edit->display_name);
	take(&after.avatar, &edit->avatar);
	take(&after.banner, &edit->banner);
	take(&after.accent_color, &edit->accent_color);
	take(&after.avatar_color, &edit->avatar_color);
	take(&after.bio, &edit->bio);
	take(&after.custom_status, &edit->custom_status);
	take(&after.status, &edit->status);
	take(&after.replicated_instances, &edit->replicated_instances);
	take(&after.home_user_id, &edit->home_user_id);
	if (edit->discoverable.given)
		after.discoverable = edit->discoverable.value;
	if (edit->show_activity.given)
		after.show_activity = edit->show_activity.value;
	return after;
}

static bool store(struct tx *tx, struct user *user, struct err *err)
{
	const char *assets[] = { user->avatar, user->banner };

	if (!sql_one(tx, &SQL_profile_change, user_shape, user, err,
		v_id(user->id), v_text(user->display_name),
		v_text(user->avatar), v_text(user->banner),
		v_text(user->accent_color), v_text(user->avatar_color),
		v_text(user->bio), v_text(user->custom_status),
		v_text(user->status), v_text(user->replicated_instances),
		v_text(user->home_user_id), v_bool(user->discoverable),
		v_bool(user->show_activity), v_time(user->profile_updated_at)))
		return err->code == ERR_DUPLICATE
		    ? err_set(err, ERR_INVALID,
			  "homeUserId belongs to another account")
		    : false;
	return sql_none(tx, &SQL_profile_upload_taken, err,
	    v_texts(assets, COUNT(assets)), v_id(user->id));
}

/* May others hear of it? Then they are locked first. */
static bool is_heard_of(const struct profile_edit *edit)
{
	return profile_edit_is_durable(edit) || edit->custom_status.given ||
	    edit->status.given;
}

/* Only a profile that has none yet is bound to an id of its home. */
static bool may_bind(
    const struct user *user, const struct profile_edit *edit, struct err *err)
{
	return !edit->home_user_id.given || !user->home_user_id ||
	    same(user->home_user_id, edit->home_user_id.value) ||
	    err_set(err, ERR_INVALID, "homeUserId is already set");
}

static bool announce(struct tx *tx, const struct rows *listeners,
    const struct user *before, const struct user *after, struct err *err)
{
	int64_t id = after->id;

	if ((!is_durably_same(before, after) ||
		!same(before->custom_status, after->custom_status)) &&
	    !profiles_tell(tx, listeners, &id, 1, "user_updated", err))
		return false;
	return same(before->status, after->status) ||
	    profiles_tell(tx, listeners, &id, 1, "presence_update", err);
}

bool profile_change(struct tx *tx, int64_t person,
    const struct profile_edit *edit, struct user *before, struct user *after,
    bool *durable, struct err *err)
{
	int64_t now = clock_wall_ms();
	struct rows listeners = { 0 };

	if ((is_heard_of(edit) &&
		!profiles_listeners(tx, &person, 1, &listeners, err)) ||
	    !user_by_id(tx, person, before, err) ||
	    !may_bind(before, edit, err))
		return false;
	*after = edited(before, edit);
	*durable = !is_durably_same(before, after);
	if (*durable)
		after->profile_updated_at = now > before->profile_updated_at
		    ? now
		    : before->profile_updated_at + 1;
	return store(tx, after, err) &&
	    announce(tx, &listeners, before, after, err);
}

/* ---- what homes say ---- */

struct columns {
	int64_t *ids, *times;
	const char **names, **avatars, **banners, **accents, **colors, **bios;
};

static struct columns columns_of(
    struct arena *arena, const struct profile_said *said, size_t count)
{
	struct columns c = {
		.ids = arena_array(arena, count, sizeof(int64_t)),
		.times = arena_array(arena, count, sizeof(int64_t)),
		.names = arena_array(arena, count, sizeof(char *)),
		.avatars = arena_array(arena, count, sizeof(char *)),
		.banners = arena_array(arena, count, sizeof(char *)),
		.accents = arena_array(arena, count, sizeof(char *)),
		.colors = arena_array(arena, count, sizeof(char *)),
		.bios = arena_array(arena, count, sizeof(char *)),
	};

	for (size_t i = 0; i < count; i++) {
		c.ids[i] = said[i].person;
		c.times[i] = said[i].updated_at;
		c.names[i] = said[i].display_name;
		c.avatars[i] = said[i].avatar;
		c.banners[i] = said[i].banner;
		c.accents[i] = said[i].accent_color;
		c.colors[i] = said[i].avatar_color;
		c.bios[i] = said[i].bio;
	}
	return c;
}

bool profiles_replace(struct tx *tx, const struct profile_said *said,
    size_t count, struct err *err)
{
	struct arena *arena = tx_arena(tx);
	struct columns c = columns_of(arena, said, count);
	struct rows listeners, changed;
	const struct listener *all;
	int64_t *people;

	if (count == 0)
		return true;
	if (!profiles_listeners(tx, c.ids, count, &listeners, err) ||
	    !sql_many(tx, &SQL_profiles_replace, listener_shape, &changed, err,
		v_ids(c.ids, count), v_times(c.times, count),
		v_texts(c.names, count), v_texts(c.avatars, count),
		v_texts(c.banners, count), v_texts(c.accents, count),
		v_texts(c.colors, count), v_texts(c.bios, count)))
		return false;
	all = changed.items;
	people = arena_array(arena, changed.count, sizeof(*people));
	for (size_t i = 0; i < changed.count; i++)
		people[i] = all[i].person;
	return profiles_tell(
	    tx, &listeners, people, changed.count, "user_updated", err);
}

static const struct shape placed_shape[] = {
	SHAPE(ID, struct placed, person, NULL),
	SHAPE(TEXT, struct placed, before, NULL),
	SHAPE(TEXT, struct placed, after, NULL),
	SHAPE_END(struct placed),
};

bool profiles_place(struct tx *tx, const struct profile_said *said,
    size_t count, struct rows *placed, struct err *err)
{
	struct arena *arena = tx_arena(tx);
	int64_t *ids = arena_array(arena, count, sizeof(*ids));
	int64_t *times = arena_array(arena, count, sizeof(*times));
	const char **places = arena_array(arena, count, sizeof(*places));

	*placed = (struct rows){ 0 };
	for (size_t i = 0; i < count; i++) {
		ids[i] = said[i].person;
		times[i] = said[i].updated_at;
		places[i] = said[i].places;
	}
	return count == 0 ||
	    sql_many(tx, &SQL_profiles_place, placed_shape, placed, err,
		v_ids(ids, count), v_times(times, count),
		v_texts(places, count));
}

/* ---- shared friends ---- */

bool mutual_friends_json(
    struct tx *tx, int64_t a, int64_t b, const char **json, struct err *err)
{
	struct rows users;
	const struct user *all;
	struct buf text;
	struct json_out out = { .buf = &text };

	if (!sql_many(tx, &SQL_mutual_friends, user_shape, &users, err, v_id(a),
		v_id(b)))
		return false;
	all = users.items;
	buf_init(&text, tx_arena(tx), JSON_MAX);
	json_open_list(&out, NULL);
	for (size_t i = 0; i < users.count; i++) {
		json_open(&out, NULL);
		user_put(&out, &all[i], false);
		json_close(&out);
	}
	json_close_list(&out);
	*json = text.data;
	return true;
}
