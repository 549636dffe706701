-- What operators see of activities and of the domains they go to, and what
-- they do with them: as of the outbox and of peers.

ALTER TABLE fediverse_domains
    ADD COLUMN paused_until timestamptz,
    ADD COLUMN paused_by text,
    ADD COLUMN paused_reason text;
COMMENT ON COLUMN fediverse_domains.paused_until IS
    'An operator lets nothing go there before.';

-- Domains that something waits for, by hopping through the index; its first
-- row is the next to go, and the oldest of those that were not yet refused.
CREATE VIEW ops.fediverse_by_domain AS
WITH RECURSIVE hop AS (
    (SELECT q.target_domain COLLATE "C" AS domain FROM public.fediverse_outbound_queue q
      WHERE q.status = 'pending' ORDER BY q.target_domain COLLATE "C" LIMIT 1)
    UNION ALL
    SELECT (SELECT q.target_domain COLLATE "C" FROM public.fediverse_outbound_queue q
             WHERE q.status = 'pending' AND q.target_domain COLLATE "C" > hop.domain
             ORDER BY q.target_domain COLLATE "C" LIMIT 1)
      FROM hop WHERE hop.domain IS NOT NULL)
SELECT hop.domain, first.id AS first_id, first.created_at AS first_at
  FROM hop
 CROSS JOIN LATERAL (
    SELECT q.id, q.created_at FROM public.fediverse_outbound_queue q
     WHERE q.status = 'pending' AND q.target_domain COLLATE "C" = hop.domain
     ORDER BY q.target_domain COLLATE "C", q.next_retry_at NULLS FIRST, q.created_at, q.seq
     LIMIT 1) AS first
 WHERE hop.domain IS NOT NULL;

-- A thousand pages, as of the outbox.
CREATE FUNCTION ops.fediverse_sample_percent() RETURNS real
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT least(100, 100 * 1000.0 / greatest(1, pg_relation_size('public.fediverse_outbound_queue')
               / current_setting('block_size')::bigint))::real
$$;

CREATE VIEW ops.fediverse_sample AS
SELECT target_domain COLLATE "C" AS domain,
       (count(*) * 100 / ops.fediverse_sample_percent())::bigint AS entries
  FROM public.fediverse_outbound_queue TABLESAMPLE SYSTEM (ops.fediverse_sample_percent())
 WHERE status = 'pending'
 GROUP BY target_domain COLLATE "C";

-- Exact up to ten thousand, beyond that what the sample says. Along the
-- indexes, whatever statistics the planner has: a bitmap would be of all rows.
CREATE FUNCTION ops.fediverse_count() RETURNS bigint
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
SET enable_bitmapscan = off SET enable_seqscan = off AS $$
DECLARE
    bound constant bigint := 10000;
    counted constant bigint := (SELECT count(*) FROM (
        SELECT FROM fediverse_outbound_queue WHERE status = 'pending'
         ORDER BY status, next_retry_at LIMIT bound + 1) AS upto);
BEGIN
    IF counted <= bound THEN
        RETURN counted;
    END IF;
    RETURN greatest(counted, (SELECT sum(entries)::bigint FROM ops.fediverse_sample));
END $$;

-- What waits for its time. Whoever waits longest was refused most often, and
-- is among the oldest.
CREATE FUNCTION ops.fediverse_aside(OUT entries bigint, OUT oldest timestamptz)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
SET enable_bitmapscan = off SET enable_seqscan = off AS $$
BEGIN
    SELECT count(*), min(upto.created_at) INTO entries, oldest
      FROM (SELECT q.created_at FROM fediverse_outbound_queue q
             WHERE q.status = 'pending' AND q.next_retry_at > now()
             ORDER BY q.next_retry_at DESC LIMIT 10000) AS upto;
END $$;

CREATE FUNCTION ops.fediverse_ended() RETURNS bigint
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
SET enable_bitmapscan = off SET enable_seqscan = off AS $$
BEGIN
    RETURN (SELECT count(*) FROM (SELECT FROM fediverse_outbound_queue
        WHERE status IN ('failed', 'dead') ORDER BY created_at LIMIT 10000) AS upto);
END $$;

-- ORDER BY: without statistics the planner would read every entry.
CREATE VIEW ops.queue AS
SELECT queue, waiting, leased, set_aside, dead, oldest, rate.per_minute,
       CASE WHEN rate.per_minute > 0 THEN make_interval(secs => waiting * 60 / rate.per_minute) END AS drains_in,
       paused
  FROM (
    SELECT 'outbox' AS queue,
           ops.outbox_count() - aside.entries AS waiting,
           (SELECT count(*) FROM public.federation_peers WHERE lease_until > now()) AS leased,
           aside.entries AS set_aside,
           (SELECT count(*) FROM public.dead_letters WHERE queue = 'outbox') AS dead,
           now() - (SELECT min(oldest_at) FROM ops.outbox_by_peer) AS oldest,
           (SELECT count(*) FROM public.federation_peers WHERE paused_until > now()) AS paused
      FROM (SELECT count(*) AS entries FROM (SELECT FROM public.federation_outbox
             WHERE retry_at IS NOT NULL ORDER BY peer_id, id LIMIT 10000) AS upto) AS aside
    UNION ALL
    SELECT 'fediverse',
           ops.fediverse_count() - aside.entries,
           (SELECT count(*) FROM public.fediverse_domains WHERE lease_until > now()),
           aside.entries,
           ops.fediverse_ended(),
           now() - least(aside.oldest, (SELECT min(first_at) FROM ops.fediverse_by_domain)),
           (SELECT count(*) FROM public.fediverse_domains WHERE paused_until > now())
      FROM ops.fediverse_aside() AS aside
    UNION ALL
    SELECT 'files',
           count(*) FILTER (WHERE status = 'pending' AND lease_until <= now() AND next_retry_at <= now()),
           count(*) FILTER (WHERE status = 'pending' AND lease_until > now()),
           count(*) FILTER (WHERE status = 'pending' AND lease_until <= now() AND next_retry_at > now()),
           count(*) FILTER (WHERE status IN ('failed', 'rejected')),
           now() - min(created_at) FILTER (WHERE status = 'pending'),
           0
      FROM public.federation_file_queue
    UNION ALL
    SELECT 'requests',
           count(*) FILTER (WHERE claimed_at IS NULL AND deadline > now()),
           count(*) FILTER (WHERE claimed_at IS NOT NULL AND deadline > now()),
           0,
           count(*) FILTER (WHERE deadline <= now()),
           now() - min(created_at) FILTER (WHERE deadline > now()),
           0
      FROM public.s2s_requests
     WHERE answered_at IS NULL) AS queues
 CROSS JOIN LATERAL (
    SELECT sum((w.rates ->> queue)::double precision)::bigint AS per_minute
      FROM public.workers w WHERE w.last_seen_at > now() - interval '1 minute') AS rate
 ORDER BY oldest DESC NULLS LAST, queue;
COMMENT ON VIEW ops.queue IS
    'What waits; above 10000 about so many, set aside at most 10000. per_minute left lately; drains_in: at that rate, if nothing is added. Leased and paused count peers and, of fediverse, domains; dead are in ops.dead_letters and, up to 10000, in ops.fediverse_queue.';

-- The state of a domain in one word.
CREATE FUNCTION ops.domain_state(d public.fediverse_domains) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT CASE
        WHEN d.blocked_at IS NOT NULL THEN 'blocked'
        WHEN d.state = 'dead' AND d.gone THEN 'gone'
        WHEN d.state = 'dead' THEN 'dead'
        WHEN d.paused_until > now() THEN 'paused'
        WHEN d.state IN ('open', 'half_open') THEN 'unreachable'
        WHEN d.failures > 0 OR d.failure_days > 0 THEN 'failing'
        WHEN d.not_before > now() THEN 'asks us to wait'
        ELSE 'active' END
$$;

CREATE VIEW ops.domains AS
SELECT domain, state, since, waiting, leased_by, oldest, next_attempt, failures, failed_days, ended,
       last_ok, last_code, last_error, style, paused_until, paused_by, reason, last_probe, meaning
  FROM (
    SELECT coalesce(d.domain, w.domain) AS domain,
           state.word AS state,
           now() - CASE state.word
               WHEN 'blocked' THEN d.blocked_at
               WHEN 'dead' THEN d.died_at WHEN 'gone' THEN d.died_at
               WHEN 'active' THEN d.created_at
               WHEN 'unreachable' THEN coalesce(d.last_success_at, d.created_at)
               WHEN 'failing' THEN coalesce(d.last_success_at, d.created_at) END AS since,
           CASE WHEN upto.entries < 20 THEN upto.entries
               ELSE greatest(upto.entries, sample.entries) END AS waiting,
           CASE WHEN d.lease_until > now() THEN d.lease_worker END AS leased_by,
           now() - least(w.first_at, later.oldest) AS oldest,
           CASE WHEN d.not_before > now() THEN d.not_before - now() END AS next_attempt,
           coalesce(d.failures, 0) AS failures,
           coalesce(d.failure_days, 0) AS failed_days,
           coalesce(ended.entries, 0) AS ended,
           now() - d.last_success_at AS last_ok,
           d.last_code,
           d.last_error,
           coalesce(d.style_wanted, d.style) AS style,
           CASE WHEN d.paused_until > now() THEN d.paused_until END AS paused_until,
           CASE WHEN d.paused_until > now() THEN d.paused_by END AS paused_by,
           coalesce(d.blocked_reason, CASE WHEN d.paused_until > now() THEN d.paused_reason END) AS reason,
           now() - d.probed_at AS last_probe,
           CASE state.word
               WHEN 'new' THEN 'nothing was sent there yet'
               WHEN 'blocked' THEN CASE WHEN d.blocked_at IS NULL THEN 'its host, or one above it, is blocked'
                   ELSE format('we have nothing to do with it nor with hosts below it, says %s; to end that: ops.domain_unblock(%L)', d.blocked_by, d.domain) END
               WHEN 'gone' THEN format('it says that it is gone; what is enqueued is dead at once; if it lives: ops.domain_revive(%L)', d.domain)
               WHEN 'dead' THEN format('failed on seven days; what is enqueued is dead at once; it is probed weekly; or ops.domain_revive(%L)', d.domain)
               WHEN 'paused' THEN format('we send it nothing for now; to end that: ops.domain_resume(%L)', d.domain)
               WHEN 'unreachable' THEN format('failed five times in a row; entries are kept; it is tried again by itself, or ops.fediverse_retry_now(%L)', d.domain)
               WHEN 'failing' THEN 'failed the last time'
               WHEN 'asks us to wait' THEN 'it answered with Retry-After'
               ELSE 'well' END AS meaning,
           array_position(ARRAY['dead', 'gone', 'unreachable', 'failing', 'asks us to wait', 'paused',
               'new', 'active', 'blocked'], state.word) AS rank
      FROM public.fediverse_domains d
      FULL JOIN ops.fediverse_by_domain w ON w.domain = d.domain
     CROSS JOIN (SELECT EXISTS (SELECT FROM public.fediverse_domains
                                 WHERE blocked_at IS NOT NULL) AS some) AS blocks
     CROSS JOIN LATERAL (
        SELECT CASE WHEN blocks.some AND public.fediverse_is_blocked(coalesce(d.domain, w.domain))
                        THEN 'blocked'
                    WHEN d.domain IS NULL THEN 'new'
                    ELSE ops.domain_state(d) END AS word) AS state
     CROSS JOIN LATERAL (
        SELECT count(*) AS entries FROM (SELECT FROM public.fediverse_outbound_queue q
         WHERE q.status = 'pending' AND q.target_domain COLLATE "C" = w.domain LIMIT 20) AS first) AS upto
     CROSS JOIN LATERAL (
        SELECT min(last.created_at) AS oldest
          FROM (SELECT q.created_at FROM public.fediverse_outbound_queue q
                 WHERE q.status = 'pending' AND q.target_domain COLLATE "C" = w.domain
                   AND q.next_retry_at IS NOT NULL
                 ORDER BY q.target_domain COLLATE "C" DESC, q.next_retry_at DESC NULLS LAST LIMIT 20) AS last) AS later
      LEFT JOIN ops.fediverse_sample sample ON sample.domain = w.domain
      LEFT JOIN (
        SELECT recent.domain, count(*) AS entries
          FROM (SELECT q.target_domain COLLATE "C" AS domain FROM public.fediverse_outbound_queue q
                 WHERE q.status IN ('failed', 'dead') ORDER BY q.created_at DESC LIMIT 10000) AS recent
         GROUP BY recent.domain) AS ended ON ended.domain = d.domain) AS domains
 ORDER BY rank, oldest DESC NULLS LAST, domain;
COMMENT ON VIEW ops.domains IS
    'Every server that activities go to, worst first; of 20 and more about so many wait once the queue is large; ended: of the latest 10000 that failed or died.';

-- The latest that ended badly, what waits for its time, and of each domain
-- the first that is due: the rest waits behind it.
CREATE VIEW ops.fediverse_queue AS
SELECT entry, state, domain, inbox, activity, actor, age, attempts, next_attempt, last_error, meaning
  FROM (
    SELECT q.id AS entry,
           CASE WHEN q.status <> 'pending' THEN q.status
                WHEN d.state = 'dead' OR blocked.it THEN 'about to die'
                WHEN d.paused_until > now() THEN 'paused'
                WHEN q.next_retry_at > now() OR d.not_before > now() THEN 'waiting'
                ELSE 'due' END AS state,
           q.target_domain AS domain, q.target_inbox AS inbox, q.activity_id AS activity,
           a.username AS actor, now() - q.created_at AS age, q.attempts,
           CASE WHEN q.status = 'pending' AND greatest(q.next_retry_at, d.not_before) > now()
                THEN greatest(q.next_retry_at, d.not_before) - now() END AS next_attempt,
           q.last_error,
           CASE WHEN q.status = 'failed'
                    THEN format('refused for good; if that has changed: ops.fediverse_replay(%L, why => ...)', q.target_domain)
                WHEN q.status = 'dead' AND blocked.it
                    THEN 'the domain is blocked: see ops.domains'
                WHEN q.status = 'dead' AND d.state = 'dead'
                    THEN format('the domain is dead; if it lives: ops.domain_revive(%L), then ops.fediverse_replay', q.target_domain)
                WHEN q.status = 'dead'
                    THEN format('given up; if it works again: ops.fediverse_replay(%L, why => ...)', q.target_domain)
                WHEN blocked.it THEN 'its domain is blocked'
                WHEN d.state = 'dead' THEN 'its domain is dead'
                WHEN d.paused_until > now() THEN format('ops.domain_resume(%L)', q.target_domain)
                WHEN q.next_retry_at > now() OR d.not_before > now()
                    THEN format('wait: tried again by itself; or ops.fediverse_retry_now(%L)', q.target_domain)
                WHEN NOT (SELECT s.fediverse FROM public.instance_settings s)
                    THEN 'the setting fediverse is off'
                WHEN q.created_at < now() - interval '1 minute'
                    AND coalesce(d.lease_until, '-infinity') <= now()
                    THEN 'is outboxd running? see ops.workers'
                ELSE 'on its way' END AS meaning,
           picked.rank
      FROM (
        (SELECT e.id, CASE e.status WHEN 'dead' THEN 1 ELSE 2 END AS rank
           FROM public.fediverse_outbound_queue e
          WHERE e.status IN ('failed', 'dead') ORDER BY e.created_at DESC LIMIT 1000)
        UNION ALL
        (SELECT r.id, 3 FROM public.fediverse_outbound_queue r
          WHERE r.status = 'pending' AND r.next_retry_at > now()
          ORDER BY r.next_retry_at DESC LIMIT 1000)
        UNION ALL
        (SELECT b.first_id, 4 FROM ops.fediverse_by_domain b
          WHERE NOT EXISTS (SELECT FROM public.fediverse_outbound_queue o
                             WHERE o.id = b.first_id AND o.next_retry_at > now())
          ORDER BY b.first_at LIMIT 1000)) AS picked
      JOIN public.fediverse_outbound_queue q ON q.id = picked.id
      LEFT JOIN public.fediverse_domains d ON d.domain = q.target_domain COLLATE "C"
      LEFT JOIN public.fediverse_actors a ON a.id = q.actor_user_id
     CROSS JOIN (SELECT EXISTS (SELECT FROM public.fediverse_domains
                                 WHERE blocked_at IS NOT NULL) AS some) AS blocks
     CROSS JOIN LATERAL (
        SELECT blocks.some AND public.fediverse_is_blocked(q.target_domain) AS it) AS blocked) AS entries
 ORDER BY rank, age DESC, domain, entry;
COMMENT ON VIEW ops.fediverse_queue IS
    'Activities that do not arrive, why, and what can be done: at most 1000 that ended badly, 1000 that wait for their time, and the first due of 1000 domains. ops.domains says how many there are.';

CREATE VIEW ops.workers AS
WITH alive AS MATERIALIZED (
    SELECT l.classid::bigint << 32 | l.objid::bigint AS id
      FROM pg_locks l
     WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
       AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())),
held AS MATERIALIZED (
    SELECT worker, count(*) AS leases, array_agg(peer ORDER BY peer) AS peers
      FROM (SELECT lease_worker, origin FROM public.federation_peers
             WHERE lease_worker IS NOT NULL AND lease_until > now()
            UNION ALL
            SELECT lease_worker, domain COLLATE "default" FROM public.fediverse_domains
             WHERE lease_worker IS NOT NULL AND lease_until > now()
            UNION ALL
            SELECT lease_worker, peer_origin FROM public.federation_file_queue
             WHERE status = 'pending' AND lease_until > now()) AS leases (worker, peer)
     GROUP BY worker),
asked AS MATERIALIZED (
    SELECT worker, count(*) AS questions FROM public.s2s_requests
     WHERE claimed_at IS NOT NULL AND answered_at IS NULL AND deadline > now()
     GROUP BY worker)
SELECT w.daemon, w.instance, w.host, w.pid, w.version, w.schema,
       now() - w.started_at AS since, now() - w.last_seen_at AS last_seen,
       EXISTS (SELECT FROM alive WHERE alive.id = w.id) AS alive,
       coalesce(held.leases, 0) AS leases,
       coalesce(asked.questions, 0) AS in_flight,
       array_to_string(held.peers[1:3], ', ')
           || CASE WHEN held.leases > 3 THEN format(' and %s more', held.leases - 3) ELSE '' END AS holds,
       w.id AS worker
  FROM public.workers w
  LEFT JOIN held ON held.worker = w.id
  LEFT JOIN asked ON asked.worker = w.id
 ORDER BY alive, last_seen DESC, daemon, instance;
COMMENT ON VIEW ops.workers IS
    'Daemons, whether they live, whose peers and domains they hold and how many questions they have on the wire.';

-- ---- what a person types ----

-- A domain of ours in any spelling, with or without scheme and path.
CREATE FUNCTION ops.domain_named(typed text) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    named constant text := fediverse_domain_of(
        CASE WHEN typed ~ '^\s*[A-Za-z]+://' THEN '' ELSE 'https://' END || btrim(typed));
BEGIN
    IF typed IS NULL THEN
        RETURN NULL;
    END IF;
    IF named IS NULL OR NOT (
            EXISTS (SELECT FROM fediverse_domains d WHERE d.domain = named)
            OR EXISTS (SELECT FROM fediverse_outbound_queue q
                        WHERE q.status = 'pending' AND q.target_domain COLLATE "C" = named)
            OR EXISTS (SELECT FROM fediverse_outbound_queue q
                        WHERE q.status IN ('failed', 'dead') AND q.target_domain = named)) THEN
        RAISE EXCEPTION 'nothing was sent to %', typed
            USING ERRCODE = 'PT404', HINT = 'SELECT domain FROM ops.domains';
    END IF;
    RETURN named;
END $$;

-- What of the queue is meant: what waits, or what ended badly.
CREATE FUNCTION ops.activity_is(q public.fediverse_outbound_queue, domain text, older_than interval)
RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT (domain IS NULL OR q.target_domain COLLATE "C" = domain)
       AND (older_than IS NULL OR q.created_at <= now() - older_than)
$$;

CREATE FUNCTION ops.need_activities(domain text, older_than interval, why text, at_most integer)
RETURNS void
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    PERFORM ops.need_why(why);
    IF domain IS NULL AND older_than IS NULL THEN
        RAISE EXCEPTION 'say which: a domain or older_than'
            USING ERRCODE = 'PT400', HINT = 'for all of them: older_than => ''0''';
    END IF;
    IF coalesce(at_most, 0) NOT BETWEEN 1 AND 100000 THEN
        RAISE EXCEPTION 'at_most is 1 to 100000 a call' USING ERRCODE = 'PT400';
    END IF;
END $$;

CREATE FUNCTION ops.about_activities(domain text, older_than interval) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT concat_ws(' ', domain, 'older than ' || older_than)
$$;

-- ---- domains ----

-- Whoever delivers there reads no more after what is under way.
CREATE FUNCTION ops.domain_pause(domain text, reason text, for_how_long interval DEFAULT NULL,
    dry_run boolean DEFAULT false)
RETURNS TABLE (named text, state text, until timestamptz, meaning text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
    PERFORM ops.need_why(domain_pause.reason);
    named := ops.domain_named(domain_pause.domain);
    until := coalesce(now() + for_how_long, 'infinity');
    IF named IS NULL THEN
        RAISE EXCEPTION 'say which domain' USING ERRCODE = 'PT404';
    END IF;
    IF until <= now() THEN
        RAISE EXCEPTION 'a pause ends later than now' USING ERRCODE = 'PT400';
    END IF;
    IF NOT dry_run THEN
        INSERT INTO fediverse_domains AS d (domain, paused_until, paused_by, paused_reason)
        VALUES (named, until, session_user, domain_pause.reason)
            ON CONFLICT ON CONSTRAINT fediverse_domains_pkey DO UPDATE
           SET paused_until = excluded.paused_until, paused_by = excluded.paused_by,
               paused_reason = excluded.paused_reason;
        PERFORM pg_notify('postrider_activity', '');
        PERFORM ops.audit_write('domain_pause', named, concat_ws(', ', domain_pause.reason,
            'for ' || for_how_long), 1);
    END IF;
    state := coalesce((SELECT ops.domain_state(d) FROM fediverse_domains d WHERE d.domain = named), 'new');
    meaning := CASE WHEN dry_run THEN 'would be paused; nothing was changed'
        WHEN until = 'infinity' THEN 'paused until ops.domain_resume; what is queued is kept'
        ELSE 'paused and resumes by itself; what is queued is kept' END;
    RETURN NEXT;
END $$;

CREATE FUNCTION ops.domain_resume(domain text, reason text DEFAULT NULL, dry_run boolean DEFAULT false)
RETURNS TABLE (named text, state text, meaning text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    was boolean;
BEGIN
    named := ops.domain_named(domain_resume.domain);
    IF named IS NULL THEN
        RAISE EXCEPTION 'say which domain' USING ERRCODE = 'PT404';
    END IF;
    was := (SELECT d.paused_until > now() FROM fediverse_domains d WHERE d.domain = named);
    IF NOT dry_run THEN
        UPDATE fediverse_domains d SET paused_until = NULL, paused_by = NULL, paused_reason = NULL
         WHERE d.domain = named AND d.paused_until IS NOT NULL;
        PERFORM pg_notify('postrider_activity', '');
        PERFORM ops.audit_write('domain_resume', named, domain_resume.reason, (was IS TRUE)::int);
    END IF;
    state := coalesce((SELECT ops.domain_state(d) FROM fediverse_domains d WHERE d.domain = named), 'new');
    meaning := CASE WHEN was IS NOT TRUE THEN 'was not paused'
        WHEN dry_run THEN 'would be resumed; nothing was changed'
        ELSE 'resumed' END;
    RETURN NEXT;
END $$;

-- Its breaker is closed and its inboxes count as there again; what died
-- meanwhile is for ops.fediverse_replay.
CREATE FUNCTION ops.domain_revive(domain text, reason text DEFAULT NULL, dry_run boolean DEFAULT false)
RETURNS TABLE (named text, was text, state text, meaning text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    revived boolean;
BEGIN
    named := ops.domain_named(domain_revive.domain);
    IF named IS NULL THEN
        RAISE EXCEPTION 'say which domain' USING ERRCODE = 'PT404';
    END IF;
    was := coalesce((SELECT ops.domain_state(d) FROM fediverse_domains d WHERE d.domain = named), 'new');
    revived := EXISTS (SELECT FROM fediverse_domains d WHERE d.domain = named
        AND (d.state <> 'closed' OR d.failures > 0 OR d.failure_days > 0));
    IF NOT dry_run THEN
        revived := fediverse_revive(named);
        PERFORM ops.audit_write('domain_revive', named, domain_revive.reason, revived::int);
    END IF;
    state := coalesce((SELECT ops.domain_state(d) FROM fediverse_domains d WHERE d.domain = named), 'new');
    meaning := CASE WHEN NOT revived THEN 'it was alive'
        WHEN dry_run THEN 'would be revived; nothing was changed'
        ELSE format('revived; what died meanwhile: ops.fediverse_replay(%L, why => ...)', named) END;
    RETURN NEXT;
END $$;

-- ---- activities ----

-- What waits for its time is due, and a domain's pause after failures is over.
-- Counters stay.
CREATE FUNCTION ops.fediverse_retry_now(domain text, reason text DEFAULT NULL, dry_run boolean DEFAULT false)
RETURNS TABLE (entries bigint, meaning text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    wanted constant text := ops.domain_named(fediverse_retry_now.domain);
    held boolean;
BEGIN
    IF wanted IS NULL THEN
        RAISE EXCEPTION 'say which domain' USING ERRCODE = 'PT404';
    END IF;
    held := (SELECT d.not_before > now() FROM fediverse_domains d WHERE d.domain = wanted);
    entries := (SELECT count(*) FROM (SELECT FROM fediverse_outbound_queue q
        WHERE q.status = 'pending' AND q.target_domain COLLATE "C" = wanted
          AND q.next_retry_at > now() LIMIT 10000) AS upto);
    IF NOT dry_run THEN
        WITH due AS MATERIALIZED (
            SELECT q.id FROM fediverse_outbound_queue q
             WHERE q.status = 'pending' AND q.target_domain COLLATE "C" = wanted
               AND q.next_retry_at > now()
             ORDER BY q.next_retry_at LIMIT 10000 FOR UPDATE SKIP LOCKED)
        UPDATE fediverse_outbound_queue q SET next_retry_at = now() FROM due WHERE q.id = due.id;
        GET DIAGNOSTICS entries = ROW_COUNT;
        UPDATE fediverse_domains d SET not_before = now()
         WHERE d.domain = wanted AND d.state <> 'dead' AND d.not_before > now();
        PERFORM pg_notify('postrider_activity', '');
        PERFORM ops.audit_write('fediverse_retry_now', wanted, fediverse_retry_now.reason, entries);
    END IF;
    meaning := CASE WHEN entries = 0 AND held IS NOT TRUE THEN 'nothing was waiting for a later try'
        WHEN dry_run THEN 'would be due at once; nothing was changed'
        ELSE 'due at once' END;
    RETURN NEXT;
END $$;

-- Takes out what waits, the oldest first; a request under way may arrive.
CREATE FUNCTION ops.fediverse_discard(domain text DEFAULT NULL, older_than interval DEFAULT NULL,
    why text DEFAULT NULL, at_most integer DEFAULT 10000, dry_run boolean DEFAULT false)
RETURNS TABLE (entries bigint, domains bigint, remaining bigint, meaning text)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    wanted constant text := ops.domain_named(fediverse_discard.domain);
BEGIN
    PERFORM ops.need_activities(wanted, fediverse_discard.older_than, fediverse_discard.why,
        fediverse_discard.at_most);
    IF NOT dry_run THEN
        WITH picked AS MATERIALIZED (
            SELECT q.id FROM fediverse_outbound_queue q
             WHERE q.status = 'pending' AND ops.activity_is(q, wanted, fediverse_discard.older_than)
             ORDER BY q.created_at, q.seq LIMIT fediverse_discard.at_most FOR UPDATE SKIP LOCKED),
        gone AS (
            DELETE FROM fediverse_outbound_queue q USING picked WHERE q.id = picked.id
            RETURNING q.target_domain)
        SELECT count(*), count(DISTINCT gone.target_domain) INTO entries, domains FROM gone;
        PERFORM ops.audit_write('fediverse_discard',
            ops.about_activities(wanted, fediverse_discard.older_than), fediverse_discard.why, entries);
    END IF;
    SELECT count(*), coalesce(entries, count(*)), coalesce(domains, count(DISTINCT q.target_domain))
      INTO remaining, entries, domains
      FROM fediverse_outbound_queue q
     WHERE q.status = 'pending' AND ops.activity_is(q, wanted, fediverse_discard.older_than);
    meaning := ops.told('discarded', entries, remaining, dry_run);
    RETURN NEXT;
END $$;

-- What failed or died is owed anew, as if never tried. Towards a dead or a
-- blocked domain nothing is: it would die at once.
CREATE FUNCTION ops.fediverse_replay(domain text DEFAULT NULL, older_than interval DEFAULT NULL,
    why text DEFAULT NULL, at_most integer DEFAULT 10000, dry_run boolean DEFAULT false)
RETURNS TABLE (entries bigint, domains bigint, remaining bigint, meaning text)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    wanted constant text := ops.domain_named(fediverse_replay.domain);
BEGIN
    PERFORM ops.need_activities(wanted, fediverse_replay.older_than, fediverse_replay.why,
        fediverse_replay.at_most);
    IF EXISTS (SELECT FROM fediverse_domains d WHERE d.domain = wanted AND d.state = 'dead') THEN
        RAISE EXCEPTION '% is dead', wanted
            USING ERRCODE = 'PT400', HINT = format('ops.domain_revive(%L)', wanted);
    END IF;
    IF fediverse_is_blocked(wanted) THEN
        RAISE EXCEPTION '% is blocked', wanted
            USING ERRCODE = 'PT400', HINT = format('ops.domain_unblock(%L)', wanted);
    END IF;
    IF NOT dry_run THEN
        WITH picked AS MATERIALIZED (
            SELECT q.id FROM fediverse_outbound_queue q
             WHERE q.status IN ('failed', 'dead') AND ops.activity_is(q, wanted, fediverse_replay.older_than)
               AND NOT EXISTS (SELECT FROM fediverse_domains d
                    WHERE d.domain = q.target_domain COLLATE "C" AND d.state = 'dead')
               AND NOT fediverse_is_blocked(q.target_domain)
             ORDER BY q.created_at, q.seq LIMIT fediverse_replay.at_most FOR UPDATE OF q SKIP LOCKED),
        back AS (
            UPDATE fediverse_outbound_queue q
               SET status = 'pending', attempts = 0, unauthorized = 0, unresolved = 0,
                   next_retry_at = NULL
              FROM picked WHERE q.id = picked.id
            RETURNING q.target_domain)
        SELECT count(*), count(DISTINCT back.target_domain) INTO entries, domains FROM back;
        PERFORM pg_notify('postrider_activity', '');
        PERFORM ops.audit_write('fediverse_replay',
            ops.about_activities(wanted, fediverse_replay.older_than), fediverse_replay.why, entries);
    END IF;
    SELECT count(*), coalesce(entries, count(*)), coalesce(domains, count(DISTINCT q.target_domain))
      INTO remaining, entries, domains
      FROM fediverse_outbound_queue q
     WHERE q.status IN ('failed', 'dead') AND ops.activity_is(q, wanted, fediverse_replay.older_than)
       AND NOT EXISTS (SELECT FROM fediverse_domains d
            WHERE d.domain = q.target_domain COLLATE "C" AND d.state = 'dead')
       AND NOT fediverse_is_blocked(q.target_domain);
    meaning := ops.told('queued again', entries, remaining, dry_run);
    RETURN NEXT;
END $$;

CREATE FUNCTION ops.fediverse_discard_dead(domain text DEFAULT NULL, older_than interval DEFAULT NULL,
    why text DEFAULT NULL, at_most integer DEFAULT 10000, dry_run boolean DEFAULT false)
RETURNS TABLE (entries bigint, domains bigint, remaining bigint, meaning text)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    wanted constant text := ops.domain_named(fediverse_discard_dead.domain);
BEGIN
    PERFORM ops.need_activities(wanted, fediverse_discard_dead.older_than,
        fediverse_discard_dead.why, fediverse_discard_dead.at_most);
    IF NOT dry_run THEN
        WITH picked AS MATERIALIZED (
            SELECT q.id FROM fediverse_outbound_queue q
             WHERE q.status IN ('failed', 'dead')
               AND ops.activity_is(q, wanted, fediverse_discard_dead.older_than)
             ORDER BY q.created_at, q.seq LIMIT fediverse_discard_dead.at_most FOR UPDATE SKIP LOCKED),
        gone AS (
            DELETE FROM fediverse_outbound_queue q USING picked WHERE q.id = picked.id
            RETURNING q.target_domain)
        SELECT count(*), count(DISTINCT gone.target_domain) INTO entries, domains FROM gone;
        PERFORM ops.audit_write('fediverse_discard_dead',
            ops.about_activities(wanted, fediverse_discard_dead.older_than),
            fediverse_discard_dead.why, entries);
    END IF;
    SELECT count(*), coalesce(entries, count(*)), coalesce(domains, count(DISTINCT q.target_domain))
      INTO remaining, entries, domains
      FROM fediverse_outbound_queue q
     WHERE q.status IN ('failed', 'dead')
       AND ops.activity_is(q, wanted, fediverse_discard_dead.older_than);
    meaning := ops.told('discarded', entries, remaining, dry_run);
    RETURN NEXT;
END $$;

-- ---- which of them may be called ----

REVOKE ALL ON FUNCTION ops.fediverse_sample_percent(), ops.fediverse_count(),
    ops.fediverse_aside(), ops.fediverse_ended(),
    ops.domain_state(public.fediverse_domains), ops.domain_named(text),
    ops.activity_is(public.fediverse_outbound_queue, text, interval),
    ops.need_activities(text, interval, text, integer), ops.about_activities(text, interval),
    ops.domain_pause(text, text, interval, boolean), ops.domain_resume(text, text, boolean),
    ops.domain_revive(text, text, boolean), ops.fediverse_retry_now(text, text, boolean),
    ops.fediverse_discard(text, interval, text, integer, boolean),
    ops.fediverse_replay(text, interval, text, integer, boolean),
    ops.fediverse_discard_dead(text, interval, text, integer, boolean)
    FROM PUBLIC;
GRANT EXECUTE ON FUNCTION ops.fediverse_sample_percent(), ops.fediverse_count(),
    ops.fediverse_aside(), ops.fediverse_ended(),
    ops.domain_state(public.fediverse_domains)
    TO postrider_operator, postrider_monitor, postrider_janitord;
GRANT SELECT ON ops.queue, ops.workers, ops.domains, ops.fediverse_queue
    TO postrider_operator, postrider_monitor;
GRANT SELECT ON ops.queue TO postrider_janitord;
GRANT EXECUTE ON FUNCTION
    ops.domain_pause(text, text, interval, boolean), ops.domain_resume(text, text, boolean),
    ops.domain_revive(text, text, boolean), ops.fediverse_retry_now(text, text, boolean),
    ops.fediverse_discard(text, interval, text, integer, boolean),
    ops.fediverse_replay(text, interval, text, integer, boolean),
    ops.fediverse_discard_dead(text, interval, text, integer, boolean)
    TO postrider_operator;
