-- Who leads: whoever holds the session lock.

-- name: lead_take :one
-- $1 the lock. A session that holds it already would count it up: look first.
SELECT CASE WHEN EXISTS (
        SELECT FROM pg_locks l
         WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
           AND l.pid = pg_backend_pid()
           AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
           AND (l.classid::bigint << 32 | l.objid::bigint) = $1)
       THEN true ELSE pg_try_advisory_lock($1) END AS leads;
