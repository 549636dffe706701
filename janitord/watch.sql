-- What an operator's graphs show of the whole cluster, by the leader alone.

-- name: watch_queues :many
SELECT queue, waiting::bigint AS waiting, leased::bigint AS leased,
       set_aside::bigint AS set_aside, dead::bigint AS dead,
       coalesce(extract(epoch FROM oldest), 0)::float8 AS oldest_s
  FROM ops.queue;

-- name: watch_peers :many
SELECT ops.peer_state(p) AS state, count(*) AS peers
  FROM federation_peers p GROUP BY 1;

-- name: watch_server :one
SELECT notify_usage, snapshot_age_s FROM ops.watch();

-- name: watch_dead_rows :many
SELECT relname::text AS "table", n_dead_tup AS dead, n_live_tup AS live
  FROM pg_stat_user_tables
 WHERE schemaname = 'public' AND relname = ANY ($1::text[]);
