-- Where a peer's outbox begins. While somebody's snapshot is held, what was
-- acknowledged stays in table and index: who looks for entries reads on from
-- here instead of through all of it.
ALTER TABLE federation_peers ADD COLUMN empty_through bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN federation_peers.empty_through IS
    'Nothing at or below is in the outbox or can appear, but for what an operator puts back; a hint, read past once a minute.';

-- What is put back has an old id: the next reading begins at the start. Always
-- another value: whoever holds the lease meanwhile sees that it is not his.
CREATE OR REPLACE FUNCTION ops.peers_due(one bigint, these bigint[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    WITH later AS MATERIALIZED (
        SELECT p.id FROM federation_peers p
         WHERE (p.next_attempt_at > now() OR these IS NOT NULL)
           AND (one IS NULL OR p.id = one) AND (these IS NULL OR p.id = ANY (these))
         ORDER BY p.id FOR NO KEY UPDATE)
    UPDATE federation_peers p
       SET next_attempt_at = least(p.next_attempt_at, now()),
           empty_through = CASE WHEN these IS NULL THEN p.empty_through
                                ELSE least(p.empty_through, 0) - 1 END
      FROM later WHERE p.id = later.id;
    PERFORM pg_notify('postrider_outbox', '');
END $$;
