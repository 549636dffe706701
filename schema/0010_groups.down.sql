DROP TABLE events_heard;
DROP TABLE dm_departures;
