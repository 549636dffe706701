-- The roles of a cluster; may be run any number of times. Daemons log in and
-- own nothing; what each may touch is granted by migration 0007. Passwords or
-- peer authentication are the operator's (pg_hba.conf).
DO $$
DECLARE
    role text;
BEGIN
    FOREACH role IN ARRAY ARRAY['postrider_frontd', 'postrider_outboxd',
            'postrider_filed', 'postrider_janitord', 'postrider_app'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role) THEN
            EXECUTE format('CREATE ROLE %I LOGIN', role);
        END IF;
    END LOOP;
    FOREACH role IN ARRAY ARRAY['postrider_operator', 'postrider_monitor'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role) THEN
            EXECUTE format('CREATE ROLE %I NOLOGIN', role);
        END IF;
    END LOOP;
EXCEPTION WHEN duplicate_object OR unique_violation THEN
    -- Somebody else ran this at the same moment.
    NULL;
END $$;
COMMENT ON ROLE postrider_frontd IS 'Postrider: HTTP and WebSocket.';
COMMENT ON ROLE postrider_outboxd IS 'Postrider: carries what we owe to peers.';
COMMENT ON ROLE postrider_filed IS 'Postrider: files.';
COMMENT ON ROLE postrider_janitord IS 'Postrider: clean-up and health.';
COMMENT ON ROLE postrider_app IS 'Postrider: applications; only functions meant for them.';
COMMENT ON ROLE postrider_operator IS 'Postrider: may act through the functions of schema ops.';
COMMENT ON ROLE postrider_monitor IS 'Postrider: may read the views of schema ops.';
