-- Who may do what: a line a daemon and table. The roles come from roles.sql.
-- A test proves that what isn't here is refused.

DO $$
BEGIN
    IF (SELECT count(*) FROM pg_roles WHERE rolname IN ('postrider_frontd', 'postrider_outboxd',
            'postrider_filed', 'postrider_janitord', 'postrider_app', 'postrider_operator',
            'postrider_monitor')) < 7 THEN
        RAISE EXCEPTION 'the roles are missing: run postrider-ctl init first'
            USING ERRCODE = 'PT409';
    END IF;
END $$;

REVOKE CREATE ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public
    TO postrider_frontd, postrider_outboxd, postrider_filed, postrider_janitord;

-- All daemons: which schema, which settings, who else runs, fresh ids.
GRANT SELECT ON schema_migrations, instance_settings
    TO postrider_frontd, postrider_outboxd, postrider_filed, postrider_janitord;
GRANT SELECT, INSERT, UPDATE, DELETE ON workers
    TO postrider_frontd, postrider_outboxd, postrider_filed, postrider_janitord;
GRANT USAGE, UPDATE ON SEQUENCE snowflake_ids
    TO postrider_frontd, postrider_outboxd, postrider_filed, postrider_janitord;
GRANT INSERT ON audit
    TO postrider_frontd, postrider_outboxd, postrider_filed, postrider_janitord;

-- frontd: people, conversations, trust; it fills queues and empties none.
GRANT UPDATE ON instance_settings TO postrider_frontd;
GRANT SELECT ON audit TO postrider_frontd;
GRANT SELECT, INSERT, UPDATE, DELETE ON
    users, sessions, user_events, user_federation_registry,
    dm_channels, dm_members, dm_messages, dm_reactions, message_tombstones, attachments,
    read_states, conversation_events, friends, friend_requests,
    federation_peers
    TO postrider_frontd;
GRANT SELECT, INSERT ON federation_outbox, federation_mutation_log, nonces,
    federation_file_queue, fediverse_outbound_queue
    TO postrider_frontd;
GRANT SELECT, INSERT, UPDATE ON s2s_requests, fediverse_actors TO postrider_frontd;
GRANT SELECT, INSERT, UPDATE, DELETE ON peer_rates TO postrider_frontd;
GRANT DELETE ON federation_outbox TO postrider_frontd; -- of a revoked peer
GRANT SELECT ON federation_allowed_origins, dead_letters TO postrider_frontd;
GRANT USAGE ON SEQUENCE federation_outbox_ids TO postrider_frontd;

-- outboxd: what we owe, and to whom; nothing that people wrote.
GRANT SELECT, UPDATE ON federation_peers, s2s_requests, fediverse_outbound_queue
    TO postrider_outboxd;
GRANT SELECT, UPDATE, DELETE ON federation_outbox TO postrider_outboxd;
GRANT SELECT, INSERT, UPDATE, DELETE ON outbox_presented TO postrider_outboxd;
GRANT SELECT, INSERT ON dead_letters TO postrider_outboxd;
GRANT SELECT ON fediverse_actors TO postrider_outboxd;

-- filed: files, and the announcement that one is ready.
GRANT SELECT, UPDATE, DELETE ON federation_file_queue TO postrider_filed;
GRANT SELECT, UPDATE ON attachments, dm_channels TO postrider_filed;
GRANT SELECT, INSERT ON conversation_events TO postrider_filed;
GRANT SELECT ON dm_messages, federation_peers TO postrider_filed;
GRANT INSERT ON dead_letters TO postrider_filed;

-- janitord: takes away what is over, looks after peers.
GRANT SELECT, DELETE ON
    sessions, user_events, conversation_events, message_tombstones, nonces, s2s_requests,
    federation_mutation_log, federation_outbox, dead_letters, federation_file_queue,
    fediverse_outbound_queue, attachments
    TO postrider_janitord;
GRANT INSERT ON dead_letters TO postrider_janitord;
GRANT SELECT, UPDATE ON federation_peers, dm_channels TO postrider_janitord;

-- People.
GRANT USAGE ON SCHEMA ops TO postrider_operator, postrider_monitor;
GRANT SELECT ON ALL TABLES IN SCHEMA ops TO postrider_operator, postrider_monitor;
GRANT EXECUTE ON FUNCTION ops.peer_state(federation_peers), ops.outbox_count(),
    ops.sample_percent()
    TO postrider_operator, postrider_monitor;
