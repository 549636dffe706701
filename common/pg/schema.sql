-- name: schema_applied :one
SELECT coalesce(max(number), 0)::bigint AS number FROM schema_migrations;

-- name: schema_recorded :one
SELECT to_regclass('public.schema_migrations') IS NOT NULL AS recorded;
