/*
 * actors -- the administrator's actors: made, given another key, deleted.
 */
#include "frontd/actors.sql.h"
#include "frontd/fediverse.h"

enum { BODY_MAX = 16 * 1024, KIND_MAX = 32, ID_LEN = 36 };

static bool audit(struct request *req, const char *action,
    const struct actor *actor, struct err *err)
{
	log_info(action, F("actor", v_text(actor->username)),
	    F("user", v_id(req->user.id)));
	return sql_none(req->tx, &SQL_actors_audit, err,
	    v_text(req->user.username), v_text(action),
	    v_text(actor->username));
}

/* The record with its addresses: what others know it by. */
static void put_actor(
    struct buf *out, struct request *req, const struct actor *actor)
{
	const struct origin *origin = &req->node->origin;
	struct buf plain;

	buf_init(&plain, req->arena, BODY_MAX);
	json_write_shape(&plain, actor_shape, actor);
	buf_add(out, plain.data, plain.len - 1);
	buf_text(out, ",\"url\":");
	json_quote(out, actor_url(req->arena, origin, actor));
	buf_text(out, ",\"keyId\":");
	json_quote(out, actor_key_id(req->arena, origin, actor));
	buf_char(out, '}');
}

static bool reply_actor(
    struct request *req, int status, const struct actor *actor)
{
	reply_json(req, status, "{\"actor\":");
	put_actor(&req->reply, req, actor);
	buf_char(&req->reply, '}');
	return true;
}

/* GET /api/fediverse/actors */
static bool actors_get(struct request *req, struct err *err)
{
	struct rows rows;
	const struct actor *actors;

	if (!fediverse_check(req->tx, err) || !actor_list(req->tx, &rows, err))
		return false;
	actors = rows.items;
	reply_json(req, 200, "{\"actors\":[");
	for (size_t i = 0; i < rows.count; i++) {
		if (i)
			buf_char(&req->reply, ',');
		put_actor(&req->reply, req, &actors[i]);
	}
	buf_text(&req->reply, "]}");
	return true;
}

/* POST /api/fediverse/actors */
static bool actors_post(struct request *req, struct err *err)
{
	struct json_in in = json_read(req->arena, req->body, err);
	struct actor_draft draft = {
		.username = json_text(&in, "username", ACTOR_NAME_MAX),
		.kind = json_text_opt(&in, "type", KIND_MAX),
		.display_name = json_text_opt(&in, "name", ACTOR_TITLE_MAX),
		.user_id = json_id_opt(&in, "userId"),
		.approves_followers =
		    json_bool_opt(&in, "manuallyApprovesFollowers", false),
	};
	struct actor actor;

	if (!draft.kind)
		draft.kind = "Person";
	return json_done(&in) && fediverse_check(req->tx, err) &&
	    actor_make(req->tx, req->node->key, &draft, &actor, err) &&
	    audit(req, "actor.made", &actor, err) &&
	    reply_actor(req, 201, &actor);
}

/* What is no UUID is nobody's id. */
static bool is_uuid(const char *text)
{
	if (strlen(text) != ID_LEN)
		return false;
	for (size_t i = 0; text[i]; i++)
		if (i == 8 || i == 13 || i == 18 || i == 23
			? text[i] != '-'
			: !strchr("0123456789abcdef", text[i]))
			return false;
	return true;
}

static bool actor_of_id(
    struct request *req, struct actor *actor, struct err *err)
{
	const char *id = path_text(req, "id");
	bool found = false;

	if (!fediverse_check(req->tx, err))
		return false;
	if (is_uuid(id) && !actor_by_id(req->tx, id, actor, &found, err))
		return false;
	return found || err_set(err, ERR_ABSENT, "No such actor");
}

/* POST /api/fediverse/actors/:id/rotate-key */
static bool actor_rotate_post(struct request *req, struct err *err)
{
	struct actor actor;

	return actor_of_id(req, &actor, err) &&
	    actor_rotate(req->tx, req->node->key, &actor, err) &&
	    audit(req, "actor.key_rotated", &actor, err) &&
	    reply_actor(req, 200, &actor);
}

/* DELETE /api/fediverse/actors/:id */
static bool actor_remove(struct request *req, struct err *err)
{
	struct actor actor;

	if (!actor_of_id(req, &actor, err))
		return false;
	if (actor.is_instance)
		return err_set(
		    err, ERR_CONFLICT, "The instance needs its own actor");
	return actor_delete(req->tx, &actor, err) &&
	    audit(req, "actor.deleted", &actor, err) &&
	    reply_actor(req, 200, &actor);
}

/* clang-format off */
const struct route actors_routes[] = {
	{ "GET",    "/api/fediverse/actors",                ADMIN, BODY_MAX, 0, 0, actors_get },
	{ "POST",   "/api/fediverse/actors",                ADMIN, BODY_MAX, 0, 0, actors_post },
	{ "POST",   "/api/fediverse/actors/:id/rotate-key", ADMIN, BODY_MAX, 0, 0, actor_rotate_post },
	{ "DELETE", "/api/fediverse/actors/:id",            ADMIN, BODY_MAX, 0, 0, actor_remove },
	{ .method = NULL }
};
/* clang-format on */
