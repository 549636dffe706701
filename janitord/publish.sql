-- name: publish_next :one
SELECT sync_publish($1::integer, '100 ms')::bigint AS published;
