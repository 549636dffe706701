/*
 * settings -- what an administrator changes at run time (client-api, tag
 * "settings"), beside psql.
 */
#include "common/federation/settings.h"
#include "frontd/request.h"
#include "frontd/settings.sql.h"

enum {
	BODY_MAX = 1 << 20,
	NAME_MAX = 32,
	KEY_MAX = 256,
	KEY_SHOWN = 4, /* of its characters, at the end */
	WORD_MAX = 32,
	MB_MAX = 5120,
	DAYS_MAX = 365,
	RATE_MAX = 1000000
};
static const int64_t mb_bytes = 1 << 20;
static const char masked[] = "****";

/* ---- GET ---- */

static void put_key(struct json_out *out, struct arena *arena, const char *key)
{
	size_t len = key ? strlen(key) : 0;

	if (len)
		json_put_text(out, "gifApiKey",
		    arena_printf(arena, "%s%s", masked,
			key + (len > KEY_SHOWN ? len - KEY_SHOWN : len)));
	json_put_bool(out, "gifEnabled", len > 0);
}

static bool reply_settings(struct request *req, const struct settings *settings)
{
	struct json_out out = { .buf = &req->reply };
	const struct settings *s = settings;

	reply_json(req, 200, "");
	json_open(&out, NULL);
	json_put_text(&out, "instanceName", s->instance_name);
	json_put_bool(&out, "registrationOpen", s->registration_open);
	json_put_bool(&out, "discoveryEnabled", s->discovery_enabled);
	put_key(&out, req->arena, s->gif_api_key);
	json_put_int(&out, "maxUploadSizeMb",
	    (s->max_upload_size_bytes + mb_bytes / 2) / mb_bytes);
	json_put_bool(
	    &out, "federationRelayEnabled", s->federation_relay_enabled);
	json_put_int(
	    &out, "federationRelayTtlDays", s->federation_relay_ttl_days);
	json_put_int(&out, "defaultAutoRotateIntervalDays",
	    s->default_auto_rotate_interval_days);
	json_put_text(&out, "peerAcceptPolicy", s->peer_accept_policy);
	json_put_text(&out, "dmRelayScope", s->dm_relay_scope);
	json_put_text(&out, "homewardScope", s->homeward_scope);
	json_put_int(
	    &out, "relayRequestsPerMinute", s->relay_requests_per_minute);
	json_close(&out);
	return true;
}

/* GET /api/settings/instance */
static bool instance_get(struct request *req, struct err *err)
{
	struct settings settings;

	return settings_read(req->tx, &settings, err) &&
	    reply_settings(req, &settings);
}

/* ---- PATCH: each reader leaves what isn't there as it is ---- */

static void read_name(struct json_in *in, const char **name)
{
	const char *text =
	    json_trim(in->arena, json_text_opt(in, "instanceName", BODY_MAX));

	if (!text)
		return;
	if (!*text || json_units(text) > NAME_MAX)
		json_fail(in, "instanceName", "must have 1 to 32 characters");
	*name = text;
}

/* A masked one is what GET has shown; an empty one clears. */
static void read_key(struct json_in *in, const char **key)
{
	const char *text =
	    json_trim(in->arena, json_text_opt(in, "gifApiKey", KEY_MAX));

	if (text && strncmp(text, masked, strlen(masked)) != 0)
		*key = *text ? text : NULL;
}

static void read_mb(struct json_in *in, int64_t *bytes)
{
	double mb = json_real_opt(
	    in, "maxUploadSizeMb", (double)*bytes / (double)mb_bytes);

	if (mb >= 1 && mb <= MB_MAX)
		*bytes = (int64_t)(mb * (double)mb_bytes + 0.5);
	else
		json_fail(in, "maxUploadSizeMb", "must be from 1 to 5120");
}

static void read_word(struct json_in *in, const char *name,
    const char *const *words, const char **value)
{
	const char *text = json_text_opt(in, name, WORD_MAX);

	if (!text)
		return;
	for (size_t i = 0; words[i]; i++)
		if (strcmp(words[i], text) == 0) {
			*value = text;
			return;
		}
	json_fail(in, name, "has no such value");
}

static void read_ours(struct json_in *in, struct settings *s)
{
	static const char *const policies[] = { "verify", "approve", "open",
		NULL };
	static const char *const scopes[] = { "participants", "all_peers",
		NULL };
	static const char *const homeward[] = { "declared", "any_peer", NULL };

	read_word(in, "peerAcceptPolicy", policies, &s->peer_accept_policy);
	read_word(in, "dmRelayScope", scopes, &s->dm_relay_scope);
	read_word(in, "homewardScope", homeward, &s->homeward_scope);
	s->relay_requests_per_minute =
	    json_int_opt(in, "relayRequestsPerMinute", 1, RATE_MAX,
		s->relay_requests_per_minute);
}

static bool read_changes(
    struct request *req, struct settings *s, struct err *err)
{
	struct json_in in = json_read(req->arena, req->body, err);

	read_name(&in, &s->instance_name);
	s->registration_open =
	    json_bool_opt(&in, "registrationOpen", s->registration_open);
	s->discovery_enabled =
	    json_bool_opt(&in, "discoveryEnabled", s->discovery_enabled);
	read_key(&in, &s->gif_api_key);
	read_mb(&in, &s->max_upload_size_bytes);
	s->federation_relay_enabled = json_bool_opt(
	    &in, "federationRelayEnabled", s->federation_relay_enabled);
	s->federation_relay_ttl_days =
	    json_int_opt(&in, "federationRelayTtlDays", 1, DAYS_MAX,
		s->federation_relay_ttl_days);
	s->default_auto_rotate_interval_days =
	    json_int_opt(&in, "defaultAutoRotateIntervalDays", 1, DAYS_MAX,
		s->default_auto_rotate_interval_days);
	read_ours(&in, s);
	return json_done(&in);
}

/* PATCH /api/settings/instance */
static bool instance_patch(struct request *req, struct err *err)
{
	struct settings settings;

	if (!settings_lock(req->tx, &settings, err) ||
	    !read_changes(req, &settings, err))
		return false;
	log_info("settings.changed", F("user", v_id(req->user.id)));
	return settings_write(req->tx, &settings, err) &&
	    sql_none(req->tx, &SQL_settings_audit, err,
		v_text(req->user.username)) &&
	    reply_settings(req, &settings);
}

/* clang-format off */
const struct route settings_routes[] = {
	{ "GET",   "/api/settings/instance", ADMIN, 0,        0, 0, instance_get },
	{ "PATCH", "/api/settings/instance", ADMIN, BODY_MAX, 0, 0, instance_patch },
	{ .method = NULL },
};
/* clang-format on */
