-- Peers, what we owe them, what we ask them, what they sent.

CREATE TABLE federation_peers (
    id bigint PRIMARY KEY DEFAULT snowflake(),
    origin text NOT NULL UNIQUE CHECK (length(origin) <= 512),
    -- One peer per host; the origin is looked up here, never built from a host.
    host text NOT NULL UNIQUE,
    instance_name text,
    instance_id text,
    status text NOT NULL DEFAULT 'pending' CHECK (status IN
        ('pending', 'active', 'unreachable', 'awaiting_approval', 'revoked')),
    -- Sealed under the node key. While pending, the secret we made.
    hmac_secret bytea,
    -- Also verifies: a rotation, or the other side's in crossing handshakes.
    pending_hmac_secret bytea,
    -- What an accept that we countered offered; answers one epoch question.
    offered_secret bytea,
    offered_at timestamptz,
    -- Who began: NULL for a peer that came to us.
    initiated_at timestamptz,
    attempt_until timestamptz,
    approval_token text,
    nonce_supported boolean NOT NULL DEFAULT false,
    secret_rotation_at timestamptz,
    secret_rotated_at timestamptz,
    auto_rotate_interval_days integer NOT NULL DEFAULT 90
        CHECK (auto_rotate_interval_days BETWEEN 1 AND 365),
    last_synced_at timestamptz,
    remote_max_upload_size bigint,
    -- Delivery: back-off and health; transport and authentication apart.
    next_attempt_at timestamptz NOT NULL DEFAULT now(),
    transport_failures integer NOT NULL DEFAULT 0,
    auth_failures integer NOT NULL DEFAULT 0,
    last_failure_at timestamptz,
    last_error text,
    last_code integer,
    last_seen_at timestamptz,   -- any sign of life
    last_inbound_at timestamptz,
    last_accepted_at timestamptz,
    -- Asked for a sign of life since it last accepted a batch.
    last_probe_at timestamptz,
    probes integer NOT NULL DEFAULT 0,
    retry_batch_limit integer,  -- halved by an answer that blames the batch
    latency_ms bigint,          -- how long answers take, a moving mean of some
    -- What it took in a minute before it last answered 429: whoever holds the
    -- lease next stays below it.
    limit_per_minute integer,
    limited_at timestamptz,
    paused_until timestamptz,
    paused_by text,
    paused_reason text,
    -- The lease of whoever sends to this peer now.
    lease_worker bigint,
    lease_token uuid,
    lease_until timestamptz NOT NULL DEFAULT '-infinity',
    -- Entries up to here count as presented, sent or not.
    presented_through bigint NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now(),
    CHECK (status NOT IN ('active', 'unreachable') OR hmac_secret IS NOT NULL)
) WITH (fillfactor = 40, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);
COMMENT ON TABLE federation_peers IS 'Nodes we talk to: trust, health, lease.';

-- Origins that may peer although the policy asks for approval.
CREATE TABLE federation_allowed_origins (
    origin text PRIMARY KEY,
    added_at timestamptz NOT NULL DEFAULT now(),
    added_by text NOT NULL DEFAULT session_user
);

-- Append-only: an enqueue inserts and touches nothing else, hence no foreign
-- key on the peer. head of the event is built when it is sent; payload is the
-- rest of its members as JSON text, spliced unparsed.
CREATE SEQUENCE federation_outbox_ids AS bigint;
CREATE TABLE federation_outbox (
    peer_id bigint NOT NULL,
    id bigint NOT NULL DEFAULT nextval('federation_outbox_ids'),
    context_type text NOT NULL,
    context_id text NOT NULL,
    event_type text NOT NULL,
    entity_id text NOT NULL,
    payload text NOT NULL,
    encryption_version integer NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    -- Set aside after a refusal for now.
    retry_at timestamptz,
    refusals integer NOT NULL DEFAULT 0,
    reason text,
    -- Who reads on above an id finds out by it what appeared below.
    xact xid8 NOT NULL DEFAULT pg_current_xact_id(),
    PRIMARY KEY (peer_id, id)
) WITH (fillfactor = 100, autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_insert_scale_factor = 0.2,
    autovacuum_vacuum_cost_delay = 1, autovacuum_analyze_scale_factor = 0.2);
ALTER SEQUENCE federation_outbox_ids OWNED BY federation_outbox.id;
-- Few rows, and an insert never touches it: what is set aside is found and
-- counted without reading what waits.
CREATE INDEX federation_outbox_set_aside ON federation_outbox (peer_id, id)
    WHERE retry_at IS NOT NULL;
COMMENT ON TABLE federation_outbox IS 'Events owed to peers, per peer in order of id.';

-- What a lease that was given back had presented, to the entry, while
-- presented_through may be ahead of it. A crash of the database forgets it, as it
-- must: the claim that used it may be lost then.
CREATE UNLOGGED TABLE outbox_presented (
    peer_id bigint PRIMARY KEY REFERENCES federation_peers ON DELETE CASCADE,
    through bigint NOT NULL
) WITH (fillfactor = 40, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);
COMMENT ON TABLE outbox_presented IS 'Entries really presented to peers whose lease is free.';

CREATE TABLE dead_letters (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue text NOT NULL,
    peer_id bigint,
    peer text,
    entry_id bigint,
    context_type text,
    context_id text,
    event_type text,
    entity_id text,
    payload text,
    created_at timestamptz,
    died_at timestamptz NOT NULL DEFAULT now(),
    why text NOT NULL,
    peer_answer text,
    refusals integer NOT NULL DEFAULT 0,
    encryption_version integer NOT NULL DEFAULT 0
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.2);
CREATE INDEX dead_letters_by_queue ON dead_letters (queue);
CREATE INDEX dead_letters_by_age ON dead_letters (died_at);
COMMENT ON TABLE dead_letters IS 'What could not be delivered, with the reason; replayable.';

CREATE TABLE federation_file_queue (
    id bigint PRIMARY KEY DEFAULT snowflake(),
    peer_id bigint,
    peer_origin text NOT NULL,
    dm_message_id bigint REFERENCES dm_messages ON DELETE CASCADE,
    attachment_id bigint REFERENCES attachments ON DELETE CASCADE,
    source_url text NOT NULL,
    target_filename text,
    original_name text NOT NULL,
    mimetype text NOT NULL,
    size bigint NOT NULL,
    status text NOT NULL DEFAULT 'pending'
        CHECK (status IN ('pending', 'completed', 'rejected', 'failed')),
    rejection_reason text,
    attempts integer NOT NULL DEFAULT 0,
    next_retry_at timestamptz NOT NULL DEFAULT now(),
    lease_worker bigint,
    lease_token uuid,
    lease_until timestamptz NOT NULL DEFAULT '-infinity',
    expires_at timestamptz NOT NULL DEFAULT now() + interval '30 days',
    created_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
CREATE INDEX federation_file_queue_pending ON federation_file_queue (peer_origin, id)
    WHERE status = 'pending';
CREATE INDEX federation_file_queue_by_message ON federation_file_queue (dm_message_id);

CREATE TABLE federation_mutation_log (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    entity_id text NOT NULL,
    context_id text NOT NULL,
    context_type text NOT NULL DEFAULT 'dm',
    mutation_type text NOT NULL,
    mutated_at timestamptz NOT NULL DEFAULT now(),
    payload text
);
CREATE INDEX federation_mutation_log_in_order ON federation_mutation_log (context_type, mutated_at, id);
CREATE INDEX federation_mutation_log_by_age ON federation_mutation_log (mutated_at);

-- Questions to peers on behalf of somebody who waits. Lost with a crash, as
-- the one who waits is. Secrets are named by their row, never in the body.
CREATE UNLOGGED TABLE s2s_requests (
    id bigint PRIMARY KEY DEFAULT (('x' || encode(substring(uuid_send(gen_random_uuid()) FROM 9 FOR 8), 'hex'))::bit(64)::bigint & 9223372036854775807),
    kind text NOT NULL CHECK (kind IN ('accept', 'counter', 'relay', 'info')),
    peer_id bigint,
    origin text NOT NULL,
    body bytea,
    ephemeral boolean NOT NULL DEFAULT false,
    deadline timestamptz NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    worker bigint,
    claimed_at timestamptz,
    answered_at timestamptz,
    outcome text CHECK (outcome IN ('answered', 'no_connection', 'unknown', 'refused', 'too_late')),
    status integer,
    answer text,
    error text
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
CREATE INDEX s2s_requests_open ON s2s_requests (created_at) WHERE claimed_at IS NULL;
CREATE INDEX s2s_requests_running ON s2s_requests (origin)
    WHERE claimed_at IS NOT NULL AND answered_at IS NULL;
CREATE INDEX s2s_requests_by_age ON s2s_requests (created_at);

CREATE TABLE nonces (
    origin text NOT NULL,
    nonce text NOT NULL,
    seen_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (origin, nonce)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 1);
CREATE INDEX nonces_by_age ON nonces (seen_at);
COMMENT ON TABLE nonces IS 'Nonces of verified requests, kept 30 minutes.';

-- Verified requests of each peer in its current minute; all frontd count here.
CREATE UNLOGGED TABLE peer_rates (
    peer_id bigint PRIMARY KEY,
    since timestamptz NOT NULL,
    requests bigint NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
COMMENT ON TABLE peer_rates IS 'Verified requests of a peer in the minute since its first.';
