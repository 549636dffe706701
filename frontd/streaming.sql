-- name: streaming_read :one
SELECT max_bitrate_kbps, min_bitrate_kbps, bitrate_step_kbps, allowed_resolutions,
       allowed_framerates, max_resolution, max_framerate, discovery_enabled,
       bitrate_matrix_overrides, allow_custom_bitrate
  FROM instance_settings;

-- name: streaming_lock :one
SELECT max_bitrate_kbps, min_bitrate_kbps, bitrate_step_kbps, allowed_resolutions,
       allowed_framerates, max_resolution, max_framerate, discovery_enabled,
       bitrate_matrix_overrides, allow_custom_bitrate
  FROM instance_settings FOR NO KEY UPDATE;

-- name: streaming_write :none
UPDATE instance_settings
   SET max_bitrate_kbps = $1, min_bitrate_kbps = $2, bitrate_step_kbps = $3,
       allowed_resolutions = $4, allowed_framerates = $5, max_resolution = $6,
       max_framerate = $7, discovery_enabled = $8, bitrate_matrix_overrides = $9,
       allow_custom_bitrate = $10, updated_at = now();

-- name: streaming_audit :none
INSERT INTO audit (who, action, target) VALUES ($1, 'streaming.changed', 'instance_settings');
