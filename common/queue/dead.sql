-- Moving what cannot be delivered out of its queue.

-- name: dead_from_outbox :none
-- $1 peer, $2 origin, $3 ids, $4 whys, $5 answers
-- Bounds: a plan that was made while the outbox was small takes ANY for a filter.
WITH gone AS (
    DELETE FROM federation_outbox
     WHERE peer_id = $1 AND id = ANY ($3::bigint[])
       AND id BETWEEN (SELECT min(i) FROM unnest($3::bigint[]) i)
                  AND (SELECT max(i) FROM unnest($3::bigint[]) i)
    RETURNING *)
INSERT INTO dead_letters (queue, peer_id, peer, entry_id, context_type, context_id,
        event_type, entity_id, payload, encryption_version, created_at, why, peer_answer,
        refusals)
SELECT 'outbox', g.peer_id, $2, g.id, g.context_type, g.context_id,
       g.event_type, g.entity_id, g.payload, g.encryption_version, g.created_at, r.why,
       r.answer, g.refusals
  FROM gone g
  JOIN unnest($3::bigint[], $4::text[], $5::text[]) AS r (id, why, answer) ON r.id = g.id
 ORDER BY g.id;
