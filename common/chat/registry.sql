-- name: registry_read :many
SELECT origin, label, username, remote_user_id, status, added_at, last_connected_at,
       disconnected_at, error_message
  FROM user_federation_registry WHERE user_id = $1 ORDER BY added_at, origin;

-- name: registry_version :one
SELECT federation_registry_updated_at AS updated_at FROM users WHERE id = $1;

-- name: registry_advance :none
UPDATE users SET federation_registry_updated_at = $2
 WHERE id = $1
   AND (federation_registry_updated_at IS NULL OR federation_registry_updated_at < $2);

-- name: registry_clear :none
DELETE FROM user_federation_registry WHERE user_id = $1;

-- name: registry_fill :none
INSERT INTO user_federation_registry (user_id, origin, label, username, remote_user_id,
       status, added_at, last_connected_at, disconnected_at, error_message)
SELECT $1, * FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[],
                         $7::timestamptz[], $8::timestamptz[], $9::timestamptz[], $10::text[]);

-- A list that changed is newer, or a client would put back what it remembers.
-- name: registry_leave :none
WITH gone AS (
    DELETE FROM user_federation_registry
     WHERE user_id = $1 AND rtrim(origin, '/') = ANY($2::text[]))
UPDATE users
   SET federation_registry_updated_at = greatest(
           date_trunc('milliseconds', clock_timestamp()),
           federation_registry_updated_at + interval '1 millisecond'),
       replicated_instances = coalesce((
           SELECT jsonb_agg(e ORDER BY place)
             FROM jsonb_array_elements(replicated_instances) WITH ORDINALITY AS t(e, place)
            WHERE rtrim(coalesce(e->>'origin', 'https://' || (e->>'domain')), '/')
                  <> ALL ($2::text[])), '[]')
 WHERE id = $1;
