-- Rotation of a peer's secret: who began it, and how far it got. While
-- rotation_by is set, pending_hmac_secret is the new secret;
-- secret_rotation_at is when the grace began, NULL until the peer has it.
ALTER TABLE federation_peers
    ADD COLUMN rotation_by text CHECK (rotation_by IN ('us', 'peer')),
    ADD COLUMN rotation_began_at timestamptz,
    ADD COLUMN rotation_attempt_until timestamptz,
    ADD COLUMN rotation_unsure_until timestamptz,
    ADD COLUMN rotation_error text,
    ADD CONSTRAINT federation_peers_rotation_check
        CHECK (secret_rotation_at IS NULL OR pending_hmac_secret IS NOT NULL);
COMMENT ON COLUMN federation_peers.rotation_attempt_until IS
    'No later than this was the new secret last sent.';
COMMENT ON COLUMN federation_peers.rotation_unsure_until IS
    'Until then an earlier attempt may still be taken; NULL: there was none.';

-- From here on the new secret signs: whoever holds the old one must hear of it.
-- A row each, and only what changed: an update that finds nothing, or writes what
-- was there, made every outboxd read its leases anew.
DROP TRIGGER federation_peers_signal ON federation_peers;
CREATE TRIGGER federation_peers_signal
    AFTER UPDATE OF status, hmac_secret, pending_hmac_secret, secret_rotation_at, paused_until
    ON federation_peers
    FOR EACH ROW
    WHEN ((OLD.status, OLD.hmac_secret, OLD.pending_hmac_secret, OLD.secret_rotation_at,
           OLD.paused_until) IS DISTINCT FROM
          (NEW.status, NEW.hmac_secret, NEW.pending_hmac_secret, NEW.secret_rotation_at,
           NEW.paused_until))
    EXECUTE FUNCTION signal_control('peer');

ALTER TABLE s2s_requests
    DROP CONSTRAINT s2s_requests_kind_check,
    ADD CONSTRAINT s2s_requests_kind_check
        CHECK (kind IN ('accept', 'counter', 'relay', 'info', 'identity', 'rotate'));

-- What our people write elsewhere is taken from where they have declared an
-- account, or from any peer.
ALTER TABLE instance_settings
    ADD COLUMN homeward_scope text NOT NULL DEFAULT 'declared'
        CHECK (homeward_scope IN ('declared', 'any_peer'));

CREATE VIEW ops.rotations AS
SELECT p.origin AS peer,
       CASE WHEN p.secret_rotation_at <= now() - interval '15 minutes' THEN 'done'
            WHEN p.secret_rotation_at IS NOT NULL THEN 'grace'
            WHEN p.rotation_by IS NULL THEN 'refused'
            WHEN p.rotation_attempt_until > now() THEN 'asking'
            ELSE 'unknown' END AS state,
       p.rotation_by AS begun_by,
       p.rotation_began_at AS since,
       p.secret_rotation_at + interval '15 minutes' AS grace_until,
       p.rotation_attempt_until AS last_attempt,
       p.rotation_error AS last_error
  FROM public.federation_peers p
 WHERE p.status <> 'revoked' AND (p.rotation_by IS NOT NULL OR p.rotation_error IS NOT NULL)
 ORDER BY p.origin;
COMMENT ON VIEW ops.rotations IS
    'Secrets on their way: asking, unknown (asked again until the peer says yes), grace (both verify), refused.';
GRANT SELECT ON ops.rotations TO postrider_operator, postrider_monitor;
