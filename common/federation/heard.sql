-- name: heard_find :many
SELECT event_id FROM events_heard
 WHERE source_instance = $1 AND event_type = $2 AND event_id = ANY($3::text[]);

-- name: heard_add :none
INSERT INTO events_heard (source_instance, event_type, event_id)
SELECT $1, $2, id FROM unnest($3::text[]) AS k(id)
    ON CONFLICT DO NOTHING;
