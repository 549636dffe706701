-- Taking away what is over, some rows at a time. The age is asked again of the
-- row that is deleted: it may have changed since it was found.

-- name: sweep_nonces :none
-- $1 how many, $2 how old
DELETE FROM nonces
 WHERE seen_at < now() - $2 AND ctid = ANY (ARRAY(
        SELECT n.ctid FROM nonces n WHERE n.seen_at < now() - $2
         ORDER BY n.seen_at LIMIT $1));

-- name: sweep_requests :none
DELETE FROM s2s_requests
 WHERE created_at < now() - $2 AND ctid = ANY (ARRAY(
        SELECT r.ctid FROM s2s_requests r WHERE r.created_at < now() - $2
         ORDER BY r.created_at LIMIT $1));

-- name: sweep_sessions :none
DELETE FROM sessions
 WHERE expires_at < now() - $2 AND ctid = ANY (ARRAY(
        SELECT s.ctid FROM sessions s WHERE s.expires_at < now() - $2
         ORDER BY s.expires_at LIMIT $1));

-- name: sweep_tombstones :none
-- $2 beyond the time to live of what may still be sent to us
DELETE FROM message_tombstones
 WHERE ctid = ANY (ARRAY(
        SELECT t.ctid FROM message_tombstones t
         WHERE t.deleted_at < now() - $2 - (
                SELECT make_interval(days => federation_relay_ttl_days) FROM instance_settings)
         ORDER BY t.deleted_at LIMIT $1))
   AND deleted_at < now() - $2;

-- name: sweep_reaction_tombstones :none
DELETE FROM reaction_tombstones
 WHERE ctid = ANY (ARRAY(
        SELECT t.ctid FROM reaction_tombstones t
         WHERE t.kept_since < now() - $2 - (
                SELECT make_interval(days => federation_relay_ttl_days) FROM instance_settings)
         ORDER BY t.kept_since LIMIT $1))
   AND kept_since < now() - $2;

-- name: sweep_departures :none
DELETE FROM dm_departures
 WHERE ctid = ANY (ARRAY(
        SELECT d.ctid FROM dm_departures d
         WHERE d.left_at < now() - $2 - (
                SELECT make_interval(days => federation_relay_ttl_days) FROM instance_settings)
         ORDER BY d.left_at LIMIT $1))
   AND left_at < now() - $2;

-- name: sweep_heard :none
DELETE FROM events_heard
 WHERE ctid = ANY (ARRAY(
        SELECT h.ctid FROM events_heard h
         WHERE h.heard_at < now() - $2 - (
                SELECT make_interval(days => federation_relay_ttl_days) FROM instance_settings)
         ORDER BY h.heard_at LIMIT $1))
   AND heard_at < now() - $2;

-- Groups that everybody has left go last: first what was said in them. While
-- their rows are held nobody brings them back.
-- name: sweep_group_messages :none
WITH dead AS MATERIALIZED (
    SELECT c.id FROM dm_channels c WHERE c.deleted_at < now() - $2
     ORDER BY c.deleted_at LIMIT 100 FOR NO KEY UPDATE SKIP LOCKED)
DELETE FROM dm_messages
 WHERE id = ANY (ARRAY(
        SELECT m.id FROM dead JOIN dm_messages m ON m.dm_channel_id = dead.id LIMIT $1));

-- name: sweep_groups :none
-- A few at a time: each takes its line of changes along.
DELETE FROM dm_channels
 WHERE deleted_at < now() - $2 AND id = ANY (ARRAY(
        SELECT c.id FROM dm_channels c
         WHERE c.deleted_at < now() - $2
           AND NOT EXISTS (SELECT FROM dm_messages m WHERE m.dm_channel_id = c.id)
         ORDER BY c.deleted_at LIMIT least($1, 100)));

-- name: sweep_typing :none
DELETE FROM typing_told
 WHERE told_at < now() - $2 AND ctid = ANY (ARRAY(
        SELECT t.ctid FROM typing_told t WHERE t.told_at < now() - $2 LIMIT $1));

-- name: sweep_dead_letters :none
DELETE FROM dead_letters
 WHERE died_at < now() - $2 AND ctid = ANY (ARRAY(
        SELECT d.ctid FROM dead_letters d WHERE d.died_at < now() - $2
         ORDER BY d.died_at LIMIT $1));

-- name: sweep_activities_delivered :none
-- Kept for a while: an activity that is enqueued again is known by its row.
DELETE FROM fediverse_outbound_queue
 WHERE status = 'delivered' AND delivered_at < now() - $2 AND ctid = ANY (ARRAY(
        SELECT q.ctid FROM fediverse_outbound_queue q
         WHERE q.status = 'delivered' AND q.delivered_at < now() - $2
         ORDER BY q.delivered_at LIMIT $1));

-- name: sweep_activities_ended :none
DELETE FROM fediverse_outbound_queue
 WHERE status IN ('failed', 'dead') AND created_at < now() - $2 AND ctid = ANY (ARRAY(
        SELECT q.ctid FROM fediverse_outbound_queue q
         WHERE q.status IN ('failed', 'dead') AND q.created_at < now() - $2
         ORDER BY q.created_at LIMIT $1));

-- name: sweep_rates :none
DELETE FROM peer_rates
 WHERE since < now() - $2 AND ctid = ANY (ARRAY(
        SELECT r.ctid FROM peer_rates r WHERE r.since < now() - $2 LIMIT $1));

-- name: sweep_keys :none
-- One that is used is fetched again every day.
DELETE FROM fediverse_keys
 WHERE fetched_at < now() - $2 AND key_id IN (
        SELECT k.key_id FROM fediverse_keys k WHERE k.fetched_at < now() - $2
         ORDER BY k.fetched_at LIMIT $1);

-- name: sweep_missing_keys :none
DELETE FROM fediverse_keys
 WHERE pem IS NULL AND failed_until < now() - $2 AND key_id IN (
        SELECT k.key_id FROM fediverse_keys k
         WHERE k.pem IS NULL AND k.failed_until < now() - $2
         ORDER BY k.failed_until LIMIT $1);

-- name: sweep_fetches :none
DELETE FROM fediverse_fetches
 WHERE since < now() - $2 AND origin IN (
        SELECT f.origin FROM fediverse_fetches f WHERE f.since < now() - $2
         ORDER BY f.since LIMIT $1);

-- name: sweep_moved_inboxes :none
DELETE FROM fediverse_moved_inboxes
 WHERE seen_at < now() - $2 AND inbox IN (
        SELECT m.inbox FROM fediverse_moved_inboxes m WHERE m.seen_at < now() - $2
         ORDER BY m.seen_at LIMIT $1);

-- name: sweep_inbound :none
DELETE FROM fediverse_inbound
 WHERE received_at < now() - $2 AND id IN (
        SELECT i.id FROM fediverse_inbound i WHERE i.received_at < now() - $2
         ORDER BY i.received_at LIMIT $1);

-- name: sweep_mutation_log :one
-- $1 after which row, $2 how many, $3 how old
-- In order of id, which is that of age; what hosts may read goes along.
WITH looked AS MATERIALIZED (
    SELECT l.id, l.mutated_at < now() - $3 AS old
      FROM federation_mutation_log l WHERE l.id > $1 ORDER BY l.id LIMIT $2),
swept AS (
    DELETE FROM federation_mutation_log l USING looked
     WHERE l.id = looked.id AND looked.old
    RETURNING l.id)
SELECT (SELECT count(*) FROM swept) AS gone,
       coalesce((SELECT max(id) FROM looked), 0) AS cursor,
       (SELECT count(*) FROM looked) >= $2 AND EXISTS (SELECT FROM swept) AS more;

-- name: sweep_conversation_events :one
-- $1 after which conversation, $2 how many, $3 how old
-- Walks conversations by their first event: there is no index on the time. The
-- row says what is kept, in the same transaction; a conversation that is busy
-- now is left for the next round. Events never change, so their place is sure;
-- a join might be planned through the whole table.
WITH looked AS MATERIALIZED (
    SELECT c.id FROM dm_channels c WHERE c.id > $1 ORDER BY c.id LIMIT 200),
stale AS MATERIALIZED (
    SELECT c.id FROM dm_channels c
     WHERE c.id IN (SELECT id FROM looked)
       AND (SELECT e.at FROM conversation_events e WHERE e.conversation_id = c.id
             ORDER BY e.conversation_id, e.seq LIMIT 1) < now() - $3
     ORDER BY c.id FOR NO KEY UPDATE SKIP LOCKED),
old AS MATERIALIZED (
    SELECT e.row, e.conversation_id, e.seq
      FROM stale s CROSS JOIN LATERAL (
            SELECT f.ctid AS row, f.conversation_id, f.seq, f.at FROM conversation_events f
             WHERE f.conversation_id = s.id
             ORDER BY f.conversation_id, f.seq LIMIT $2) AS e
     WHERE e.at < now() - $3
     ORDER BY e.conversation_id, e.seq LIMIT $2),
gone AS (
    DELETE FROM conversation_events e WHERE e.ctid = ANY (ARRAY(SELECT row FROM old))
    RETURNING e.conversation_id, e.seq),
kept AS (
    UPDATE dm_channels c SET events_kept_from = greatest(c.events_kept_from, g.last + 1)
      FROM (SELECT conversation_id, max(seq) AS last FROM gone GROUP BY 1) AS g
     WHERE c.id = g.conversation_id)
SELECT (SELECT count(*) FROM gone) AS gone,
       CASE WHEN (SELECT count(*) FROM old) = $2
           THEN (SELECT max(conversation_id) FROM old) - 1
           ELSE coalesce((SELECT max(id) FROM looked), 0) END AS cursor,
       (SELECT count(*) FROM old) = $2 OR (SELECT count(*) FROM looked) = 200 AS more;

-- name: sweep_user_events :one
-- $1 after which person, $2 how many, $3 how old
WITH RECURSIVE hop AS (
    (SELECT u.user_id, 1 AS place FROM user_events u
      WHERE u.user_id > $1 ORDER BY u.user_id LIMIT 1)
    UNION ALL
    SELECT (SELECT u.user_id FROM user_events u
             WHERE u.user_id > hop.user_id ORDER BY u.user_id LIMIT 1), hop.place + 1
      FROM hop WHERE hop.user_id IS NOT NULL AND hop.place < 200),
looked AS MATERIALIZED (SELECT user_id AS id FROM hop WHERE user_id IS NOT NULL),
old AS MATERIALIZED (
    SELECT e.row, e.user_id
      FROM looked l CROSS JOIN LATERAL (
            SELECT f.ctid AS row, f.user_id, f.seq, f.at FROM user_events f
             WHERE f.user_id = l.id ORDER BY f.user_id, f.seq LIMIT $2) AS e
     WHERE e.at < now() - $3
       AND (SELECT f.at FROM user_events f WHERE f.user_id = l.id
             ORDER BY f.user_id, f.seq LIMIT 1) < now() - $3
     ORDER BY e.user_id, e.seq LIMIT $2),
gone AS (
    DELETE FROM user_events e WHERE e.ctid = ANY (ARRAY(SELECT row FROM old))
    RETURNING e.seq)
SELECT (SELECT count(*) FROM gone) AS gone,
       CASE WHEN (SELECT count(*) FROM old) = $2
           THEN (SELECT max(user_id) FROM old) - 1
           ELSE coalesce((SELECT max(id) FROM looked), 0) END AS cursor,
       (SELECT count(*) FROM old) = $2 OR (SELECT count(*) FROM looked) = 200 AS more;

-- name: expire_next :opt
-- $1 after which peer
-- The next peer whose oldest entry is past its time and that nobody sends to.
-- Ids are in order of time, so what is behind a living entry lives too, unless
-- the time to live was shortened in between; then it waits for that entry.
WITH RECURSIVE hop AS (
    (SELECT o.peer_id FROM federation_outbox o
      WHERE o.peer_id > $1 ORDER BY o.peer_id LIMIT 1)
    UNION ALL
    SELECT (SELECT o.peer_id FROM federation_outbox o
             WHERE o.peer_id > hop.peer_id ORDER BY o.peer_id LIMIT 1)
      FROM hop WHERE hop.peer_id IS NOT NULL)
SELECT hop.peer_id AS peer, coalesce(p.origin, hop.peer_id::text) AS origin
  FROM hop
 CROSS JOIN LATERAL (
    SELECT o.expires_at FROM federation_outbox o
     WHERE o.peer_id = hop.peer_id ORDER BY o.peer_id, o.id LIMIT 1) AS first
  LEFT JOIN federation_peers p ON p.id = hop.peer_id
 WHERE hop.peer_id IS NOT NULL AND first.expires_at <= now()
   AND coalesce(p.lease_until, '-infinity') <= now()
 LIMIT 1;

-- name: expire_batch :one
-- $1 peer, $2 how many
-- While we hold the peer's row, which is free of a lease, nobody can claim it;
-- if it is being claimed, nothing happens here. A create that was never
-- presented takes with it what was to follow: the peer could not know the
-- thing. After one that was, edits and deletes still go. What follows may be
-- anywhere behind: the things are one JSON object, looked up in while reading
-- on, since a join is planned as a product when it is wrong about their number.
WITH held AS MATERIALIZED (
    SELECT p.id, p.presented_through FROM federation_peers p
     WHERE p.id = $1 AND p.lease_until <= now()
       FOR NO KEY UPDATE SKIP LOCKED),
may AS MATERIALIZED (
    SELECT coalesce((SELECT presented_through FROM held), 0) AS mark
     WHERE EXISTS (SELECT FROM held)
        OR NOT EXISTS (SELECT FROM federation_peers p WHERE p.id = $1)),
old AS MATERIALIZED (
    SELECT o.id, o.context_type, o.event_type, o.entity_id
      FROM may CROSS JOIN LATERAL (
            SELECT * FROM federation_outbox e
             WHERE e.peer_id = $1 ORDER BY e.peer_id, e.id LIMIT $2) AS o
     WHERE o.expires_at <= now()),
unknown AS MATERIALIZED (
    SELECT jsonb_object_agg(thing, id) AS things, min(id) AS first
      FROM (SELECT old.context_type || ' ' || old.entity_id AS thing, min(old.id) AS id
              FROM old
             WHERE old.event_type = 'create' AND old.id > (SELECT mark FROM may)
             GROUP BY 1) AS t),
after AS MATERIALIZED (
    SELECT o.id FROM federation_outbox o
     WHERE o.peer_id = $1 AND o.id > (SELECT first FROM unknown)
       AND (SELECT things FROM unknown) ? (o.context_type || ' ' || o.entity_id)
       AND o.id > ((SELECT things FROM unknown)
               ->> (o.context_type || ' ' || o.entity_id))::bigint),
gone AS (
    DELETE FROM federation_outbox o
     WHERE o.peer_id = $1 AND o.id = ANY (ARRAY(
            SELECT id FROM old UNION SELECT id FROM after))
    RETURNING o.id)
SELECT (SELECT count(*) FROM old) AS expired,
       (SELECT count(*) FROM gone) AS gone;
