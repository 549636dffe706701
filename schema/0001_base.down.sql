DROP TABLE user_federation_registry, audit, workers, sessions, user_events, users;
DROP FUNCTION snowflake();
DROP TABLE instance_settings;
DROP SEQUENCE snowflake_ids;
