DROP TRIGGER users_removed_from_fediverse ON users;
DROP TRIGGER users_gone_from_fediverse ON users;
DROP FUNCTION fediverse_actor_follows_person();
DROP TABLE fediverse_followers;
DROP INDEX fediverse_actors_instance, fediverse_actors_by_name;
ALTER TABLE fediverse_actors
    DROP COLUMN key_made_at,
    DROP COLUMN approves_followers,
    DROP COLUMN is_instance,
    DROP COLUMN display_name,
    DROP COLUMN kind;
