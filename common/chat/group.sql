-- name: group_lock :opt
SELECT c.id, c.owner_id, c.federated_id, c.is_group, c.pair_low, c.pair_high, c.seq,
       c.created_at
  FROM dm_channels c WHERE c.id = $1 AND c.deleted_at IS NULL
   FOR NO KEY UPDATE;

-- name: group_members :many
SELECT m.user_id, u.is_deleted
  FROM dm_members m JOIN users u ON u.id = m.user_id
 WHERE m.dm_channel_id = $1
 ORDER BY m.user_id;

-- Who of $2 is neither a friend of $1 nor in the pair $3 with him.
-- name: group_uninvited :many
SELECT k.id AS user_id, false AS is_deleted
  FROM unnest($2::bigint[]) AS k(id)
 WHERE NOT EXISTS (SELECT FROM friends f WHERE f.user_id = $1 AND f.friend_id = k.id)
   AND NOT EXISTS (SELECT FROM friends f WHERE f.user_id = k.id AND f.friend_id = $1)
   AND NOT EXISTS (
       SELECT FROM dm_channels c
        WHERE c.id = $3 AND NOT c.is_group
          AND $1 IN (c.pair_low, c.pair_high) AND k.id IN (c.pair_low, c.pair_high));

-- Sorted: two batches that make the same groups must not wait in a circle.
-- name: groups_insert :many
INSERT INTO dm_channels AS c (is_group, federated_id, owner_id, owner_home_user_id,
       owner_home_instance, created_at)
SELECT true, k.federated_id, k.owner, coalesce(u.home_user_id, u.id::text), u.home_instance,
       date_trunc('milliseconds', clock_timestamp())
  FROM unnest($1::text[], $2::bigint[]) AS k(federated_id, owner)
  JOIN users u ON u.id = k.owner
 ORDER BY k.federated_id
    ON CONFLICT (federated_id) WHERE is_group AND federated_id IS NOT NULL DO NOTHING
RETURNING c.id, c.owner_id, c.federated_id, c.is_group, c.pair_low, c.pair_high, c.seq,
       c.created_at;

-- name: members_insert :none
INSERT INTO dm_members (dm_channel_id, user_id)
SELECT channel, person FROM unnest($1::bigint[], $2::bigint[]) AS k(channel, person)
 ORDER BY channel, person
    ON CONFLICT DO NOTHING;

-- name: members_delete :none
WITH k AS (
    SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::timestamptz[])
        AS t(channel, person, at)),
gone AS (
    DELETE FROM dm_members m USING k
     WHERE m.dm_channel_id = k.channel AND m.user_id = k.person),
unread AS (
    DELETE FROM read_states r USING k
     WHERE r.channel_id = k.channel AND r.user_id = k.person)
INSERT INTO dm_departures AS d (dm_channel_id, user_id, left_at)
SELECT channel, person, max(at) FROM k GROUP BY 1, 2
    ON CONFLICT (dm_channel_id, user_id)
    DO UPDATE SET left_at = greatest(d.left_at, excluded.left_at);

-- name: groups_bury :none
UPDATE dm_channels c SET deleted_at = now()
 WHERE c.id = ANY($1::bigint[])
   AND NOT EXISTS (SELECT FROM dm_members m WHERE m.dm_channel_id = c.id);

-- Of several owners of one group the last one stands.
-- name: owners_set :none
UPDATE dm_channels c
   SET owner_id = u.id, owner_home_user_id = coalesce(u.home_user_id, u.id::text),
       owner_home_instance = u.home_instance
  FROM (SELECT DISTINCT ON (channel) channel, owner
          FROM unnest($1::bigint[], $2::bigint[])
               WITH ORDINALITY AS t(channel, owner, place)
         ORDER BY channel, place DESC) k
  JOIN users u ON u.id = k.owner
 WHERE c.id = k.channel;

-- name: group_federate :none
UPDATE dm_channels c SET federated_id = gen_random_uuid()::text
 WHERE c.id = $1 AND c.federated_id IS NULL
   AND EXISTS (
       SELECT FROM dm_members m JOIN users u ON u.id = m.user_id
        WHERE m.dm_channel_id = c.id
          AND (u.home_instance IS NOT NULL OR u.replicated_instances::text <> '[]'));

-- $1: groups; $2, $3: who is in them by now.
-- name: groups_revive :none
WITH revived AS (
    UPDATE dm_channels SET deleted_at = NULL WHERE id = ANY($1::bigint[]) AND deleted_at IS NOT NULL)
DELETE FROM dm_members m
 WHERE m.dm_channel_id = ANY($1::bigint[])
   AND NOT EXISTS (
       SELECT FROM unnest($2::bigint[], $3::bigint[]) AS k(channel, person)
        WHERE k.channel = m.dm_channel_id AND k.person = m.user_id);
