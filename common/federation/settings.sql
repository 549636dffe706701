-- name: settings_read :one
SELECT instance_name, instance_id::text AS instance_id, registration_open,
       max_upload_size_bytes, federation_relay_enabled, federation_relay_ttl_days,
       default_auto_rotate_interval_days, peer_accept_policy, dm_relay_scope,
       relay_requests_per_minute
  FROM instance_settings;
