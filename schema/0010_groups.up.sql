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
    event_id text NOT NULL CHECK (length(event_id) <= 256),
    heard_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (source_instance, event_id)
);
CREATE INDEX events_heard_by_age ON events_heard (heard_at);
COMMENT ON TABLE events_heard IS
    'Events of other nodes that would do harm if they were applied twice.';

GRANT SELECT, INSERT, UPDATE, DELETE ON dm_departures, events_heard
    TO postrider_frontd, postrider_janitord;
