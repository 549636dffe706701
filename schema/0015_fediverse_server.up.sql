-- The server behind our deliveries: who speaks here, whose keys we know.

ALTER TABLE fediverse_actors
    ADD COLUMN kind text NOT NULL DEFAULT 'Person'
        CHECK (kind IN ('Person', 'Service', 'Application', 'Group')),
    ADD COLUMN display_name text CHECK (length(display_name) <= 100),
    ADD COLUMN is_instance boolean NOT NULL DEFAULT false,
    ADD COLUMN approves_followers boolean NOT NULL DEFAULT false,
    ADD COLUMN key_made_at timestamptz NOT NULL DEFAULT now();
COMMENT ON TABLE fediverse_actors IS 'Who speaks on the fediverse; a name serves once, also after its deletion.';
COMMENT ON COLUMN fediverse_actors.private_key IS 'Sealed under the node key.';
COMMENT ON COLUMN fediverse_actors.approves_followers IS
    'manuallyApprovesFollowers: the application answers a Follow, not we.';
CREATE UNIQUE INDEX fediverse_actors_by_name ON fediverse_actors (lower(username))
    WHERE NOT is_instance;
CREATE UNIQUE INDEX fediverse_actors_instance ON fediverse_actors (is_instance)
    WHERE is_instance;

CREATE TABLE fediverse_followers (
    actor_id uuid NOT NULL REFERENCES fediverse_actors ON DELETE CASCADE,
    follower text NOT NULL CHECK (octet_length(follower) <= 2048),
    inbox text NOT NULL,
    shared_inbox text,
    follow_id text NOT NULL,
    accepted_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (actor_id, follower)
);
COMMENT ON TABLE fediverse_followers IS
    'Who follows our actors; without accepted_at somebody has yet to answer.';
CREATE INDEX fediverse_followers_by_follower ON fediverse_followers (follower);
GRANT SELECT, INSERT, UPDATE, DELETE ON fediverse_followers TO postrider_frontd;

-- Who is deleted here is gone there, too.
CREATE FUNCTION fediverse_actor_follows_person() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE public.fediverse_actors SET deleted_at = now()
     WHERE user_id = OLD.id AND deleted_at IS NULL;
    RETURN OLD;
END $$;
CREATE TRIGGER users_gone_from_fediverse AFTER UPDATE OF is_deleted ON users
    FOR EACH ROW WHEN (NEW.is_deleted AND NOT OLD.is_deleted)
    EXECUTE FUNCTION fediverse_actor_follows_person();
CREATE TRIGGER users_removed_from_fediverse BEFORE DELETE ON users
    FOR EACH ROW EXECUTE FUNCTION fediverse_actor_follows_person();
