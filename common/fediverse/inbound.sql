-- name: inbound_store :opt
-- Nothing comes back for a repeat. Another recipient of the same activity is
-- news, also when it was taken already.
INSERT INTO fediverse_inbound AS i (activity_id, actor, type, object, body, actor_ids)
VALUES ($1, $2, $3, $4, $5, CASE WHEN $6::uuid IS NULL THEN '{}' ELSE ARRAY[$6::uuid] END)
ON CONFLICT (activity_id) DO UPDATE
   SET actor_ids = i.actor_ids || excluded.actor_ids, taken_at = NULL
 WHERE i.actor = excluded.actor AND NOT i.actor_ids @> excluded.actor_ids
RETURNING i.id;

-- name: inbound_revive :none
SELECT fediverse_revive($1);
