-- name: publish_next :one
SELECT sync_publish($1::integer)::bigint AS published;
