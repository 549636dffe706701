-- name: enqueue_part :one
-- A member of an object, letter for letter as it came.
SELECT ($1::json -> $2)::text AS text;
