-- name: refusals_mark :none
UPDATE attachments a SET federation_status = 'remote_partial', federation_meta = k.meta
  FROM unnest($1::bigint[], $2::text[]) AS k(id, meta)
 WHERE a.id = k.id;
