-- name: settings_read :one
SELECT instance_name, instance_id::text AS instance_id, registration_open,
       discovery_enabled, gif_api_key, max_upload_size_bytes,
       federation_relay_enabled, federation_relay_ttl_days,
       default_auto_rotate_interval_days, peer_accept_policy, dm_relay_scope,
       homeward_scope, relay_requests_per_minute
  FROM instance_settings;

-- name: settings_lock :one
SELECT instance_name, instance_id::text AS instance_id, registration_open,
       discovery_enabled, gif_api_key, max_upload_size_bytes,
       federation_relay_enabled, federation_relay_ttl_days,
       default_auto_rotate_interval_days, peer_accept_policy, dm_relay_scope,
       homeward_scope, relay_requests_per_minute
  FROM instance_settings FOR NO KEY UPDATE;

-- name: settings_write :none
-- The row is locked; a trigger signals postrider_control, too.
UPDATE instance_settings
   SET instance_name = $1, registration_open = $2, discovery_enabled = $3,
       gif_api_key = $4, max_upload_size_bytes = $5,
       federation_relay_enabled = $6, federation_relay_ttl_days = $7,
       default_auto_rotate_interval_days = $8, peer_accept_policy = $9,
       dm_relay_scope = $10, homeward_scope = $11,
       relay_requests_per_minute = $12, updated_at = now();
