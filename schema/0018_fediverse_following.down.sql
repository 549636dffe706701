DROP FUNCTION fediverse_following(uuid);
DROP TRIGGER fediverse_follow_noted ON fediverse_outbound_queue;
DROP FUNCTION fediverse_note_follow();
DROP FUNCTION fediverse_id_of(json);
DROP TABLE fediverse_following;
