-- What the holder of a peer's lease acknowledges and reads next.

-- name: reading_next :many
-- $1 peer, $2 token, $3 cursor, $4 window, $5 what is settled, $6 of that: what is
-- above the cursor (a list that is searched for each entry that is read), $7 floor,
-- $8 snapshot of the last reading or NULL, $9 and $10 what is settled besides: every
-- id from one to the other, $11 give the lease back if there is nothing to read, $12
-- where the outbox was said to begin, $13 and does, $14 what was presented
-- Acknowledges and reads on, in one statement and only for the holder. Without
-- the lease there is no row; with it first one that tells of the reading and has
-- no id. The cursor is a hint, entries commit late: late says that one has
-- appeared behind it. Bounds on both sides: without a lower one every dead row
-- would be read again, and a plan that was made while the outbox was small takes
-- ANY for a filter of all that the peer has in the index.
WITH held AS MATERIALIZED (
    SELECT id, empty_through FROM federation_peers
     WHERE id = $1 AND lease_token = $2::uuid AND lease_until > now()
       FOR NO KEY UPDATE),
gone AS (
    DELETE FROM federation_outbox
     WHERE peer_id = $1 AND id = ANY ($5::bigint[]) AND EXISTS (SELECT FROM held)
       AND id BETWEEN (SELECT min(i) FROM unnest($5::bigint[]) i)
                  AND (SELECT max(i) FROM unnest($5::bigint[]) i)),
gone_too AS (
    DELETE FROM federation_outbox
     WHERE peer_id = $1 AND id BETWEEN $9 AND $10 AND EXISTS (SELECT FROM held)),
seen AS MATERIALIZED (
    SELECT pg_current_snapshot()::text AS snapshot,
           $8::text IS NOT NULL AND EXISTS (
           SELECT FROM federation_outbox o
            WHERE o.peer_id = $1 AND o.id > $7 AND o.id <= $3
              AND NOT pg_visible_in_snapshot(o.xact, $8::text::pg_snapshot)) AS late),
freed AS (
    UPDATE federation_peers
       SET lease_worker = NULL, lease_token = NULL, lease_until = '-infinity',
           empty_through = $13, next_attempt_at = greatest(next_attempt_at, now())
     WHERE $11 AND id = $1 AND lease_token = $2::uuid AND lease_until > now()
       AND empty_through = $12
       AND NOT EXISTS (
           SELECT FROM federation_outbox o
            WHERE o.peer_id = $1 AND o.id > $3 AND o.id <> ALL ($6::bigint[]))
    RETURNING id),
presented AS (
    INSERT INTO outbox_presented (peer_id, through)
    SELECT id, $14 FROM freed
        ON CONFLICT (peer_id) DO UPDATE SET through = excluded.through)
SELECT seen.snapshot, seen.late, EXISTS (SELECT FROM freed) AS freed,
       held.empty_through, NULL::bigint AS id, NULL::text AS context_type, NULL::text AS context_id,
       NULL::text AS event_type, NULL::text AS entity_id, NULL::text AS payload,
       NULL::integer AS encryption_version, NULL::timestamptz AS created_at,
       NULL::timestamptz AS expires_at, NULL::timestamptz AS retry_at, NULL::integer AS refusals,
       NULL::text AS reason
  FROM held CROSS JOIN seen
 UNION ALL
SELECT NULL, NULL, NULL, NULL, e.id, e.context_type, e.context_id, e.event_type, e.entity_id, e.payload,
       e.encryption_version, e.created_at, e.expires_at, e.retry_at, e.refusals, e.reason
  FROM held CROSS JOIN LATERAL (
        SELECT * FROM federation_outbox o
         WHERE o.peer_id = $1 AND o.id > $3 AND o.id <> ALL ($6::bigint[])
         ORDER BY o.peer_id, o.id LIMIT $4) e;

-- name: reading_peek :many
-- $1 peer, $2 token, $3 cursor, $4 window, $5 floor, $6 snapshot of the last reading or NULL
-- The same when nothing is to be acknowledged or given back: writes nothing and waits
-- for nobody. What it tells of the reading stands in every row.
SELECT seen.snapshot, seen.late, false AS freed, held.empty_through,
       e.id, e.context_type, e.context_id, e.event_type, e.entity_id, e.payload,
       e.encryption_version, e.created_at, e.expires_at, e.retry_at, e.refusals, e.reason
  FROM (SELECT empty_through FROM federation_peers
         WHERE id = $1 AND lease_token = $2::uuid AND lease_until > now()) held
 CROSS JOIN (SELECT pg_current_snapshot()::text AS snapshot,
                    $6::text IS NOT NULL AND EXISTS (
                    SELECT FROM federation_outbox o
                     WHERE o.peer_id = $1 AND o.id > $5 AND o.id <= $3
                       AND NOT pg_visible_in_snapshot(o.xact, $6::text::pg_snapshot)) AS late) seen
  LEFT JOIN LATERAL (
        SELECT * FROM federation_outbox o
         WHERE o.peer_id = $1 AND o.id > $3
         ORDER BY o.peer_id, o.id LIMIT $4) e ON true
 ORDER BY e.id;
