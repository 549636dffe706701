DROP TRIGGER users_removed_from_fediverse ON users;
DROP TRIGGER users_gone_from_fediverse ON users;
DROP FUNCTION fediverse_actor_follows_person();
DROP VIEW ops.fediverse_inbox;
DROP FUNCTION fediverse_follower_settle(uuid, text, boolean);
DROP FUNCTION fediverse_followers(uuid);
DROP FUNCTION fediverse_actor(text);
DROP FUNCTION fediverse_receive(integer);
DELETE FROM s2s_requests WHERE kind = 'actor';
ALTER TABLE s2s_requests
    DROP CONSTRAINT s2s_requests_kind_check,
    ADD CONSTRAINT s2s_requests_kind_check
        CHECK (kind IN ('accept', 'counter', 'relay', 'info', 'identity', 'rotate'));
DROP TABLE fediverse_inbound, fediverse_fetches, fediverse_keys, fediverse_followers;
DROP INDEX fediverse_actors_instance, fediverse_actors_by_name;
ALTER TABLE fediverse_actors
    DROP COLUMN key_made_at,
    DROP COLUMN approves_followers,
    DROP COLUMN is_instance,
    DROP COLUMN display_name,
    DROP COLUMN kind;
