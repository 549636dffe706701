-- Groups: who has left them and when, so that an addition which comes late does
-- not bring anybody back; and which changes were heard before, whatever the
-- group looks like by now.

CREATE TABLE dm_departures (
    dm_channel_id bigint NOT NULL REFERENCES dm_channels ON DELETE CASCADE,
    user_id bigint NOT NULL REFERENCES users ON DELETE CASCADE,
    left_at timestamptz NOT NULL,
    PRIMARY KEY (dm_channel_id, user_id)
);
CREATE INDEX dm_departures_by_age ON dm_departures (left_at);
COMMENT ON TABLE dm_departures IS 'When somebody last left a group, by the clock of who said so.';

CREATE TABLE events_heard (
    source_instance text NOT NULL,
    event_type text NOT NULL,
    event_id text NOT NULL CHECK (length(event_id) <= 256),
    heard_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (source_instance, event_type, event_id)
);
CREATE INDEX events_heard_by_age ON events_heard (heard_at);
COMMENT ON TABLE events_heard IS
    'Events of other nodes that would do harm if they were applied twice.';

-- Groups that everybody has left.
CREATE INDEX dm_channels_deleted ON dm_channels (deleted_at) WHERE deleted_at IS NOT NULL;

GRANT SELECT, INSERT, UPDATE, DELETE ON dm_departures, events_heard
    TO postrider_frontd, postrider_janitord;
GRANT SELECT (id, dm_channel_id), DELETE ON dm_messages TO postrider_janitord;
GRANT DELETE ON dm_channels TO postrider_janitord;

-- ---- reactions, read states, typing ----

-- For each (message, person, emoji) the latest word counts: changed_at is when
-- it was said, by the clock of who said it; created_at is what is shown.
ALTER TABLE dm_reactions ADD COLUMN changed_at timestamptz NOT NULL DEFAULT now();

-- A removed reaction stays known, so that a repeated add does not bring it back,
-- and so that a line of conversation_events says what it was about.
CREATE TABLE reaction_tombstones (
    id bigint PRIMARY KEY,
    dm_message_id bigint NOT NULL REFERENCES dm_messages ON DELETE CASCADE,
    user_id bigint NOT NULL REFERENCES users ON DELETE CASCADE,
    emoji text NOT NULL CHECK (length(emoji) BETWEEN 1 AND 64),
    removed_at timestamptz NOT NULL,
    kept_since timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE reaction_tombstones IS 'Reactions that were removed, while their add may come again.';
CREATE INDEX reaction_tombstones_by_message ON reaction_tombstones (dm_message_id, user_id, emoji);
CREATE INDEX reaction_tombstones_by_age ON reaction_tombstones (kept_since);

-- A message that its author's home has sent on is known here under the home's
-- id; this is where it was written. Reactions may come with either name.
CREATE TABLE message_aliases (
    host text NOT NULL,
    birth_id text NOT NULL CHECK (length(birth_id) <= 256),
    dm_message_id bigint NOT NULL REFERENCES dm_messages ON DELETE CASCADE,
    PRIMARY KEY (host, birth_id)
);
COMMENT ON TABLE message_aliases IS 'Where a message was written that its author''s home has sent on.';
CREATE INDEX message_aliases_by_message ON message_aliases (dm_message_id);

-- When a person last marked the conversation as unread: what other nodes said
-- before that moves nothing. 0 as the last read message: nothing is read.
ALTER TABLE read_states ADD COLUMN marked_unread_at timestamptz;

-- Who was last said to be typing; lost with a crash.
CREATE UNLOGGED TABLE typing_told (
    dm_channel_id bigint NOT NULL,
    user_id bigint NOT NULL,
    told_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (dm_channel_id, user_id)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);
COMMENT ON TABLE typing_told IS 'Of whom other nodes were told that he types.';

GRANT SELECT, INSERT, UPDATE, DELETE ON reaction_tombstones, message_aliases, typing_told
    TO postrider_frontd, postrider_janitord;
