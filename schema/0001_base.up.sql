-- What everything else stands on: ids, settings, people, sessions, workers.

-- Ids: 42 bits of milliseconds since 2024-01-01, 10 random node bits, 12 bits
-- of sequence. The sequence holds the last id given out; a new millisecond
-- lifts it to that millisecond's first id and keeps the node bits. Ids
-- therefore only grow and never repeat, whatever the clock does. The lock is
-- taken once a millisecond and released in the same expression, so that no
-- cancellation can keep it. Who needs many ids at once calls snowflake() once
-- and nextval('snowflake_ids') for the others.
CREATE SEQUENCE snowflake_ids AS bigint;
SELECT setval('snowflake_ids', (1 + floor(random() * 1023)::bigint) << 12);

CREATE FUNCTION snowflake() RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    id bigint := nextval('public.snowflake_ids');
    first_of_ms constant bigint :=
        (((extract(epoch FROM clock_timestamp()) * 1000)::bigint - 1704067200000) << 22)
        | (id & (1023 << 12));
BEGIN
    IF id < first_of_ms THEN
        PERFORM pg_advisory_lock(7236839001),
            CASE WHEN nextval('public.snowflake_ids') < first_of_ms
                 THEN setval('public.snowflake_ids', first_of_ms) END,
            pg_advisory_unlock(7236839001);
        id := nextval('public.snowflake_ids');
    END IF;
    RETURN id;
END $$;
COMMENT ON FUNCTION snowflake() IS 'A fresh id; grows, never repeats, whatever the clock does.';

CREATE TABLE instance_settings (
    singleton boolean PRIMARY KEY DEFAULT true CHECK (singleton),
    instance_name text NOT NULL DEFAULT 'Postrider'
        CHECK (length(instance_name) BETWEEN 1 AND 32),
    instance_id uuid NOT NULL DEFAULT gen_random_uuid(),
    registration_open boolean NOT NULL DEFAULT true,
    discovery_enabled boolean NOT NULL DEFAULT true,
    gif_api_key text,
    max_upload_size_bytes bigint NOT NULL DEFAULT 104857600
        CHECK (max_upload_size_bytes BETWEEN 1048576 AND 5368709120),
    federation_relay_enabled boolean NOT NULL DEFAULT true,
    federation_relay_ttl_days integer NOT NULL DEFAULT 30
        CHECK (federation_relay_ttl_days BETWEEN 1 AND 365),
    default_auto_rotate_interval_days integer NOT NULL DEFAULT 90
        CHECK (default_auto_rotate_interval_days BETWEEN 1 AND 365),
    peer_accept_policy text NOT NULL DEFAULT 'verify'
        CHECK (peer_accept_policy IN ('verify', 'approve', 'open')),
    dm_relay_scope text NOT NULL DEFAULT 'participants'
        CHECK (dm_relay_scope IN ('participants', 'all_peers')),
    relay_requests_per_minute integer NOT NULL DEFAULT 90
        CHECK (relay_requests_per_minute > 0),
    fediverse boolean NOT NULL DEFAULT false,
    max_bitrate_kbps integer NOT NULL DEFAULT 20000,
    min_bitrate_kbps integer NOT NULL DEFAULT 500,
    bitrate_step_kbps integer NOT NULL DEFAULT 500,
    allowed_resolutions text NOT NULL DEFAULT '540,720,1080',
    allowed_framerates text NOT NULL DEFAULT '30,45,60',
    max_resolution integer NOT NULL DEFAULT 1080,
    max_framerate integer NOT NULL DEFAULT 60,
    bitrate_matrix_overrides text,
    allow_custom_bitrate boolean NOT NULL DEFAULT true,
    updated_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE instance_settings IS 'What an operator changes at run time; one row.';
INSERT INTO instance_settings DEFAULT VALUES;

CREATE TABLE users (
    id bigint PRIMARY KEY DEFAULT snowflake(),
    username text NOT NULL UNIQUE CHECK (length(username) BETWEEN 1 AND 400),
    display_name text,
    password_hash text NOT NULL,
    avatar text,
    banner text,
    accent_color text,
    avatar_color text,
    bio text,
    status text NOT NULL DEFAULT 'offline'
        CHECK (status IN ('online', 'idle', 'dnd', 'offline')),
    custom_status text,
    is_admin boolean NOT NULL DEFAULT false,
    home_instance text CHECK (home_instance = lower(home_instance) AND home_instance <> ''),
    home_user_id text CHECK (length(home_user_id) BETWEEN 1 AND 256),
    replicated_instances jsonb NOT NULL DEFAULT '[]',
    is_deleted boolean NOT NULL DEFAULT false,
    discoverable boolean NOT NULL DEFAULT true,
    show_activity boolean NOT NULL DEFAULT true,
    profile_updated_at timestamptz,
    password_changed_at timestamptz,
    federation_registry_updated_at timestamptz,
    events_seq bigint NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now(),
    CHECK (home_instance IS NOT NULL OR home_user_id IS NULL),
    CHECK (home_instance IS NULL OR NOT is_admin)
) WITH (fillfactor = 80);
COMMENT ON TABLE users IS 'People: native, stubs, replicated accounts, tombstones.';
COMMENT ON COLUMN users.home_instance IS 'Host name of the home node; NULL: native here.';
-- One living row per person: always both parts together.
CREATE UNIQUE INDEX users_identity ON users (home_instance, home_user_id)
    WHERE home_user_id IS NOT NULL AND NOT is_deleted;
CREATE INDEX users_tombstones ON users (home_instance, home_user_id)
    WHERE home_user_id IS NOT NULL AND is_deleted;
CREATE INDEX users_by_home ON users (home_instance, lower(split_part(username, '@', 1)))
    WHERE home_instance IS NOT NULL AND NOT is_deleted;

CREATE TABLE user_events (
    user_id bigint NOT NULL REFERENCES users ON DELETE CASCADE,
    seq bigint NOT NULL,
    kind text NOT NULL,
    entity_id text,
    actor_id bigint,
    at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_id, seq)
);
COMMENT ON TABLE user_events IS 'What changed for one person, in order; hints for clients.';

CREATE TABLE sessions (
    id bigint PRIMARY KEY DEFAULT snowflake(),
    user_id bigint NOT NULL REFERENCES users ON DELETE CASCADE,
    key_hash bytea NOT NULL CHECK (length(key_hash) = 32),
    created_at timestamptz NOT NULL DEFAULT now(),
    last_used_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL
);
COMMENT ON TABLE sessions IS 'Bearer tokens, by the SHA-256 of their key.';
CREATE INDEX sessions_by_user ON sessions (user_id);
CREATE INDEX sessions_by_expiry ON sessions (expires_at);

CREATE TABLE workers (
    id bigint PRIMARY KEY DEFAULT snowflake(),
    daemon text NOT NULL,
    instance text NOT NULL,
    host text NOT NULL,
    pid integer NOT NULL,
    version text NOT NULL,
    schema integer NOT NULL,
    started_at timestamptz NOT NULL DEFAULT now(),
    last_seen_at timestamptz NOT NULL DEFAULT now(),
    rates jsonb NOT NULL DEFAULT '{}'
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 100);
COMMENT ON COLUMN workers.rates IS 'What it took from each queue lately, a minute: {"outbox": 1200}.';
COMMENT ON TABLE workers IS 'Running daemons; alive while their id is held as an advisory lock.';

CREATE TABLE audit (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT now(),
    who text NOT NULL DEFAULT session_user,
    action text NOT NULL,
    target text,
    reason text,
    rows bigint
);
COMMENT ON TABLE audit IS 'What operators and administrators did, and why.';

CREATE TABLE user_federation_registry (
    user_id bigint NOT NULL REFERENCES users ON DELETE CASCADE,
    origin text NOT NULL,
    label text NOT NULL DEFAULT '',
    username text NOT NULL DEFAULT '',
    remote_user_id text NOT NULL DEFAULT '',
    status text NOT NULL
        CHECK (status IN ('connected', 'disconnected', 'unreachable', 'auth_expired')),
    added_at timestamptz NOT NULL,
    last_connected_at timestamptz,
    disconnected_at timestamptz,
    error_message text,
    PRIMARY KEY (user_id, origin)
);
