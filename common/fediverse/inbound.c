#include "common/fediverse/inbound.h"

#include "common/fediverse/follower.h"
#include "common/fediverse/inbound.sql.h"
#include "common/fediverse/outbound.h"
#include "common/pg/notify.h"

enum { ACCEPT_MAX = 16 * 1024 };

struct stored {
	int64_t id;
};

static const struct shape stored_shape[] = {
	SHAPE(ID, struct stored, id, NULL),
	SHAPE_END(struct stored),
};

/* The actor of ours that an address names; found is false for any other. */
static bool ours_find(struct tx *tx, const struct origin *origin,
    const char *url, struct actor *actor, bool *found, struct err *err)
{
	const char *prefix =
	    arena_printf(tx_arena(tx), "%s/users/", origin->text);

	*found = false;
	if (!url || strncmp(url, prefix, strlen(prefix)) != 0)
		return true;
	if (!actor_by_name(tx, url + strlen(prefix), actor, found, err))
		return false;
	*found = *found && !actor->deleted_at &&
	    strcmp(actor_url(tx_arena(tx), origin, actor), url) == 0;
	return true;
}

/* ---- what we look after ---- */

static const char *accept_text(struct arena *arena, const struct inbound *in,
    const char *id, const char *url)
{
	struct buf buf;
	struct json_out out = { .buf = &buf };

	buf_init(&buf, arena, ACCEPT_MAX);
	json_open(&out, NULL);
	json_put_text(
	    &out, "@context", "https://www.w3.org/ns/activitystreams");
	json_put_text(&out, "id", id);
	json_put_text(&out, "type", "Accept");
	json_put_text(&out, "actor", url);
	json_open_list(&out, "to");
	json_put_text(&out, NULL, in->activity->actor);
	json_close_list(&out);
	json_open(&out, "object");
	json_put_text(&out, "id", in->activity->id);
	json_put_text(&out, "type", "Follow");
	json_put_text(&out, "actor", in->activity->actor);
	json_put_text(&out, "object", url);
	json_close(&out);
	json_close(&out);
	return buf.data;
}

/* Into the follower's own inbox, signed as whom it follows. */
static bool accept_follow(struct tx *tx, const struct inbound *in, int64_t id,
    const struct actor *actor, struct err *err)
{
	struct arena *arena = tx_arena(tx);
	const char *url = actor_url(arena, &in->home->origin, actor);
	const char *accept_id =
	    arena_printf(arena, "%s#accepts/%" PRId64, url, id);
	struct outbound_item item;

	return outbound_enqueue(tx, in->home,
	    &(const struct enqueue_request){
		.activity_id = accept_id,
		.payload_json = accept_text(arena, in, accept_id, url),
		.target_inbox = in->sender->inbox,
		.actor_user_id = actor->id,
	    },
	    &item, err);
}

static bool take_follow(
    struct tx *tx, const struct inbound *in, int64_t id, struct err *err)
{
	const struct activity *activity = in->activity;
	struct actor actor;
	bool found;

	if (!ours_find(
		tx, &in->home->origin, activity->object, &actor, &found, err))
		return false;
	if (!found)
		return true;
	if (!follower_add(tx,
		&(const struct follower){
		    .actor = actor.id,
		    .follower = activity->actor,
		    .inbox = in->sender->inbox,
		    .shared_inbox = in->sender->shared_inbox,
		    .follow_id = activity->id,
		    .accepted = !actor.approves_followers,
		},
		err))
		return false;
	return actor.approves_followers ||
	    accept_follow(tx, in, id, &actor, err);
}

static bool take_undo(
    struct tx *tx, const struct inbound *in, int64_t id UNUSED, struct err *err)
{
	const struct activity *activity = in->activity;
	struct actor actor;
	bool found;

	if (activity->object_type &&
	    strcmp(activity->object_type, "Follow") != 0)
		return true;
	return ours_find(tx, &in->home->origin, activity->object_object, &actor,
		   &found, err) &&
	    follower_remove(tx, activity->actor, activity->object,
		found ? actor.id : NULL, err);
}

/* Of a Follow of ours; by its id, or by what it says. */
static bool take_answer(
    struct tx *tx, const struct inbound *in, int64_t id UNUSED, struct err *err)
{
	const struct activity *activity = in->activity;
	struct actor actor;
	bool found;

	if (activity->object_type &&
	    strcmp(activity->object_type, "Follow") != 0)
		return true;
	return ours_find(tx, &in->home->origin, activity->object_actor, &actor,
		   &found, err) &&
	    following_answer(tx, activity->actor, activity->object,
		found ? actor.id : NULL, activity_is(activity, "Accept"), err);
}

static bool take_delete(
    struct tx *tx, const struct inbound *in, int64_t id UNUSED, struct err *err)
{
	if (!activity_is_departure(in->activity))
		return true;
	return remote_actor_forget(tx, in->activity->actor, err);
}

static const struct {
	const char *type;
	bool (*take)(struct tx *tx, const struct inbound *in, int64_t id,
	    struct err *err);
} types[] = {
	{ "Follow", take_follow },
	{ "Accept", take_answer },
	{ "Reject", take_answer },
	{ "Undo", take_undo },
	{ "Delete", take_delete },
};

static bool look_after(
    struct tx *tx, const struct inbound *in, int64_t id, struct err *err)
{
	for (size_t i = 0; i < COUNT(types); i++)
		if (activity_is(in->activity, types[i].type))
			return types[i].take(tx, in, id, err);
	return true;
}

/* The sender's server lives: nothing holds back what we owe it. */
static bool revive(struct tx *tx, const struct inbound *in, struct err *err)
{
	return sql_none(tx, &SQL_inbound_revive, err,
	    v_text(strstr(in->activity->origin, "://") + 3));
}

/* ---- from outside ---- */

bool inbound_needs_inbox(const struct inbound *in)
{
	return activity_is(in->activity, "Follow") && !in->sender->inbox;
}

bool inbound_take(struct tx *tx, const struct inbound *in, struct err *err)
{
	const struct activity *activity = in->activity;
	struct stored stored;
	bool fresh;

	if (!sql_opt(tx, &SQL_inbound_store, stored_shape, &stored, &fresh, err,
		v_text(activity->id), v_text(activity->actor),
		v_text(activity->type), v_text(activity->object),
		v_text(arena_textn(
		    tx_arena(tx), activity->body.data, activity->body.len)),
		v_text(in->recipient ? in->recipient->id : NULL)))
		return false;
	if (!fresh)
		return revive(tx, in, err);
	log_info("inbox.taken", F("peer", v_text(activity->origin)),
	    F("type", v_text(activity->type)), F("id", v_id(stored.id)));
	signal_inbox(tx, stored.id);
	return look_after(tx, in, stored.id, err) && revive(tx, in, err);
}
