-- ActivityPub delivery: exactly the RFC's columns, and the people behind them.

CREATE TABLE fediverse_outbound_queue (
    id uuid PRIMARY KEY,
    activity_id text NOT NULL,
    payload_json text NOT NULL,
    target_inbox text NOT NULL,
    target_domain text NOT NULL,
    status text NOT NULL DEFAULT 'pending'
        CHECK (status IN ('pending', 'delivered', 'failed', 'dead')),
    attempts integer NOT NULL DEFAULT 0,
    max_attempts integer NOT NULL DEFAULT 8,
    last_error text,
    next_retry_at timestamptz,
    created_at timestamptz NOT NULL,
    delivered_at timestamptz,
    actor_user_id uuid
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 1);
CREATE INDEX fediverse_outbound_pending_idx
    ON fediverse_outbound_queue (status, next_retry_at) WHERE status = 'pending';

CREATE TABLE fediverse_actors (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    user_id bigint UNIQUE REFERENCES users ON DELETE SET NULL,
    username text NOT NULL,
    public_key_pem text NOT NULL,
    private_key bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    deleted_at timestamptz
);
