/*
 * settings -- what the operator changes at run time (instance_settings).
 *
 * Read where it is needed, in the transaction that needs it, so that a change
 * counts at once, in every process and whoever made it. Nothing is cached: the
 * busy statements (outbox_add, peer_count, relay_lock, handshake_terms) join
 * the one row, which costs no round trip of its own, and a cache that a signal
 * clears would be wrong for as long as a signal may be lost (a second) and
 * would answer differently in two processes. postrider_control says "settings"
 * for whoever holds something made of them.
 *
 * Worker threads.
 */
#ifndef POSTRIDER_SETTINGS_H
#define POSTRIDER_SETTINGS_H

#include "common/pg/sql.h"

struct settings {
	const char *instance_name; /* at most 32 */
	const char *instance_id;
	bool registration_open;
	bool discovery_enabled;
	const char *gif_api_key; /* or NULL */
	int64_t max_upload_size_bytes;
	bool federation_relay_enabled;
	int64_t federation_relay_ttl_days;
	int64_t default_auto_rotate_interval_days; /* of new peers */
	const char *peer_accept_policy;		   /* verify, approve, open */
	const char *dm_relay_scope;		   /* participants, all_peers */
	const char *homeward_scope;		   /* declared, any_peer */
	int64_t relay_requests_per_minute;
};

MUST_CHECK bool settings_read(
    struct tx *tx, struct settings *settings, struct err *err);

/* For a change: nobody else changes them meanwhile. Both name all of them. */
MUST_CHECK bool settings_lock(
    struct tx *tx, struct settings *settings, struct err *err);
MUST_CHECK bool settings_write(
    struct tx *tx, const struct settings *settings, struct err *err);

#endif
