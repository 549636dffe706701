-- Living rows and tombstones by identity, our own people by id: one probe of
-- an index each, whatever the planner believes about the table.
-- name: persons_find :many
WITH k AS (
    SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[])
        WITH ORDINALITY AS t(host, person, native, place))
SELECT k.place, u.id, false AS is_gone, u.password_hash = '!federation-replicated' AS is_stub,
       u.display_name, u.avatar, u.avatar_color, u.banner, u.bio,
       u.replicated_instances::text AS replicated_instances
  FROM k CROSS JOIN LATERAL (
       SELECT * FROM users WHERE home_instance = k.host AND home_user_id = k.person
          AND NOT is_deleted LIMIT 1) u
UNION ALL
SELECT k.place, u.id, true, false, NULL, NULL, NULL, NULL, NULL, NULL
  FROM k CROSS JOIN LATERAL (
       SELECT id FROM users WHERE home_instance = k.host AND home_user_id = k.person
          AND is_deleted LIMIT 1) u
UNION ALL
SELECT k.place, u.id, u.is_deleted, false, NULL, NULL, NULL, NULL, NULL,
       u.replicated_instances::text
  FROM k CROSS JOIN LATERAL (
       SELECT * FROM users WHERE id = k.native AND home_instance IS NULL LIMIT 1) u;

-- Accounts that were registered before anybody told their home user id. A
-- name that fits two people of the batch or two accounts binds nobody.
-- name: persons_bind :none
WITH k AS (
    SELECT host, name, min(person) AS person
      FROM unnest($1::text[], $2::text[], $3::text[]) AS t(host, person, name)
     GROUP BY host, name HAVING count(*) = 1),
fit AS (
    SELECT min(u.id) AS id, k.host, k.person
      FROM k JOIN users u ON u.home_instance = k.host
       AND lower(split_part(u.username, '@', 1) COLLATE "C") = k.name
       AND u.home_user_id IS NULL AND NOT u.is_deleted
     GROUP BY k.host, k.person HAVING count(*) = 1)
UPDATE users u SET home_user_id = fit.person
  FROM fit WHERE u.id = fit.id AND u.home_user_id IS NULL;

-- Both unique keys may be hit: the identity (somebody else made the stub) and
-- the name (another person's); the caller looks again and tries another suffix.
-- Names fold alike in every locale.
-- name: persons_insert :none
INSERT INTO users (username, password_hash, home_instance, home_user_id, display_name,
       avatar, avatar_color, banner, bio)
SELECT lower((left(person, 100) || $8 || '@' || host) COLLATE "C"),
       '!federation-replicated', host,
       person, display_name, avatar, avatar_color, banner, bio
  FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[],
              $7::text[])
    AS t(host, person, display_name, avatar, avatar_color, banner, bio)
 ORDER BY host, person
    ON CONFLICT DO NOTHING;

-- name: persons_hydrate :none
WITH locked AS MATERIALIZED (
    SELECT id FROM users WHERE id = ANY($1::bigint[]) ORDER BY id FOR NO KEY UPDATE)
UPDATE users u
   SET display_name = coalesce(nullif(u.display_name, ''), k.display_name),
       avatar = CASE WHEN u.avatar LIKE 'http%' THEN u.avatar
                     ELSE coalesce(k.avatar, u.avatar) END,
       avatar_color = coalesce(nullif(u.avatar_color, ''), k.avatar_color),
       banner = CASE WHEN u.banner LIKE 'http%' THEN u.banner
                     ELSE coalesce(k.banner, u.banner) END,
       bio = coalesce(nullif(u.bio, ''), k.bio)
  FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[])
    AS k(id, display_name, avatar, avatar_color, banner, bio), locked
 WHERE u.id = k.id AND locked.id = k.id AND NOT u.is_deleted;
