-- What became of activities, and what it says of their domains and inboxes.

-- name: outbound_domain_write :none
-- $1 domain, $2 state, $3 failures, $4 since, $5 last failure, $6 days, $7 last day, $8 pauses,
-- $9 not before, $10 gone, $11 died, $12 style that worked, $13 the one known did not,
-- $14 answered, $15 code, $16 error
UPDATE fediverse_domains
   SET state = $2, failures = $3, failures_since = $4, last_failure_at = $5, failure_days = $6,
       last_failure_day = CASE WHEN $6 > 0 THEN date '1970-01-01' + $7::integer END,
       pauses = $8, not_before = coalesce($9, '-infinity'), gone = $10, died_at = $11,
       style = CASE WHEN $12 IS NOT NULL THEN $12 WHEN NOT $13 THEN style END,
       style_at = CASE WHEN $12 IS NOT NULL THEN now() WHEN NOT $13 THEN style_at END,
       last_success_at = CASE WHEN $14 THEN now() ELSE last_success_at END,
       last_code = nullif($15, 0), last_error = $16
 WHERE domain = $1;

-- name: outbound_rows_write :none
-- $1 ids, $2 statuses, $3 a request was made, $4 errors, $5 next attempts, $6 it was a 401,
-- $7 its name led nowhere
UPDATE fediverse_outbound_queue q
   SET status = r.status, attempts = q.attempts + r.made::integer, last_error = r.error,
       next_retry_at = r.retry_at, unauthorized = q.unauthorized + r.unauthorized::integer,
       unresolved = q.unresolved + r.unresolved::integer,
       delivered_at = CASE WHEN r.status = 'delivered' THEN now() END
  FROM unnest($1::text[], $2::text[], $3::boolean[], $4::text[], $5::timestamptz[],
           $6::boolean[], $7::boolean[])
           AS r (id, status, made, error, retry_at, unauthorized, unresolved)
 WHERE q.id = r.id::uuid AND q.status = 'pending';

-- name: outbound_inboxes_gone :none
-- $1 domain, $2 inboxes, $3 codes
-- What is still owed there ends with a 410, and so do its followers.
WITH unfollowed AS (
    DELETE FROM fediverse_followers f
     USING unnest($2::text[], $3::bigint[]) AS r (inbox, code)
     WHERE f.inbox = r.inbox AND r.code = 410),
marked AS (
    INSERT INTO fediverse_gone_inboxes AS g (inbox, domain, code)
    SELECT DISTINCT ON (inbox) inbox, $1, code::integer
      FROM unnest($2::text[], $3::bigint[]) AS r (inbox, code)
     ORDER BY inbox, code DESC
        ON CONFLICT (inbox) DO UPDATE SET code = excluded.code, gone_at = now())
UPDATE fediverse_outbound_queue q
   SET status = 'failed', next_retry_at = NULL, last_error = format('the inbox is gone (%s)', r.code)
  FROM unnest($2::text[], $3::bigint[]) AS r (inbox, code)
 WHERE q.status = 'pending' AND q.target_domain COLLATE "C" = $1 AND q.target_inbox = r.inbox
   AND r.code = 410;

-- name: outbound_moved :none
-- $1 inbox, $2 where it led
SELECT fediverse_inbox_moved($1, $2);
