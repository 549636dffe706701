DROP FUNCTION fediverse_signs_rfc9421(text);
DROP FUNCTION fediverse_revive(text);
DROP FUNCTION fediverse_enqueue(text, text, text, uuid, text, boolean);
DROP FUNCTION fediverse_is_object(text);
DROP FUNCTION fediverse_domain_of(text);
ALTER TABLE instance_settings
    DROP COLUMN fediverse_transport,
    DROP COLUMN fediverse_first_style;
DROP FUNCTION fediverse_is_blocked(text);
DROP TABLE fediverse_gone_inboxes;
DROP TABLE fediverse_domains;
DROP INDEX fediverse_outbound_ended, fediverse_outbound_delivered;
DROP INDEX fediverse_outbound_by_domain;
DROP INDEX fediverse_outbound_once;
COMMENT ON TABLE fediverse_outbound_queue IS NULL;
ALTER TABLE fediverse_outbound_queue
    ALTER COLUMN id DROP DEFAULT,
    ALTER COLUMN created_at DROP DEFAULT,
    DROP CONSTRAINT fediverse_outbound_queue_domain_check,
    DROP COLUMN unresolved,
    DROP COLUMN unauthorized,
    DROP COLUMN shared,
    DROP COLUMN transport,
    DROP COLUMN seq;
