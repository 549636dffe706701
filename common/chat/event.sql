-- One statement for any number of changes: the rows move on by their number
-- of changes, and each change has its offset above the seq before.
-- name: changes_append :many
WITH moved AS (
    UPDATE dm_channels c SET seq = c.seq + k.added
      FROM unnest($1::bigint[], $2::bigint[]) AS k(id, added)
     WHERE c.id = k.id
    RETURNING c.id, c.seq, c.seq - k.added AS base),
told AS (
    INSERT INTO conversation_events (conversation_id, seq, kind, entity_id, actor_id)
    SELECT m.id, m.base + k.step, k.kind, k.entity, k.actor
      FROM unnest($3::bigint[], $4::bigint[], $5::text[], $6::bigint[], $7::bigint[])
        AS k(conversation, step, kind, entity, actor)
      JOIN moved m ON m.id = k.conversation)
SELECT id, seq FROM moved;

-- name: user_changes_append :many
WITH change AS (
    SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[])
        WITH ORDINALITY AS t(person, kind, entity, actor, place)),
locked AS MATERIALIZED (
    SELECT u.id FROM users u
     WHERE u.id IN (SELECT person FROM change)
       AND u.password_hash <> '!federation-replicated'
     ORDER BY u.id FOR NO KEY UPDATE),
moved AS (
    UPDATE users u SET events_seq = u.events_seq + k.added
      FROM (SELECT person, count(*) AS added FROM change
              JOIN locked ON locked.id = person GROUP BY 1) k
     WHERE u.id = k.person
    RETURNING u.id, u.events_seq AS seq, u.events_seq - k.added AS base),
told AS (
    INSERT INTO user_events (user_id, seq, kind, entity_id, actor_id)
    SELECT m.id, m.base + row_number() OVER (PARTITION BY m.id ORDER BY k.place),
           k.kind, k.entity, k.actor
      FROM change k JOIN moved m ON m.id = k.person)
SELECT id, seq FROM moved;
