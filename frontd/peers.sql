-- name: peers_interval :none
UPDATE federation_peers SET auto_rotate_interval_days = $2 WHERE id = $1;

-- name: peers_revoke :none
-- Nonces stay: what was captured must not work after a new handshake. What
-- runs for the peer looks at the status before it sends.
WITH purged AS (DELETE FROM federation_outbox WHERE peer_id = $1)
UPDATE federation_peers
   SET status = 'revoked', hmac_secret = NULL, pending_hmac_secret = NULL,
       offered_secret = NULL, offered_at = NULL, initiated_at = NULL,
       attempt_until = NULL, approval_token = NULL, secret_rotation_at = NULL,
       rotation_by = NULL, rotation_began_at = NULL, rotation_attempt_until = NULL,
       rotation_unsure_until = NULL, rotation_error = NULL
 WHERE id = $1;

-- name: peers_delete :none
WITH purged AS (DELETE FROM federation_outbox WHERE peer_id = $1),
rate AS (DELETE FROM peer_rates WHERE peer_id = $1)
DELETE FROM federation_peers WHERE id = $1 AND status = 'revoked';

-- name: peers_audit :none
INSERT INTO audit (who, action, target) VALUES ($1, $2, $3);
