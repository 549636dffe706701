-- name: asks_claim :many
-- $1 how many, $2 at once of an origin, $3 the worker, $4 how many for actors:
-- strangers cause those, and peers wait for the others. An error says why it must
-- not be sent: nothing at all goes to who is paused or revoked.
WITH running AS (
    SELECT origin, count(*) AS many FROM s2s_requests
     WHERE claimed_at IS NOT NULL AND answered_at IS NULL AND deadline > now()
     GROUP BY origin),
looking AS (
    SELECT count(*) AS many FROM s2s_requests
     WHERE kind IN ('actor', 'inbox') AND claimed_at IS NOT NULL AND answered_at IS NULL AND deadline > now()),
open AS (
    SELECT r.id, r.kind IN ('actor', 'inbox') AS looks, r.created_at, coalesce(running.many, 0)
               + row_number() OVER (PARTITION BY r.origin ORDER BY r.created_at, r.id) AS place
      FROM s2s_requests r LEFT JOIN running USING (origin)
     WHERE r.claimed_at IS NULL AND r.answered_at IS NULL AND r.deadline > now()),
fair AS (
    SELECT id, looks, row_number() OVER (PARTITION BY looks ORDER BY created_at, id) AS turn
      FROM open WHERE place <= $2),
due AS MATERIALIZED (
    SELECT r.id FROM s2s_requests r
     WHERE r.id IN (SELECT id FROM fair
                     WHERE NOT looks OR turn + (SELECT many FROM looking) <= $4)
       AND r.claimed_at IS NULL AND r.answered_at IS NULL
     ORDER BY r.created_at, r.id
     LIMIT $1 FOR UPDATE SKIP LOCKED)
UPDATE s2s_requests r SET claimed_at = now(), worker = $3
  FROM due WHERE r.id = due.id
RETURNING r.id, r.kind, r.peer_id, r.origin, r.body, r.ephemeral, r.deadline,
       r.answered_at, r.outcome, r.status, r.answer,
       (SELECT 'peer is ' || CASE p.status WHEN 'revoked' THEN p.status ELSE 'paused' END
          FROM federation_peers p
         WHERE p.origin = r.origin AND (p.status = 'revoked' OR p.paused_until > now())) AS error;

-- name: asks_moved :opt
-- Whose inbox it is that moved.
SELECT inbox, actor, leads_to FROM fediverse_moved_inboxes
 WHERE inbox = $1 AND actor IS NOT NULL;

-- name: asks_learned :none
-- $1 inbox that moved, $2 inbox, $3 shared inbox
SELECT fediverse_inbox_found($1, $2, $3);

-- name: asks_drop_ephemeral :none
-- What is late is of no use: typing, ringing.
WITH busy AS (
    SELECT origin FROM s2s_requests
     WHERE claimed_at IS NOT NULL AND answered_at IS NULL AND deadline > now()
     GROUP BY origin HAVING count(*) >= $1)
UPDATE s2s_requests
   SET answered_at = now(), outcome = 'too_late', error = 'peer is busy'
 WHERE claimed_at IS NULL AND answered_at IS NULL AND ephemeral
   AND origin IN (SELECT origin FROM busy);

-- name: asks_answer :none
UPDATE s2s_requests
   SET answered_at = now(), outcome = $2, status = $3, answer = $4, error = $5
 WHERE id = $1 AND answered_at IS NULL;

-- name: asks_reap :many
-- Who holds no lock is dead, and what it had on the wire nobody knows.
WITH alive AS MATERIALIZED (
    SELECT l.classid::bigint << 32 | l.objid::bigint AS id
      FROM pg_locks l
     WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
       AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())),
dead AS MATERIALIZED (
    SELECT r.id FROM s2s_requests r
     WHERE r.claimed_at < now() - interval '2 seconds' AND r.answered_at IS NULL
       AND NOT EXISTS (SELECT FROM alive a WHERE a.id = r.worker)
       FOR UPDATE SKIP LOCKED)
UPDATE s2s_requests r
   SET answered_at = now(), outcome = 'unknown', error = 'its outboxd died'
  FROM dead WHERE r.id = dead.id
RETURNING r.id;
