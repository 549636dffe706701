-- name: attachments_of :many
SELECT id, dm_message_id, filename, original_name, mimetype, size, thumbnail_filename,
       width::double precision AS width, height::double precision AS height, duration, source_url, source_id,
       federation_status, federation_meta, created_at
  FROM attachments
 WHERE dm_message_id = ANY($1::bigint[])
 ORDER BY dm_message_id, id;

-- name: attachments_use :none
UPDATE attachments SET dm_message_id = $3
 WHERE id = ANY($1::bigint[]) AND uploader_id = $2 AND dm_message_id IS NULL;

-- name: attachments_expect :none
WITH new AS (
    INSERT INTO attachments (dm_message_id, filename, original_name, mimetype, size,
           width, height, duration, source_url, source_id)
    SELECT message, url, name, mimetype, size, width::integer,
           height::integer, duration::double precision, url, source_id
      FROM unnest($3::bigint[], $4::text[], $5::text[], $6::text[], $7::bigint[],
                  $8::text[], $9::text[], $10::text[], $11::text[])
        AS t(message, url, name, mimetype, size, width, height, duration, source_id)
    RETURNING id, dm_message_id, source_url, original_name, mimetype, size)
INSERT INTO federation_file_queue (peer_id, peer_origin, dm_message_id, attachment_id,
       source_url, original_name, mimetype, size)
SELECT $1, $2, dm_message_id, id, source_url, original_name, mimetype, size FROM new;
