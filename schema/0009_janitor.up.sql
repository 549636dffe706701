-- What janitord needs to look after peers, and what it may.

-- With the owner's rights: whose snapshot it is nobody else may see.
CREATE FUNCTION ops.watch()
RETURNS TABLE (notify_usage double precision, snapshot_age_s double precision)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT pg_notification_queue_usage(),
           coalesce(extract(epoch FROM clock_timestamp() - least(
               (SELECT min(a.xact_start) FROM pg_stat_activity a
                 WHERE a.datname = current_database() AND a.pid <> pg_backend_pid()
                   AND a.backend_type = 'client backend'
                   AND (a.backend_xmin IS NOT NULL OR a.backend_xid IS NOT NULL)),
               (SELECT min(x.prepared) FROM pg_prepared_xacts x
                 WHERE x.database = current_database()))), 0)::double precision
$$;
COMMENT ON FUNCTION ops.watch() IS
    'How full the notification queue is, and how old the oldest snapshot.';
REVOKE ALL ON FUNCTION ops.watch() FROM PUBLIC;

GRANT USAGE ON SCHEMA ops TO postrider_janitord;
GRANT EXECUTE ON FUNCTION ops.watch() TO postrider_janitord, postrider_operator, postrider_monitor;
GRANT EXECUTE ON FUNCTION ops.peer_state(public.federation_peers), ops.outbox_count()
    TO postrider_janitord;
GRANT SELECT, DELETE ON peer_rates TO postrider_janitord;
GRANT INSERT ON s2s_requests TO postrider_janitord;
