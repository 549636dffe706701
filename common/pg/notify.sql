-- name: notify_send :many
SELECT pg_notify(channel, payload) FROM unnest($1, $2) AS s (channel, payload);
