DROP VIEW ops.rotations;
ALTER TABLE instance_settings DROP COLUMN homeward_scope;
DELETE FROM s2s_requests WHERE kind = 'rotate';
ALTER TABLE s2s_requests
    DROP CONSTRAINT s2s_requests_kind_check,
    ADD CONSTRAINT s2s_requests_kind_check
        CHECK (kind IN ('accept', 'counter', 'relay', 'info', 'identity'));
DROP TRIGGER federation_peers_signal ON federation_peers;
CREATE TRIGGER federation_peers_signal
    AFTER UPDATE OF status, hmac_secret, pending_hmac_secret, paused_until ON federation_peers
    FOR EACH STATEMENT EXECUTE FUNCTION signal_control('peer');
ALTER TABLE federation_peers
    DROP CONSTRAINT federation_peers_rotation_check,
    DROP COLUMN rotation_by,
    DROP COLUMN rotation_began_at,
    DROP COLUMN rotation_attempt_until,
    DROP COLUMN rotation_unsure_until,
    DROP COLUMN rotation_error;
