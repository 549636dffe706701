DROP TABLE events_heard;
DROP TABLE dm_departures;

-- ---- reactions, read states, typing ----

DROP TABLE typing_told;
ALTER TABLE read_states DROP COLUMN marked_unread_at;
DROP TABLE message_aliases;
DROP TABLE reaction_tombstones;
ALTER TABLE dm_reactions DROP COLUMN changed_at;
