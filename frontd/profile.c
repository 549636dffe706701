#include "frontd/profile.h"

#include "common/base/id.h"
#include "common/chat/profile.h"
#include "common/chat/profile_text.h"
#include "common/federation/outbox_profile.h"
#include "common/federation/person.h"

enum {
	TEXT_MAX = 1024 * 1024,
	PLACES_MAX = 20,
	ORIGIN_MAX = 512,
	DOMAIN_MAX = 253,
	PLACE_NAME_MAX = 255,
	PLACES_JSON_MAX = 64 * 1024
};

/* ---- reading ---- */

static bool is_given(const struct json_in *in, const char *name)
{
	return json_member(in->value, name) != NULL;
}

/* Nothing clears it. */
static struct text_edit text_edit(
    struct json_in *in, const char *name, size_t max)
{
	const char *value = json_text_opt(in, name, max);

	return (struct text_edit){
		.given = is_given(in, name),
		.value = value && *value ? value : NULL,
	};
}

static struct flag_edit flag_edit(struct json_in *in, const char *name)
{
	return (struct flag_edit){
		.given = is_given(in, name),
		.value = json_bool_opt(in, name, false),
	};
}

static struct text_edit name_edit(struct json_in *in)
{
	struct text_edit edit = text_edit(in, "displayName", DISPLAY_NAME_MAX);

	edit.value = name_neutral(in->arena, edit.value);
	return edit;
}

static struct text_edit color_edit(
    struct json_in *in, const char *name, bool (*is_valid)(const char *))
{
	struct text_edit edit = text_edit(in, name, DISPLAY_NAME_MAX);

	if (edit.value && !is_valid(edit.value))
		json_fail(in, name, "is no colour");
	return edit;
}

static const char *const uploads = "/api/uploads/";

/* A bare file name, with or without the path to it, or a web address. */
static struct text_edit asset_edit(struct json_in *in, const char *name)
{
	struct text_edit edit = text_edit(in, name, ASSET_MAX);
	const char *value = edit.value;

	if (!value || is_web_url(value))
		return edit;
	if (strncmp(value, uploads, strlen(uploads)) == 0)
		value += strlen(uploads);
	if (!*value || !asset_url(in->arena, value, ""))
		json_fail(in, name, "must be a file name or a web address");
	edit.value = value;
	return edit;
}

static struct text_edit status_edit(struct json_in *in)
{
	static const char *const known[] = { "online", "idle", "dnd",
		"offline" };
	struct text_edit edit = text_edit(in, "status", DISPLAY_NAME_MAX);

	for (size_t i = 0; edit.value && i < COUNT(known); i++)
		if (strcmp(known[i], edit.value) == 0)
			return edit;
	if (edit.given)
		json_fail(in, "status", "must be online, idle, dnd or offline");
	return edit;
}

/* The old form names a bare domain. */
static const char *place_origin(struct json_in *in, struct origin *origin)
{
	const char *said = json_text_opt(in, "origin", ORIGIN_MAX);
	const char *domain = json_text_opt(in, "domain", DOMAIN_MAX);

	if (!said && domain)
		said = arena_printf(in->arena, "https://%s", domain);
	if (!said || !origin_parse(in->arena, said, origin))
		json_fail(in, "replicatedInstances", "need an origin each");
	return in->failed ? NULL : origin->text;
}

static bool place_put(struct json_out *out, const char *seen[PLACES_MAX],
    size_t *count, struct json_in *in)
{
	const char *name = json_text(in, "username", PLACE_NAME_MAX);
	struct origin origin;
	const char *text = place_origin(in, &origin);

	if (!json_done(in))
		return false;
	for (size_t i = 0; i < *count; i++)
		if (strcmp(seen[i], text) == 0)
			return true;
	seen[(*count)++] = text;
	json_open(out, NULL);
	json_put_text(out, "origin", text);
	json_put_text(out, "username", name);
	json_close(out);
	return true;
}

static struct text_edit places_edit(struct json_in *in)
{
	const struct json *list =
	    json_list_opt(in, "replicatedInstances", PLACES_MAX);
	struct text_edit edit = { .given = list != NULL };
	const char *seen[PLACES_MAX];
	size_t count = 0;
	struct buf text;
	struct json_out out = { .buf = &text };

	buf_init(&text, in->arena, PLACES_JSON_MAX);
	json_open_list(&out, NULL);
	for (size_t i = 0; i < json_count(list); i++) {
		struct err err = { 0 };
		struct json_in place =
		    json_from(in->arena, json_element(list, i), &err);

		if (!place_put(&out, seen, &count, &place)) {
			json_fail(in, "replicatedInstances",
			    "must be a list of {origin, username}");
			break;
		}
	}
	json_close_list(&out);
	edit.value = text.data;
	return edit;
}

static void edit_read(struct json_in *in, struct profile_edit *edit)
{
	*edit = (struct profile_edit){
		.display_name = name_edit(in),
		.avatar = asset_edit(in, "avatar"),
		.banner = asset_edit(in, "banner"),
		.accent_color = color_edit(in, "accentColor", is_accent_color),
		.avatar_color = color_edit(in, "avatarColor", is_avatar_color),
		.bio = text_edit(in, "bio", BIO_MAX),
		.custom_status =
		    text_edit(in, "customStatus", CUSTOM_STATUS_MAX),
		.status = status_edit(in),
		.replicated_instances = places_edit(in),
		.home_user_id = text_edit(in, "homeUserId", HOME_USER_ID_MAX),
		.discoverable = flag_edit(in, "discoverable"),
		.show_activity = flag_edit(in, "showActivity"),
	};
}

static bool is_empty(const struct profile_edit *edit)
{
	return !profile_edit_is_durable(edit) && !edit->custom_status.given &&
	    !edit->status.given && !edit->replicated_instances.given &&
	    !edit->home_user_id.given && !edit->discoverable.given &&
	    !edit->show_activity.given;
}

static bool edit_check(
    const struct request *req, struct profile_edit *edit, struct err *err)
{
	if (is_empty(edit))
		return err_set(err, ERR_INVALID, "No fields to update");
	if (req->user.home_instance && profile_edit_is_durable(edit))
		return err_set(err, ERR_FORBIDDEN,
		    "Profile fields are managed by your home instance");
	if (!req->user.home_instance || !edit->home_user_id.value)
		edit->home_user_id.given = false;
	return true;
}

/* ---- PATCH /api/users/@me ---- */

static bool announce(struct request *req, const struct user *before,
    const struct user *after, bool durable, struct err *err)
{
	return (!durable ||
		   outbox_add_profile(req->tx, req->node, after, err)) &&
	    outbox_introduce(
		req->tx, req->node, after, before->replicated_instances, err);
}

bool profile_patch(struct request *req, struct err *err)
{
	struct json_in in = json_read(req->arena, req->body, err);
	struct profile_edit edit;
	struct user before, after;
	bool durable;

	edit_read(&in, &edit);
	if (!json_done(&in) || !edit_check(req, &edit, err) ||
	    !profile_change(
		req->tx, req->user.id, &edit, &before, &after, &durable, err) ||
	    !announce(req, &before, &after, durable, err))
		return false;
	reply_json(req, 200, "");
	user_write(&req->reply, &after, true);
	return true;
}

/* ---- GET /api/users/:id ---- */

bool profile_get(struct request *req, struct err *err)
{
	struct user user;

	if (!user_by_id(req->tx, path_id(req, "id"), &user, err))
		return false;
	reply_json(req, 200, "");
	user_write(&req->reply, &user, false);
	return true;
}

/* ---- GET /api/users/:id/mutuals ---- */

/* By the id here, else by the one at home; 0: nobody. */
static bool whose(struct request *req, int64_t *id, struct err *err)
{
	struct user user;

	*id = 0;
	if (user_by_id(req->tx, path_id(req, "id"), &user, err)) {
		*id = user.is_deleted ? 0 : user.id;
		return true;
	}
	return err->code == ERR_ABSENT &&
	    user_by_any_id(req->tx, query_text(req, "homeUserId"), id, err);
}

bool profile_mutuals(struct request *req, struct err *err)
{
	const char *friends = "[]";
	int64_t id;
	struct json_out out = { .buf = &req->reply };

	if (!whose(req, &id, err) ||
	    (id &&
		!mutual_friends_json(req->tx, req->user.id, id, &friends, err)))
		return false;
	reply_json(req, 200, "");
	json_open(&out, NULL);
	json_put_raw(
	    &out, "mutualFriends", (struct bytes){ friends, strlen(friends) });
	json_open_list(&out, "mutualSpaces");
	json_close_list(&out);
	json_close(&out);
	return true;
}
