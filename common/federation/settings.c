#include "common/federation/settings.h"

#include "common/federation/settings.sql.h"

/* clang-format off */
static const struct shape settings_shape[] = {
	SHAPE(TEXT, struct settings, instance_name, NULL),
	SHAPE(TEXT, struct settings, instance_id, NULL),
	SHAPE(BOOL, struct settings, registration_open, NULL),
	SHAPE(INT,  struct settings, max_upload_size_bytes, NULL),
	SHAPE(BOOL, struct settings, federation_relay_enabled, NULL),
	SHAPE(INT,  struct settings, federation_relay_ttl_days, NULL),
	SHAPE(INT,  struct settings, default_auto_rotate_interval_days, NULL),
	SHAPE(TEXT, struct settings, peer_accept_policy, NULL),
	SHAPE(TEXT, struct settings, dm_relay_scope, NULL),
	SHAPE(INT,  struct settings, relay_requests_per_minute, NULL),
	SHAPE_END(struct settings),
};
/* clang-format on */

bool settings_read(struct tx *tx, struct settings *settings, struct err *err)
{
	return sql_one(tx, &SQL_settings_read, settings_shape, settings, err);
}
