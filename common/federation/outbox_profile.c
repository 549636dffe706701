#include "common/federation/outbox_profile.h"

#include "common/base/id.h"
#include "common/chat/profile_text.h"
#include "common/federation/outbox_group.h"

#include "common/federation/outbox_profile.sql.h"

struct place {
	const char *home_instance;
	const char *replicated_instances;
};

static const struct shape place_shape[] = {
	SHAPE(TEXT, struct place, home_instance, NULL),
	SHAPE(TEXT, struct place, replicated_instances, NULL),
	SHAPE_END(struct place),
};

/* A profile that never changed is as old as its account. */
static int64_t version_of(const struct user *user)
{
	return user->profile_updated_at ? user->profile_updated_at
					: user->created_at;
}

static const char *null_if_empty(const char *text)
{
	return text && *text ? text : NULL;
}

static const char *payload(
    struct arena *arena, const struct node *node, const struct user *user)
{
	const char *origin = node->origin.text;
	struct json_out out;
	struct buf text;

	payload_open(&out, &text, arena);
	json_open(&out, "profileUpdate");
	json_put_id(&out, "homeUserId", user->id);
	json_put_text(&out, "homeInstance", origin);
	json_put_int(&out, "profileUpdatedAt", version_of(user));
	json_put_text(&out, "displayName", null_if_empty(user->display_name));
	json_put_text(&out, "avatar", asset_url(arena, user->avatar, origin));
	json_put_text(&out, "banner", asset_url(arena, user->banner, origin));
	json_put_text(&out, "accentColor", null_if_empty(user->accent_color));
	json_put_text(&out, "avatarColor", null_if_empty(user->avatar_color));
	json_put_text(&out, "bio", null_if_empty(user->bio));
	json_close(&out);
	return payload_close(&out);
}

static bool add(struct tx *tx, const struct node *node, const struct user *user,
    const struct targets *targets, struct err *err)
{
	struct arena *arena = tx_arena(tx);
	struct outbox_event event = {
		.event_type = "profile_update",
		.context_type = "profile",
		.context_id = id_text(arena, user->id),
		.entity_id = id_text(arena, user->id),
		.payload = payload(arena, node, user),
	};

	return outbox_add(tx, &event, targets, err);
}

/* Only the home of a living person speaks for him. */
static bool is_ours(const struct user *user)
{
	return !user->home_instance && !user->is_deleted;
}

bool outbox_add_profile(struct tx *tx, const struct node *node,
    const struct user *user, struct err *err)
{
	struct targets targets;
	struct rows rows;
	const struct place *places;

	if (!is_ours(user))
		return true;
	if (!sql_many(tx, &SQL_profile_places, place_shape, &rows, err,
		v_id(user->id)))
		return false;
	targets_init(&targets, tx_arena(tx), node, NULL);
	targets_add_declared(&targets, user->replicated_instances);
	places = rows.items;
	for (size_t i = 0; i < rows.count; i++) {
		targets_add(&targets, places[i].home_instance);
		targets_add_declared(&targets, places[i].replicated_instances);
	}
	return add(tx, node, user, &targets, err);
}

bool outbox_introduce(struct tx *tx, const struct node *node,
    const struct user *user, const char *before, struct err *err)
{
	struct targets known, declared, fresh;

	if (!is_ours(user))
		return true;
	targets_init(&known, tx_arena(tx), node, NULL);
	targets_add_declared(&known, before);
	targets_init(&declared, tx_arena(tx), node, NULL);
	targets_add_declared(&declared, user->replicated_instances);
	targets_init(&fresh, tx_arena(tx), node, NULL);
	for (size_t i = 0; i < declared.count; i++)
		if (!targets_have(&known, declared.hosts[i]))
			targets_add(&fresh, declared.hosts[i]);
	return fresh.count == 0 ||
	    (add(tx, node, user, &fresh, err) &&
		outbox_add_arrival(tx, node, user->id, &fresh, err));
}
