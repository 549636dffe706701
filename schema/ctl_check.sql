-- What check looks at. Each statement answers a row per finding, in words.

-- name: check_encoding :many
SELECT format('the database is encoded in %s, not UTF8: make another', current_setting('server_encoding')) AS finding
 WHERE current_setting('server_encoding') <> 'UTF8';

-- name: check_durability :many
SELECT format('%s is off: what was accepted can be lost', name) AS finding
  FROM pg_settings
 WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit') AND setting = 'off'
 ORDER BY name;

-- name: check_synchronous :many
SELECT 'a standby follows, but synchronous_standby_names is empty: what was accepted can be lost in a failover' AS finding
 WHERE EXISTS (SELECT FROM pg_stat_replication)
   AND current_setting('synchronous_standby_names') = '';

-- name: check_wal_level :many
SELECT 'wal_level is minimal: neither a standby nor a base backup is possible' AS finding
 WHERE current_setting('wal_level') = 'minimal';

-- name: check_standby :many
SELECT 'this server is a standby: it can be read only' AS finding
 WHERE pg_is_in_recovery();

-- name: check_autovacuum :many
SELECT format('%s is off: queues will grow without bound', name) AS finding
  FROM pg_settings WHERE name IN ('autovacuum', 'track_counts') AND setting = 'off'
UNION ALL
SELECT format('autovacuum is off for table %s', relname)
  FROM pg_class
 WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
   AND reloptions && ARRAY['autovacuum_enabled=false', 'autovacuum_enabled=off'];

-- name: check_notifications :many
SELECT format('the notification queue is %s %% full: a listener has stopped reading; look for old transactions',
              round(100 * pg_notification_queue_usage())) AS finding
 WHERE pg_notification_queue_usage() > 0.1;

-- name: check_connections :many
SELECT format('%s of max_connections = %s are in use', used, current_setting('max_connections')) AS finding
  FROM (SELECT count(*) AS used FROM pg_stat_activity WHERE backend_type = 'client backend') AS now
 WHERE used > 0.8 * current_setting('max_connections')::integer;

-- name: check_snapshots :many
SELECT format('process %s (%s) holds a transaction since %s minutes: dead rows cannot go',
              pid, application_name, extract(epoch FROM now() - xact_start)::bigint / 60) AS finding
  FROM pg_stat_activity
 WHERE xact_start < now() - interval '30 minutes' AND backend_type = 'client backend'
   AND datname = current_database();

-- name: check_clock :many
-- $1 the clock of this machine
SELECT format('the clocks of this machine and the database are %s s apart: signatures will be refused',
              round(abs(extract(epoch FROM clock_timestamp() - $1)))) AS finding
 WHERE abs(extract(epoch FROM clock_timestamp() - $1)) > 2;

-- name: check_backend :one
SELECT pg_backend_pid() AS pid;

-- name: check_roles :many
SELECT format('role %s is missing: run postrider-ctl init', role) AS finding
  FROM unnest(ARRAY['postrider_frontd', 'postrider_outboxd', 'postrider_filed', 'postrider_janitord',
              'postrider_app', 'postrider_operator', 'postrider_monitor']) AS role
 WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role)
UNION ALL
SELECT format('role %s is a superuser: daemons must not be', rolname)
  FROM pg_roles WHERE rolname LIKE 'postrider\_%' AND rolsuper;

-- name: check_settings :many
SELECT 'peer_accept_policy is open: whoever answers first under a name is believed' AS finding
  FROM instance_settings WHERE peer_accept_policy = 'open'
UNION ALL
SELECT 'dm_relay_scope is all_peers: every peer gets every direct message'
  FROM instance_settings WHERE dm_relay_scope = 'all_peers'
UNION ALL
SELECT 'homeward_scope is any_peer: every peer may speak in the name of our people'
  FROM instance_settings WHERE homeward_scope = 'any_peer'
UNION ALL
SELECT 'federation_relay_enabled is off: nothing is sent or taken'
  FROM instance_settings WHERE NOT federation_relay_enabled;

-- name: check_peers :many
SELECT format('peer %s: %s', peer, meaning) AS finding
  FROM ops.peers
 WHERE state IN ('refuses our signature', 'unreachable', 'no peer', 'awaiting approval');

-- name: check_workers :many
SELECT 'no outboxd is running: nothing is sent' AS finding
 WHERE NOT EXISTS (SELECT FROM ops.workers WHERE daemon = 'outboxd' AND alive)
UNION ALL
SELECT format('%s %s on %s was built for schema %s', daemon, instance, host, schema)
  FROM ops.workers WHERE alive AND schema <> $1;

-- name: check_dead_letters :many
SELECT format('%s dead letters for %s: look at ops.dead_letters', count(*), coalesce(peer, queue)) AS finding
  FROM dead_letters GROUP BY coalesce(peer, queue) ORDER BY count(*) DESC LIMIT 20;
