-- Running daemons. An id that is held as an advisory lock is alive.

-- name: worker_id :one
SELECT snowflake() AS id;

-- name: worker_write :none
-- $1 id, $2 daemon, $3 instance, $4 host, $5 pid, $6 version, $7 schema, $8 rates
INSERT INTO workers (id, daemon, instance, host, pid, version, schema, rates)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8::text::jsonb)
    ON CONFLICT (id) DO UPDATE SET last_seen_at = now(), rates = excluded.rates;

-- name: worker_leave :none
DELETE FROM workers WHERE id = $1;

-- name: worker_sweep :none
-- A daemon that has just written itself down may not hold its lock yet.
DELETE FROM workers w
 WHERE w.last_seen_at < now() - interval '1 minute'
   AND NOT EXISTS (
        SELECT FROM pg_locks l
         WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
           AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
           AND (l.classid::bigint << 32 | l.objid::bigint) = w.id);
