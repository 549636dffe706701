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

/* Where else he has accounts; nobody needs to hear of himself. */
static void put_accounts(struct json_out *out, struct arena *arena,
    const char *replicated_instances, const char *but)
{
	const struct json *list = NULL;
	struct err ignored = { 0 };
	bool any = false;

	if (!json_parse(arena,
		(struct bytes){
		    replicated_instances, strlen(replicated_instances) },
		&list, &ignored))
		return;
	for (size_t i = 0; i < json_count(list); i++) {
		const struct json *place = json_element(list, i);
		const char *origin = json_string(json_member(place, "origin"));
		const char *name = json_string(json_member(place, "username"));
		int port;
		const char *host =
		    origin ? instance_host(arena, origin, &port) : NULL;

		if (!host || !name || (but && strcmp(host, but) == 0))
			continue;
		if (!any)
			json_open_list(out, "replicatedInstances");
		any = true;
		json_open(out, NULL);
		json_put_text(out, "origin", origin);
		json_put_text(out, "username", name);
		json_close(out);
	}
	if (any)
		json_close_list(out);
}

static bool has_accounts(const struct user *user)
{
	return user->replicated_instances &&
	    strcmp(user->replicated_instances, "[]") != 0;
}

static const char *payload(struct arena *arena, const struct node *node,
    const struct user *user, const char *but)
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
	if (has_accounts(user))
		put_accounts(&out, arena, user->replicated_instances, but);
	json_close(&out);
	return payload_close(&out);
}

static bool add(struct tx *tx, const struct node *node, const struct user *user,
    const struct targets *targets, const char *but, struct err *err)
{
	struct arena *arena = tx_arena(tx);
	struct outbox_event event = {
		.event_type = "profile_update",
		.context_type = "profile",
		.context_id = id_text(arena, user->id),
		.entity_id = id_text(arena, user->id),
		.payload = payload(arena, node, user, but),
	};

	return outbox_add(tx, &event, targets, err);
}

/* Each node where he has an account hears of the others. */
static bool tell(struct tx *tx, const struct node *node,
    const struct user *user, struct targets *targets, struct err *err)
{
	struct targets declared, one;

	targets_init(&declared, tx_arena(tx), node, NULL);
	targets_add_declared(&declared, user->replicated_instances);
	for (size_t i = 0; i < declared.count; i++)
		if (targets_take(targets, declared.hosts[i], &one) &&
		    !add(tx, node, user, &one, declared.hosts[i], err))
			return false;
	return (declared.count && targets->count == 0) ||
	    add(tx, node, user, targets, NULL, err);
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
	return tell(tx, node, user, &targets, err);
}

bool outbox_introduce(struct tx *tx, const struct node *node,
    const struct user *user, const char *before, struct err *err)
{
	const char *after = user->replicated_instances;
	struct targets fresh, gone;

	if (!is_ours(user))
		return true;
	targets_init_fresh(&fresh, tx_arena(tx), node, before, after);
	targets_init_fresh(&gone, tx_arena(tx), node, after, before);
	return (fresh.count + gone.count == 0 ||
		   outbox_add_profile(tx, node, user, err)) &&
	    (fresh.count == 0 ||
		outbox_add_arrival(tx, node, user->id, &fresh, err));
}

/* ---- to whom it is new where somebody has accounts ---- */

struct owed {
	int64_t person;
	const char *host;
};

static const struct shape owed_shape[] = {
	SHAPE(ID, struct owed, person, NULL),
	SHAPE(TEXT, struct owed, host, NULL),
	SHAPE_END(struct owed),
};

/* But those where he has one: they have heard it. */
bool outbox_tell_accounts_of(struct tx *tx, const struct node *node,
    int64_t person, const struct targets *homes, struct err *err)
{
	struct targets targets, declared;
	struct user user;

	if (!user_by_id(tx, person, &user, err))
		return false;
	targets_init(&targets, tx_arena(tx), node, NULL);
	targets_init(&declared, tx_arena(tx), node, NULL);
	targets_add_declared(&declared, user.replicated_instances);
	for (size_t i = 0; i < homes->count; i++)
		if (!targets_have(&declared, homes->hosts[i]))
			targets_add(&targets, homes->hosts[i]);
	return targets.count == 0 || !is_ours(&user) ||
	    add(tx, node, &user, &targets, NULL, err);
}

bool outbox_tell_accounts(struct tx *tx, const struct node *node,
    const int64_t *channels, size_t count, struct err *err)
{
	struct rows rows;
	const struct owed *all;

	if (count == 0)
		return true;
	if (!sql_many(tx, &SQL_accounts_owed, owed_shape, &rows, err,
		v_ids(channels, count)))
		return false;
	all = rows.items;
	for (size_t i = 0; i < rows.count;) {
		int64_t person = all[i].person;
		struct targets homes;

		targets_init(&homes, tx_arena(tx), node, NULL);
		for (; i < rows.count && all[i].person == person; i++)
			targets_add(&homes, all[i].host);
		if (!outbox_tell_accounts_of(tx, node, person, &homes, err))
			return false;
	}
	return true;
}
