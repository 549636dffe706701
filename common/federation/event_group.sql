-- When people last left, of $2 the conversation each.
-- name: departures_find :many
SELECT d.dm_channel_id, d.user_id, d.left_at
  FROM unnest($1::bigint[], $2::bigint[]) AS k(channel, person)
  JOIN dm_departures d ON d.dm_channel_id = k.channel AND d.user_id = k.person;

-- Who was no member: an addition from before may still be on its way.
-- name: departures_note :none
INSERT INTO dm_departures AS d (dm_channel_id, user_id, left_at)
SELECT channel, person, max(at)
  FROM unnest($1::bigint[], $2::bigint[], $3::timestamptz[]) AS k(channel, person, at)
 GROUP BY 1, 2
    ON CONFLICT (dm_channel_id, user_id)
    DO UPDATE SET left_at = greatest(d.left_at, excluded.left_at);
