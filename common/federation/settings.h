/*
 * settings -- what the operator changes at run time (instance_settings).
 *
 * Read where it is needed, in the transaction that needs it, so that a change
 * counts at once. Worker threads.
 */
#ifndef POSTRIDER_SETTINGS_H
#define POSTRIDER_SETTINGS_H

#include "common/pg/sql.h"

struct settings {
	const char *instance_name;
	const char *instance_id;
	bool registration_open;
	int64_t max_upload_size_bytes;
	bool federation_relay_enabled;
	int64_t federation_relay_ttl_days;
	int64_t default_auto_rotate_interval_days;
	const char *peer_accept_policy; /* verify, approve, open */
	const char *dm_relay_scope;	/* participants, all_peers */
	int64_t relay_requests_per_minute;
};

MUST_CHECK bool settings_read(
    struct tx *tx, struct settings *settings, struct err *err);

#endif
