CREATE OR REPLACE FUNCTION ops.peers_due(one bigint, these bigint[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    WITH later AS MATERIALIZED (
        SELECT p.id FROM federation_peers p
         WHERE p.next_attempt_at > now() AND (one IS NULL OR p.id = one)
           AND (these IS NULL OR p.id = ANY (these))
         ORDER BY p.id FOR NO KEY UPDATE)
    UPDATE federation_peers p SET next_attempt_at = now() FROM later WHERE p.id = later.id;
    PERFORM pg_notify('postrider_outbox', '');
END $$;

ALTER TABLE federation_peers DROP COLUMN empty_through;
