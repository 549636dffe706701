-- name: notify_ride :many
-- Behind somebody's commit, in a transaction of its own that waits for no disk.
SELECT set_config('synchronous_commit', 'off', true), pg_notify(channel, payload)
  FROM unnest($1, $2) AS s (channel, payload);

-- name: notify_send :many
SELECT pg_notify(channel, payload) FROM unnest($1, $2) AS s (channel, payload);
