-- What the answer says besides.
-- name: relay_limits :one
SELECT max_upload_size_bytes, homeward_scope = 'any_peer' AS homeward_any
  FROM instance_settings;

-- One batch of a peer at a time, in commit order; a statement of its own, so
-- that the next one sees what the batch before has left.
-- name: relay_lock :one
SELECT s.max_upload_size_bytes, s.homeward_scope = 'any_peer' AS homeward_any
  FROM instance_settings s, pg_advisory_xact_lock(7236839, hashtext($1));
