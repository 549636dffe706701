-- Whom our actors follow, and what was answered. The application enqueues
-- Follow and Undo as any activity; what they mean is noted here.

CREATE TABLE fediverse_following (
    actor_id uuid NOT NULL REFERENCES fediverse_actors ON DELETE CASCADE,
    followed text NOT NULL CHECK (octet_length(followed) <= 2048),
    follow_id text NOT NULL,
    asked_at timestamptz NOT NULL DEFAULT now(),
    accepted_at timestamptz,
    rejected_at timestamptz,
    PRIMARY KEY (actor_id, followed),
    CHECK (accepted_at IS NULL OR rejected_at IS NULL)
);
COMMENT ON TABLE fediverse_following IS
    'Whom our actors asked to follow; neither accepted nor rejected: no answer yet.';
CREATE INDEX fediverse_following_by_followed ON fediverse_following (followed);
GRANT SELECT, UPDATE, DELETE ON fediverse_following TO postrider_frontd;

CREATE FUNCTION fediverse_id_of(value json) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE json_typeof(value) WHEN 'string' THEN value #>> '{}'
                WHEN 'object' THEN value ->> 'id' END
$$;

-- Its own affair: whatever stands in a payload, enqueueing it goes on.
CREATE FUNCTION fediverse_note_follow() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    activity json;
    object json;
    named text;
BEGIN
    activity := NEW.payload_json::json;
    object := activity -> 'object';
    named := fediverse_id_of(object);
    IF activity ->> 'type' = 'Follow' AND octet_length(named) <= 2048 THEN
        INSERT INTO fediverse_following AS f (actor_id, followed, follow_id)
        VALUES (NEW.actor_user_id, named, NEW.activity_id)
            ON CONFLICT (actor_id, followed) DO UPDATE
           SET follow_id = excluded.follow_id, asked_at = now(), rejected_at = NULL
         WHERE f.follow_id <> excluded.follow_id;
    ELSIF activity ->> 'type' = 'Undo' THEN
        DELETE FROM fediverse_following f
         WHERE f.actor_id = NEW.actor_user_id
           AND (f.follow_id = named
                OR (json_typeof(object) = 'object' AND object ->> 'type' = 'Follow'
                    AND f.followed = fediverse_id_of(object -> 'object')));
    END IF;
    RETURN NULL;
EXCEPTION WHEN data_exception THEN
    RETURN NULL;
END $$;
-- An Undo may name nothing but the id of what it undoes.
CREATE TRIGGER fediverse_follow_noted AFTER INSERT ON fediverse_outbound_queue
    FOR EACH ROW WHEN (NEW.actor_user_id IS NOT NULL
        AND (NEW.payload_json LIKE '%"Follow"%' OR NEW.payload_json LIKE '%"Undo"%'))
    EXECUTE FUNCTION fediverse_note_follow();

-- What an application may call.
CREATE FUNCTION fediverse_following(actor_id uuid)
RETURNS TABLE (followed text, follow_id text, state text, asked_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT f.followed, f.follow_id,
           CASE WHEN f.accepted_at IS NOT NULL THEN 'accepted'
                WHEN f.rejected_at IS NOT NULL THEN 'rejected' ELSE 'asked' END,
           f.asked_at
      FROM public.fediverse_following f
     WHERE f.actor_id = fediverse_following.actor_id ORDER BY f.asked_at, f.followed;
$$;
COMMENT ON FUNCTION fediverse_following(uuid) IS
    'Whom an actor asked to follow: asked, accepted or rejected.';

REVOKE ALL ON FUNCTION fediverse_following(uuid), fediverse_id_of(json),
    fediverse_note_follow() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION fediverse_following(uuid) TO postrider_app;
