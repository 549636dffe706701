#include "frontd/registry.h"

#include "common/chat/registry.h"

enum { ORIGIN_MAX = 512, LABEL_MAX = 255, ERROR_MAX = 2048, STATUS_MAX = 32 };

/* GET /api/users/@me/federation-registry */
bool registry_get(struct request *req, struct err *err)
{
	struct registry registry;

	if (!registry_read(req->tx, req->user.id, &registry, err))
		return false;
	reply_json(req, 200, "");
	registry_write(&req->reply, &registry);
	return true;
}

static const char *text_or_empty(
    struct json_in *in, const char *name, size_t max)
{
	const char *text = json_text_opt(in, name, max);

	return text ? text : "";
}

static bool entry_read(struct request *req, const struct json *value,
    struct registry_entry *entry, struct err *err)
{
	struct json_in in = json_from(req->arena, value, err);

	*entry = (struct registry_entry){
		.origin = json_text(&in, "origin", ORIGIN_MAX),
		.label = text_or_empty(&in, "label", LABEL_MAX),
		.username = text_or_empty(&in, "username", LABEL_MAX),
		.remote_user_id = text_or_empty(&in, "remoteUserId", LABEL_MAX),
		.status = json_text(&in, "status", STATUS_MAX),
		.added_at = json_time(&in, "addedAt"),
		.last_connected_at = json_time_opt(&in, "lastConnectedAt"),
		.disconnected_at = json_time_opt(&in, "disconnectedAt"),
		.error_message = json_text_opt(&in, "errorMessage", ERROR_MAX),
	};
	if (entry->status && !registry_status_is_known(entry->status))
		json_fail(&in, "status", "is unknown");
	return json_done(&in);
}

static bool entries_read(struct request *req, const struct json *list,
    struct registry *registry, struct err *err)
{
	size_t count = json_count(list);
	struct registry_entry *all =
	    arena_array(req->arena, count, sizeof(*all));

	for (size_t i = 0; i < count; i++) {
		if (!entry_read(req, json_element(list, i), &all[i], err))
			return false;
		for (size_t j = 0; j < i; j++)
			if (strcmp(all[i].origin, all[j].origin) == 0)
				return err_set(err, ERR_INVALID,
				    "registry holds an origin twice");
	}
	registry->entries = (struct rows){ all, count };
	return true;
}

static bool reply_stored(struct request *req, int64_t updated_at)
{
	struct json_out out = { .buf = &req->reply };

	reply_json(req, 200, "");
	json_open(&out, NULL);
	json_put_bool(&out, "ok", true);
	json_put_int(&out, "updatedAt", updated_at);
	json_close(&out);
	return true;
}

/* PUT /api/users/@me/federation-registry */
bool registry_put(struct request *req, struct err *err)
{
	struct json_in in = json_read(req->arena, req->body, err);
	const struct json *list = json_list(&in, "registry", REGISTRY_MAX);
	struct registry registry = {
		.updated_at = json_time(&in, "updatedAt"),
	};

	return json_done(&in) && entries_read(req, list, &registry, err) &&
	    registry_replace(req->tx, req->user.id, &registry, err) &&
	    reply_stored(req, registry.updated_at);
}
