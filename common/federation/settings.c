#include "common/federation/settings.h"

#include "common/federation/settings.sql.h"

/* clang-format off */
static const struct shape settings_shape[] = {
	SHAPE(TEXT, struct settings, instance_name, NULL),
	SHAPE(TEXT, struct settings, instance_id, NULL),
	SHAPE(BOOL, struct settings, registration_open, NULL),
	SHAPE(BOOL, struct settings, discovery_enabled, NULL),
	SHAPE(TEXT, struct settings, gif_api_key, NULL),
	SHAPE(INT,  struct settings, max_upload_size_bytes, NULL),
	SHAPE(BOOL, struct settings, federation_relay_enabled, NULL),
	SHAPE(INT,  struct settings, federation_relay_ttl_days, NULL),
	SHAPE(INT,  struct settings, default_auto_rotate_interval_days, NULL),
	SHAPE(TEXT, struct settings, peer_accept_policy, NULL),
	SHAPE(TEXT, struct settings, dm_relay_scope, NULL),
	SHAPE(TEXT, struct settings, homeward_scope, NULL),
	SHAPE(INT,  struct settings, relay_requests_per_minute, NULL),
	SHAPE_END(struct settings),
};
/* clang-format on */

bool settings_read(struct tx *tx, struct settings *settings, struct err *err)
{
	return sql_one(tx, &SQL_settings_read, settings_shape, settings, err);
}

bool settings_lock(struct tx *tx, struct settings *settings, struct err *err)
{
	return sql_one(tx, &SQL_settings_lock, settings_shape, settings, err);
}

bool settings_write(
    struct tx *tx, const struct settings *settings, struct err *err)
{
	const struct settings *s = settings;

	return sql_none(tx, &SQL_settings_write, err, v_text(s->instance_name),
	    v_bool(s->registration_open), v_bool(s->discovery_enabled),
	    v_text(s->gif_api_key), v_int(s->max_upload_size_bytes),
	    v_bool(s->federation_relay_enabled),
	    v_int(s->federation_relay_ttl_days),
	    v_int(s->default_auto_rotate_interval_days),
	    v_text(s->peer_accept_policy), v_text(s->dm_relay_scope),
	    v_text(s->homeward_scope), v_int(s->relay_requests_per_minute));
}
