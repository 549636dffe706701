-- name: migrate_recorded :one
SELECT to_regclass('public.schema_migrations') IS NOT NULL AS recorded;

-- name: migrate_lock :many
-- A session that migrates holds it to the end of its step.
SELECT pg_advisory_xact_lock(7236839002);

-- name: migrate_table :none
CREATE TABLE IF NOT EXISTS schema_migrations (
    number integer PRIMARY KEY,
    name text NOT NULL,
    checksum text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now(),
    applied_by text NOT NULL DEFAULT session_user
);

-- name: migrate_table_gone :none
DROP TABLE schema_migrations;

-- name: migrate_applied :many
SELECT number, name, checksum, applied_at FROM schema_migrations ORDER BY number;

-- name: migrate_checksum :one
SELECT encode(sha256(convert_to($1, 'UTF8')), 'hex') AS checksum;

-- name: migrate_record :none
INSERT INTO schema_migrations (number, name, checksum) VALUES ($1, $2, $3);

-- name: migrate_forget :none
DELETE FROM schema_migrations WHERE number = $1;
