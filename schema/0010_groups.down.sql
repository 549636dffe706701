REVOKE SELECT (id, dm_channel_id), DELETE ON dm_messages FROM postrider_janitord;
REVOKE DELETE ON dm_channels FROM postrider_janitord;
DROP INDEX dm_channels_deleted;
DROP TABLE events_heard;
DROP TABLE dm_departures;

-- ---- reactions, read states, typing ----

DROP TABLE typing_told;
ALTER TABLE read_states DROP COLUMN marked_unread_at;
DROP TABLE message_aliases;
DROP TABLE reaction_tombstones;
ALTER TABLE dm_reactions DROP COLUMN changed_at;
