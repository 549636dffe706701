-- Conversations, messages and what hangs on them.

CREATE TABLE dm_channels (
    id bigint PRIMARY KEY DEFAULT snowflake(),
    owner_id bigint REFERENCES users,
    federated_id text CHECK (length(federated_id) BETWEEN 1 AND 256),
    owner_home_user_id text,
    owner_home_instance text,
    is_group boolean NOT NULL DEFAULT false,
    -- A pair is exactly its two people; that is what makes it one conversation.
    pair_low bigint REFERENCES users,
    pair_high bigint REFERENCES users,
    seq bigint NOT NULL DEFAULT 0,
    events_kept_from bigint NOT NULL DEFAULT 1,
    deleted_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    CHECK (is_group = (owner_id IS NOT NULL)),
    CHECK (is_group = (pair_low IS NULL)),
    CHECK (is_group = (pair_high IS NULL)),
    CHECK (pair_low <= pair_high)
) WITH (fillfactor = 50);
COMMENT ON TABLE dm_channels IS 'Conversations: pairs and groups; seq counts their changes.';
CREATE UNIQUE INDEX dm_channels_pair ON dm_channels (pair_low, pair_high)
    WHERE NOT is_group;
CREATE UNIQUE INDEX dm_channels_group ON dm_channels (federated_id)
    WHERE is_group AND federated_id IS NOT NULL;
CREATE INDEX dm_channels_federated ON dm_channels (federated_id)
    WHERE NOT is_group AND federated_id IS NOT NULL;

CREATE TABLE dm_members (
    dm_channel_id bigint NOT NULL REFERENCES dm_channels ON DELETE CASCADE,
    user_id bigint NOT NULL REFERENCES users ON DELETE CASCADE,
    closed boolean NOT NULL DEFAULT false,
    PRIMARY KEY (dm_channel_id, user_id)
);
CREATE INDEX dm_members_by_user ON dm_members (user_id);

-- No foreign keys on conversation and author: whoever writes a message has moved
-- the conversation's row on and read the author's in the same transaction, and
-- people are emptied, never deleted. Looking both up again for each message is
-- half of an insert. The triggers below the events stand in for them.
CREATE TABLE dm_messages (
    id bigint PRIMARY KEY DEFAULT snowflake(),
    dm_channel_id bigint NOT NULL,
    user_id bigint NOT NULL,
    reply_to_id bigint REFERENCES dm_messages ON DELETE SET NULL,
    content text,
    type text NOT NULL DEFAULT 'user' CHECK (type IN ('user', 'system')),
    edited_at timestamptz,
    source_instance text,
    source_message_id text,
    encryption_version integer NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now(),
    CHECK ((source_instance IS NULL) = (source_message_id IS NULL)),
    CHECK (length(source_message_id) <= 256)
) WITH (fillfactor = 90);
COMMENT ON TABLE dm_messages IS 'Messages; source_* name the node and id a relayed one came with.';
CREATE UNIQUE INDEX dm_messages_source ON dm_messages (source_instance, source_message_id)
    WHERE source_instance IS NOT NULL;
CREATE INDEX dm_messages_in_order ON dm_messages (dm_channel_id, created_at, id);
CREATE INDEX dm_messages_replies ON dm_messages (reply_to_id) WHERE reply_to_id IS NOT NULL;

-- A deleted relayed message stays known for as long as its create could still
-- be repeated.
CREATE TABLE message_tombstones (
    source_instance text NOT NULL,
    source_message_id text NOT NULL,
    deleted_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (source_instance, source_message_id)
);
CREATE INDEX message_tombstones_by_age ON message_tombstones (deleted_at);

CREATE TABLE dm_reactions (
    id bigint PRIMARY KEY DEFAULT snowflake(),
    dm_message_id bigint NOT NULL REFERENCES dm_messages ON DELETE CASCADE,
    user_id bigint NOT NULL REFERENCES users ON DELETE CASCADE,
    emoji text NOT NULL CHECK (length(emoji) BETWEEN 1 AND 64),
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (dm_message_id, user_id, emoji)
);

CREATE TABLE attachments (
    id bigint PRIMARY KEY DEFAULT snowflake(),
    dm_message_id bigint REFERENCES dm_messages ON DELETE CASCADE,
    uploader_id bigint REFERENCES users ON DELETE SET NULL,
    filename text NOT NULL,
    original_name text NOT NULL,
    mimetype text NOT NULL,
    size bigint NOT NULL CHECK (size >= 0),
    thumbnail_filename text,
    width integer,
    height integer,
    duration double precision,
    source_url text,
    source_id text,
    federation_status text
        CHECK (federation_status IN ('local', 'remote', 'remote_partial')),
    federation_meta text,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX attachments_by_message ON attachments (dm_message_id, id);

CREATE TABLE read_states (
    user_id bigint NOT NULL REFERENCES users ON DELETE CASCADE,
    channel_id bigint NOT NULL REFERENCES dm_channels ON DELETE CASCADE,
    last_read_message_id bigint NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_id, channel_id)
);

-- No foreign key either: seq comes from the conversation's row.
CREATE TABLE conversation_events (
    conversation_id bigint NOT NULL,
    seq bigint NOT NULL,
    kind text NOT NULL,
    entity_id bigint,
    actor_id bigint,
    at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (conversation_id, seq)
);
COMMENT ON TABLE conversation_events IS 'Every change of a conversation, in order.';

-- What the foreign keys would do. A conversation takes its messages and events
-- with it: a writer holds its row, so that none comes after.
CREATE FUNCTION conversation_gone() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public AS $$
BEGIN
    DELETE FROM dm_messages m USING gone WHERE m.dm_channel_id = gone.id;
    DELETE FROM conversation_events e USING gone WHERE e.conversation_id = gone.id;
    RETURN NULL;
END $$;
CREATE TRIGGER dm_channels_gone AFTER DELETE ON dm_channels
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT
    EXECUTE FUNCTION conversation_gone();

CREATE FUNCTION author_stays() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public AS $$
BEGIN
    IF EXISTS (SELECT FROM dm_messages m JOIN gone ON m.user_id = gone.id) THEN
        RAISE foreign_key_violation USING
            MESSAGE = 'who has written messages is emptied, not deleted';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER users_stay AFTER DELETE ON users
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT
    EXECUTE FUNCTION author_stays();

-- Our daemons (postrider.signals = after) hold the rows; everyone else is
-- checked. Arguments: the column, the table that must have it as its id.
CREATE FUNCTION row_needed() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public AS $$
DECLARE
    needed constant bigint := to_jsonb(NEW) ->> TG_ARGV[0];
    found_id bigint;
BEGIN
    EXECUTE format('SELECT id FROM %I WHERE id = $1 FOR KEY SHARE', TG_ARGV[1])
       INTO found_id USING needed;
    IF found_id IS NULL THEN
        RAISE foreign_key_violation USING
            MESSAGE = format('%s has no row %s', TG_ARGV[1], needed);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER dm_messages_conversation
    AFTER INSERT OR UPDATE OF dm_channel_id ON dm_messages FOR EACH ROW
    WHEN (current_setting('postrider.signals', true) IS DISTINCT FROM 'after')
    EXECUTE FUNCTION row_needed('dm_channel_id', 'dm_channels');
CREATE TRIGGER dm_messages_author
    AFTER INSERT OR UPDATE OF user_id ON dm_messages FOR EACH ROW
    WHEN (current_setting('postrider.signals', true) IS DISTINCT FROM 'after')
    EXECUTE FUNCTION row_needed('user_id', 'users');
CREATE TRIGGER conversation_events_conversation
    AFTER INSERT OR UPDATE OF conversation_id ON conversation_events FOR EACH ROW
    WHEN (current_setting('postrider.signals', true) IS DISTINCT FROM 'after')
    EXECUTE FUNCTION row_needed('conversation_id', 'dm_channels');

CREATE TABLE friends (
    user_id bigint NOT NULL REFERENCES users ON DELETE CASCADE,
    friend_id bigint NOT NULL REFERENCES users ON DELETE CASCADE,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (user_id, friend_id),
    CHECK (user_id <> friend_id)
);
CREATE UNIQUE INDEX friends_pair
    ON friends (least(user_id, friend_id), greatest(user_id, friend_id));
CREATE INDEX friends_other_way ON friends (friend_id);

CREATE TABLE friend_requests (
    id bigint PRIMARY KEY DEFAULT snowflake(),
    from_id bigint NOT NULL REFERENCES users ON DELETE CASCADE,
    to_id bigint NOT NULL REFERENCES users ON DELETE CASCADE,
    status text NOT NULL DEFAULT 'pending'
        CHECK (status IN ('pending', 'accepted', 'declined')),
    created_at timestamptz NOT NULL DEFAULT now(),
    CHECK (from_id <> to_id)
);
CREATE UNIQUE INDEX friend_requests_pending
    ON friend_requests (least(from_id, to_id), greatest(from_id, to_id))
    WHERE status = 'pending';
CREATE INDEX friend_requests_to ON friend_requests (to_id);
CREATE INDEX friend_requests_from ON friend_requests (from_id);
