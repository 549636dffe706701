-- The change into the log of sync, whoever is told. For whom it was also queued;
-- one row without a host when relay is disabled.
-- $1: hosts; $2: also to all peers, if the operator wants it; $3: but not this.
-- $9: not for sync; $10: no payload there; $11: for these hosts only; $12: its time;
-- $13: its context there.
-- name: outbox_add :many
WITH logged AS (
    INSERT INTO federation_mutation_log (context_type, context_id, mutation_type,
           entity_id, payload, hosts, except_host, homeward, mutated_at)
    SELECT $4, coalesce($13, $5), $6, $7, CASE WHEN NOT $10 THEN $8 END, $1, $3, $11, coalesce($12, now())
     WHERE NOT $9),
added AS (
    INSERT INTO federation_outbox (peer_id, context_type, context_id, event_type,
           entity_id, payload, created_at, expires_at)
    SELECT p.id, $4, $5, $6, $7, $8, coalesce($12, now()),
           now() + make_interval(days => s.federation_relay_ttl_days)
      FROM federation_peers p CROSS JOIN instance_settings s
     WHERE s.federation_relay_enabled
       AND (p.host = ANY($1::text[]) OR ($2 AND s.dm_relay_scope = 'all_peers'))
       AND p.host IS DISTINCT FROM $3
       AND p.status IN ('active', 'unreachable', 'pending')
    RETURNING peer_id)
SELECT p.id AS peer, p.host FROM added JOIN federation_peers p ON p.id = added.peer_id
UNION ALL
SELECT NULL, NULL FROM instance_settings WHERE NOT federation_relay_enabled;
