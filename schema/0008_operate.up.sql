-- Acting on the queues: pause, resume, retry, discard, replay. Each function
-- takes what a person types, counts only when dry_run is true, answers one row
-- and writes to audit who did it and why. Nothing waits for a worker and no
-- worker waits for long: entries that are being booked right now are skipped,
-- and at most at_most entries are touched a call.

-- ---- what is kept of an entry, and how tables are swept ----

-- So that a replayed entry is the one that died.
ALTER TABLE dead_letters ADD COLUMN encryption_version integer NOT NULL DEFAULT 0;

-- Queues turn over all the time: swept by the count of dead rows, not by a
-- share of a table that is large once and small afterwards.
ALTER TABLE federation_file_queue SET (autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 500);
ALTER TABLE fediverse_outbound_queue SET (autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 1);
ALTER TABLE dead_letters SET (autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_insert_scale_factor = 0.2);
ALTER TABLE nonces SET (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 1);
ALTER TABLE workers SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 100);

-- ---- looking ----

-- A million rows that no vacuum has seen are read one by one: a count of many
-- takes a second then. A thousand pages of the outbox are looked at instead;
-- while it has no more than that, they are all of it.
CREATE FUNCTION ops.sample_percent() RETURNS real
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
    SELECT least(100, 100 * 1000.0 / greatest(1, pg_relation_size('public.federation_outbox')
               / current_setting('block_size')::bigint))::real
$$;

CREATE VIEW ops.outbox_sample AS
SELECT peer_id, (count(*) * 100 / ops.sample_percent())::bigint AS entries
  FROM public.federation_outbox TABLESAMPLE SYSTEM (ops.sample_percent())
 GROUP BY peer_id;

-- Exact up to ten thousand, beyond that what statistics know.
CREATE OR REPLACE FUNCTION ops.outbox_count() RETURNS bigint
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    bound constant bigint := 10000;
    counted constant bigint := (SELECT count(*) FROM (
        SELECT FROM federation_outbox ORDER BY peer_id, id LIMIT bound + 1) AS upto);
BEGIN
    IF counted <= bound THEN
        RETURN counted;
    END IF;
    RETURN greatest(counted, pg_stat_get_live_tuples('public.federation_outbox'::regclass));
END $$;

-- ORDER BY: without statistics the planner would read every entry.
CREATE OR REPLACE VIEW ops.queue AS
SELECT * FROM (
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
           count(*) FILTER (WHERE status = 'pending' AND coalesce(next_retry_at, now()) <= now()),
           0,
           count(*) FILTER (WHERE status = 'pending' AND next_retry_at > now()),
           count(*) FILTER (WHERE status IN ('failed', 'dead')),
           now() - min(created_at) FILTER (WHERE status = 'pending'),
           0
      FROM public.fediverse_outbound_queue
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
 ORDER BY oldest DESC NULLS LAST, queue;
COMMENT ON VIEW ops.queue IS
    'What waits; above 10000 about so many, set aside at most 10000. Of the outbox, leased and paused count peers; dead are in ops.dead_letters.';

CREATE OR REPLACE VIEW ops.peers AS
SELECT peer, state, since, waiting, leased_by, oldest, next_attempt, attempts, last_ok_out,
       last_ok_in, last_code, last_error, paused_until, paused_by, reason, meaning
  FROM (
    SELECT p.origin AS peer,
           state.word AS state,
           now() - CASE
               WHEN state.word IN ('pending', 'awaiting approval') THEN coalesce(p.initiated_at, p.created_at)
               WHEN state.word IN ('refuses our signature', 'unreachable', 'failing')
                   THEN coalesce(p.last_accepted_at, p.created_at)
               ELSE p.created_at END AS since,
           CASE WHEN upto.entries < 20 THEN upto.entries
               ELSE greatest(upto.entries, sample.entries) END AS waiting,
           CASE WHEN p.lease_until > now() THEN p.lease_worker END AS leased_by,
           now() - oldest.oldest_at AS oldest,
           CASE WHEN p.next_attempt_at > now() THEN p.next_attempt_at - now() END AS next_attempt,
           p.transport_failures + p.auth_failures AS attempts,
           now() - p.last_accepted_at AS last_ok_out,
           now() - p.last_inbound_at AS last_ok_in,
           p.last_code,
           p.last_error,
           CASE WHEN p.paused_until > now() THEN p.paused_until END AS paused_until,
           CASE WHEN p.paused_until > now() THEN p.paused_by END AS paused_by,
           CASE WHEN p.paused_until > now() THEN p.paused_reason END AS reason,
           CASE state.word
               WHEN 'revoked' THEN 'we trust it no longer; it gets 403'
               WHEN 'awaiting approval' THEN format('decide: ops.peer_approve(%L) or ops.peer_deny(%L)', p.origin, p.origin)
               WHEN 'paused' THEN format('we send it nothing for now; to end that: ops.peer_resume(%L)', p.origin)
               WHEN 'pending' THEN CASE WHEN p.initiated_at IS NULL
                   THEN 'it asked; the handshake has not finished'
                   ELSE 'we asked; the handshake has not finished' END
               WHEN 'refuses our signature' THEN format('refuses our signature since %s: the secrets or the clocks differ',
                   to_char(coalesce(p.last_accepted_at, p.created_at), 'YYYY-MM-DD HH24:MI'))
               WHEN 'unreachable' THEN 'does not answer; entries are kept'
               WHEN 'failing' THEN 'did not answer the last time'
               ELSE 'well' END AS meaning,
           array_position(ARRAY['refuses our signature', 'unreachable', 'failing', 'no peer',
               'awaiting approval', 'pending', 'paused', 'active', 'revoked'], state.word) AS rank
      FROM public.federation_peers p
     CROSS JOIN LATERAL (SELECT ops.peer_state(p) AS word) AS state
     CROSS JOIN LATERAL (
        SELECT count(*) AS entries FROM (SELECT FROM public.federation_outbox o
         WHERE o.peer_id = p.id ORDER BY o.peer_id, o.id LIMIT 20) AS first) AS upto
      LEFT JOIN ops.outbox_by_peer oldest ON oldest.peer_id = p.id
      LEFT JOIN ops.outbox_sample sample ON sample.peer_id = p.id
    UNION ALL
    SELECT h.host, 'no peer', NULL, 0, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
           'people there share conversations with ours, but we are not peered', 4
      FROM ops.hosts_without_peer h) AS peers
 ORDER BY rank, oldest DESC NULLS LAST, peer;
COMMENT ON VIEW ops.peers IS
    'Every node we talk to or ought to, worst first; of 20 and more about so many wait once the outbox is large.';

DROP VIEW ops.dead_letters;
CREATE VIEW ops.dead_letters AS
SELECT id AS entry, queue, peer, event_type AS type, died_at, why, peer_answer, refusals
  FROM public.dead_letters
 ORDER BY died_at DESC;
COMMENT ON VIEW ops.dead_letters IS
    'What could not be delivered, the latest first; ops.replay and ops.discard_dead act on it.';

DROP VIEW ops.workers;
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
    'Daemons, whether they live, whose peers they hold and how many questions they have on the wire.';

CREATE OR REPLACE VIEW ops.stuck AS
SELECT * FROM (
    -- Set aside after a refusal for now.
    SELECT 'outbox' AS queue, coalesce(p.origin, o.peer_id::text) AS peer, o.id::text AS entry,
           o.event_type AS type, now() - o.created_at AS age, o.refusals AS attempts,
           p.last_code, o.reason AS last_error,
           'set aside: the peer refused it for now' AS why_stuck,
           format('wait: tried again in %s; or ops.retry_now(%L)',
               date_trunc('second', greatest(o.retry_at - now(), interval '0')), p.origin) AS what_to_do
      FROM (SELECT * FROM public.federation_outbox WHERE retry_at IS NOT NULL
             ORDER BY peer_id, id LIMIT 1000) AS o
      LEFT JOIN public.federation_peers p ON p.id = o.peer_id
    UNION ALL
    -- The first entry of a peer to which nothing goes.
    SELECT 'outbox', coalesce(p.origin, o.peer_id::text), o.oldest_id::text, o.oldest_type,
           now() - o.oldest_at, coalesce(p.transport_failures + p.auth_failures, 0),
           p.last_code, p.last_error,
           CASE WHEN p.id IS NULL THEN 'its peer is gone' ELSE 'peer is ' || ops.peer_state(p) END,
           CASE WHEN p.id IS NULL
               THEN format('wait: it ends with its time to live; or ops.discard(%L, why => ...)', o.peer_id::text)
               ELSE CASE ops.peer_state(p)
               WHEN 'refuses our signature' THEN 'renew the trust: rotate the secret or peer again'
               WHEN 'unreachable' THEN format('ask its operator; it is probed all the time; or ops.retry_now(%L)', p.origin)
               WHEN 'failing' THEN format('wait: tried again by itself; or ops.retry_now(%L)', p.origin)
               WHEN 'awaiting approval' THEN format('ops.peer_approve(%L)', p.origin)
               WHEN 'paused' THEN format('ops.peer_resume(%L)', p.origin)
               WHEN 'pending' THEN 'finish the handshake: peer again'
               WHEN 'revoked' THEN format('wait: it ends with its time to live; or ops.discard(%L, why => ...)', p.origin)
               ELSE 'is outboxd running? see ops.workers' END END
      FROM ops.outbox_by_peer o
      LEFT JOIN public.federation_peers p ON p.id = o.peer_id
     WHERE p.id IS NULL OR ops.peer_state(p) <> 'active'
        OR (o.oldest_at < now() - interval '1 minute' AND p.lease_until <= now())
    UNION ALL
    SELECT 'fediverse', f.target_domain, f.id::text, 'activity', now() - f.created_at, f.attempts,
           NULL, f.last_error, 'the inbox does not take it',
           format('wait: tried again in %s', date_trunc('second', greatest(f.next_retry_at - now(), interval '0')))
      FROM (SELECT * FROM public.fediverse_outbound_queue
             WHERE status = 'pending' AND next_retry_at IS NOT NULL AND attempts > 0
             ORDER BY next_retry_at LIMIT 1000) AS f
    UNION ALL
    SELECT 'files', q.peer_origin, q.id::text, q.mimetype, now() - q.created_at, q.attempts,
           NULL, q.rejection_reason, 'the file did not come',
           format('wait: tried again in %s', date_trunc('second', greatest(q.next_retry_at - now(), interval '0')))
      FROM (SELECT * FROM public.federation_file_queue
             WHERE status = 'pending' AND attempts > 0
             ORDER BY peer_origin, id LIMIT 1000) AS q) AS stuck
 ORDER BY age DESC;

-- ---- what a person types ----

-- A peer by origin, by host, or (its row is gone) by the number that
-- ops.stuck shows; case, spaces, default ports and final slashes don't matter.
CREATE FUNCTION ops.peer_named(typed text) RETURNS bigint
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    spelled constant text := regexp_replace(
        regexp_replace(lower(rtrim(btrim(typed), '/')), '^(https://.*):443$|^(http://.*):80$', '\1\2'),
        '\.(?=(:[0-9]+)?$)', '');
    found_id bigint;
BEGIN
    IF typed IS NULL THEN
        RETURN NULL;
    END IF;
    SELECT p.id INTO found_id FROM federation_peers p
     WHERE p.origin IN (spelled, 'https://' || spelled, 'http://' || spelled) OR p.host = spelled
     ORDER BY p.origin = spelled DESC, p.host = spelled DESC, p.origin LIMIT 1;
    IF found_id IS NULL AND spelled ~ '^[0-9]{1,18}$' THEN
        SELECT o.peer_id INTO found_id FROM federation_outbox o
         WHERE o.peer_id = spelled::bigint LIMIT 1;
    END IF;
    IF found_id IS NULL THEN
        RAISE EXCEPTION '% is no peer of ours', typed
            USING ERRCODE = 'PT404', HINT = 'SELECT peer FROM ops.peers';
    END IF;
    RETURN found_id;
END $$;

CREATE FUNCTION ops.need_why(why text) RETURNS void
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF coalesce(btrim(why), '') = '' THEN
        RAISE EXCEPTION 'say why: whoever looks at ops.audit later wants to know'
            USING ERRCODE = 'PT400';
    END IF;
END $$;

-- What is taken away or brought back is named, never everything by mistake.
CREATE FUNCTION ops.need_choice(peer text, type text, reason_word text, older_than interval, at_most integer)
RETURNS void
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF peer IS NULL AND type IS NULL AND reason_word IS NULL AND older_than IS NULL THEN
        RAISE EXCEPTION 'say which: a peer, a type, a reason_word or older_than'
            USING ERRCODE = 'PT400', HINT = 'for all of them: older_than => ''0''';
    END IF;
    IF coalesce(at_most, 0) NOT BETWEEN 1 AND 100000 THEN
        RAISE EXCEPTION 'at_most is 1 to 100000 a call' USING ERRCODE = 'PT400';
    END IF;
END $$;

-- Plain SQL, so that the planner sees the columns.
CREATE FUNCTION ops.entry_is(o public.federation_outbox, type text, reason_word text, older_than interval)
RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT (type IS NULL OR o.event_type = type)
       AND (reason_word IS NULL OR o.reason = reason_word)
       AND (older_than IS NULL OR o.created_at <= now() - older_than)
$$;

CREATE FUNCTION ops.letter_is(d public.dead_letters, type text, reason_word text, older_than interval)
RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT (type IS NULL OR d.event_type = type)
       AND (reason_word IS NULL OR d.peer_answer = reason_word OR d.why = reason_word)
       AND (older_than IS NULL OR d.died_at <= now() - older_than)
$$;

-- The sentence at the end of a row.
CREATE FUNCTION ops.told(did text, many bigint, remaining bigint, dry_run boolean) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN dry_run THEN format('would be %s; nothing was changed', did)
        WHEN remaining > 0 THEN format('%s; call it again for the rest', did)
        WHEN many = 0 THEN format('there was nothing to be %s', did)
        ELSE format('%s; nothing like it is left', did) END
$$;

-- What it was done to, for the audit.
CREATE FUNCTION ops.about(one bigint, peer text, type text, reason_word text, older_than interval)
RETURNS text LANGUAGE sql STABLE AS $$
    SELECT nullif(concat_ws(' ',
        coalesce((SELECT p.origin FROM public.federation_peers p WHERE p.id = one), peer), 'type ' || type, 'reason ' || reason_word,
        'older than ' || older_than), '')
$$;

-- ---- peers ----

-- Every worker stops within a second: the trigger on paused_until tells them.
CREATE FUNCTION ops.peer_pause(peer text, reason text, for_how_long interval DEFAULT NULL,
    dry_run boolean DEFAULT false)
RETURNS TABLE (origin text, state text, until timestamptz, waiting bigint, meaning text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    wanted constant bigint := ops.peer_named(peer_pause.peer);
    ends constant timestamptz := coalesce(now() + for_how_long, 'infinity');
    named federation_peers;
BEGIN
    PERFORM ops.need_why(peer_pause.reason);
    IF ends <= now() THEN
        RAISE EXCEPTION 'a pause ends later than now' USING ERRCODE = 'PT400';
    END IF;
    IF NOT dry_run THEN
        UPDATE federation_peers p
           SET paused_until = ends, paused_by = session_user, paused_reason = peer_pause.reason
         WHERE p.id = wanted;
    END IF;
    SELECT * INTO named FROM federation_peers p WHERE p.id = wanted;
    IF named.id IS NULL THEN
        RAISE EXCEPTION '% is no peer of ours', peer_pause.peer USING ERRCODE = 'PT404';
    END IF;
    IF NOT dry_run THEN
        PERFORM ops.audit_write('peer_pause', named.origin, concat_ws(', ', peer_pause.reason,
            'for ' || for_how_long), 1);
    END IF;
    RETURN QUERY SELECT named.origin, ops.peer_state(named), ends,
        (SELECT count(*) FROM (SELECT FROM federation_outbox o
          WHERE o.peer_id = wanted LIMIT 10000) AS upto),
        CASE WHEN dry_run THEN 'would be paused; nothing was changed'
             WHEN ends = 'infinity' THEN 'paused until ops.peer_resume; what is queued is kept'
             ELSE 'paused and resumes by itself; what is queued is kept' END;
END $$;

CREATE FUNCTION ops.peer_resume(peer text, reason text DEFAULT NULL, dry_run boolean DEFAULT false)
RETURNS TABLE (origin text, state text, waiting bigint, meaning text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    wanted constant bigint := ops.peer_named(peer_resume.peer);
    was constant boolean := (SELECT p.paused_until > now() FROM federation_peers p WHERE p.id = wanted);
    named federation_peers;
BEGIN
    IF NOT dry_run THEN
        UPDATE federation_peers p
           SET paused_until = NULL, paused_by = NULL, paused_reason = NULL
         WHERE p.id = wanted AND p.paused_until IS NOT NULL;
    END IF;
    SELECT * INTO named FROM federation_peers p WHERE p.id = wanted;
    IF named.id IS NULL THEN
        RAISE EXCEPTION '% is no peer of ours', peer_resume.peer USING ERRCODE = 'PT404';
    END IF;
    IF NOT dry_run THEN
        PERFORM ops.audit_write('peer_resume', named.origin, peer_resume.reason, (was IS TRUE)::int);
    END IF;
    RETURN QUERY SELECT named.origin, ops.peer_state(named),
        (SELECT count(*) FROM (SELECT FROM federation_outbox o
          WHERE o.peer_id = wanted LIMIT 10000) AS upto),
        CASE WHEN was IS NOT TRUE THEN 'was not paused'
             WHEN dry_run THEN 'would be resumed; nothing was changed'
             ELSE 'resumed' END;
END $$;

-- ---- the outbox ----

-- What was set aside, and peers that wait for their next attempt, are due now.
-- Counters stay: who refuses again waits longer again.
CREATE FUNCTION ops.retry_now(peer text DEFAULT NULL, type text DEFAULT NULL,
    reason_word text DEFAULT NULL, older_than interval DEFAULT NULL, reason text DEFAULT NULL,
    dry_run boolean DEFAULT false)
RETURNS TABLE (entries bigint, peers bigint, meaning text)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    wanted constant bigint := ops.peer_named(retry_now.peer);
    chosen constant boolean := num_nonnulls(retry_now.type, retry_now.reason_word, retry_now.older_than) > 0;
    owners bigint[];
    counted bigint;
    done bigint;
BEGIN
    SELECT count(*), array_agg(DISTINCT o.peer_id) INTO counted, owners
      FROM federation_outbox o
     WHERE o.retry_at > now() AND (wanted IS NULL OR o.peer_id = wanted)
       AND ops.entry_is(o, retry_now.type, retry_now.reason_word, retry_now.older_than);
    SELECT count(*) INTO peers FROM federation_peers p
     WHERE p.next_attempt_at > now() AND (wanted IS NULL OR p.id = wanted)
       AND (NOT chosen OR p.id = ANY (owners));
    IF NOT dry_run THEN
        WITH due AS MATERIALIZED (
            SELECT o.peer_id, o.id FROM federation_outbox o
             WHERE o.retry_at > now() AND (wanted IS NULL OR o.peer_id = wanted)
               AND ops.entry_is(o, retry_now.type, retry_now.reason_word, retry_now.older_than)
             ORDER BY o.peer_id, o.id LIMIT 10000 FOR UPDATE SKIP LOCKED)
        UPDATE federation_outbox o SET retry_at = now()
          FROM due WHERE o.peer_id = due.peer_id AND o.id = due.id;
        GET DIAGNOSTICS done = ROW_COUNT;
        PERFORM ops.peers_due(wanted, CASE WHEN chosen THEN coalesce(owners, '{}') END);
        PERFORM ops.audit_write('retry_now', ops.about(wanted, retry_now.peer, retry_now.type,
            retry_now.reason_word, retry_now.older_than), retry_now.reason, done);
    END IF;
    entries := coalesce(done, counted);
    meaning := CASE WHEN dry_run THEN 'would be due at once; nothing was changed'
        WHEN entries + peers = 0 THEN 'nothing was waiting for a later try'
        WHEN done < counted THEN 'due at once; call it again for the rest'
        ELSE 'due at once' END;
    RETURN NEXT;
END $$;

-- Their next attempt is now: of one peer, of these, or (both NULL) of all.
CREATE FUNCTION ops.peers_due(one bigint, these bigint[]) RETURNS void
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

-- Takes entries out of the outbox, the oldest first. A worker that holds the
-- peer is told to read anew: only the batch it has on the wire may still
-- arrive, and what it books of entries that are gone finds no row.
CREATE FUNCTION ops.discard(peer text DEFAULT NULL, type text DEFAULT NULL,
    reason_word text DEFAULT NULL, older_than interval DEFAULT NULL, why text DEFAULT NULL,
    at_most integer DEFAULT 10000, dry_run boolean DEFAULT false)
RETURNS TABLE (entries bigint, peers bigint, remaining bigint, meaning text)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    wanted constant bigint := ops.peer_named(discard.peer);
BEGIN
    PERFORM ops.need_why(discard.why), ops.need_choice(discard.peer, discard.type,
        discard.reason_word, discard.older_than, discard.at_most);
    IF NOT dry_run THEN
        WITH picked AS MATERIALIZED (
            SELECT o.peer_id, o.id FROM federation_outbox o
             WHERE (wanted IS NULL OR o.peer_id = wanted)
               AND ops.entry_is(o, discard.type, discard.reason_word, discard.older_than)
             ORDER BY o.peer_id, o.id LIMIT discard.at_most FOR UPDATE SKIP LOCKED),
        gone AS (
            DELETE FROM federation_outbox o USING picked
             WHERE o.peer_id = picked.peer_id AND o.id = picked.id
            RETURNING o.peer_id)
        SELECT count(*), count(DISTINCT gone.peer_id) INTO entries, peers FROM gone;
        PERFORM pg_notify('postrider_control', 'peer');
        PERFORM ops.audit_write('discard', ops.about(wanted, discard.peer, discard.type,
            discard.reason_word, discard.older_than), discard.why, entries);
    END IF;
    SELECT count(*), coalesce(entries, count(*)), coalesce(peers, count(DISTINCT o.peer_id))
      INTO remaining, entries, peers
      FROM federation_outbox o
     WHERE (wanted IS NULL OR o.peer_id = wanted)
       AND ops.entry_is(o, discard.type, discard.reason_word, discard.older_than);
    meaning := ops.told('discarded', entries, remaining, dry_run);
    RETURN NEXT;
END $$;

-- ---- dead letters ----

-- The living peer of a letter: by origin, for a peer may have come back anew.
CREATE VIEW ops.letters_to_replay AS
SELECT d.id, p.id AS peer_id
  FROM public.dead_letters d
  JOIN public.federation_peers p ON p.status <> 'revoked'
   AND p.id = coalesce((SELECT n.id FROM public.federation_peers n WHERE n.origin = d.peer), d.peer_id)
 WHERE d.queue = 'outbox';

-- Back into the outbox at its old place among what waits: it may have been
-- presented, and its id below presented_through says so. A fresh time to live.
CREATE FUNCTION ops.replay(peer text DEFAULT NULL, type text DEFAULT NULL,
    reason_word text DEFAULT NULL, older_than interval DEFAULT NULL, why text DEFAULT NULL,
    at_most integer DEFAULT 10000, dry_run boolean DEFAULT false)
RETURNS TABLE (entries bigint, peers bigint, remaining bigint, meaning text)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    wanted constant bigint := ops.peer_named(replay.peer);
    owners bigint[];
BEGIN
    PERFORM ops.need_why(replay.why), ops.need_choice(replay.peer, replay.type,
        replay.reason_word, replay.older_than, replay.at_most);
    IF NOT dry_run THEN
        WITH picked AS MATERIALIZED (
            SELECT d.id, l.peer_id FROM dead_letters d JOIN ops.letters_to_replay l ON l.id = d.id
             WHERE (wanted IS NULL OR l.peer_id = wanted)
               AND ops.letter_is(d, replay.type, replay.reason_word, replay.older_than)
             ORDER BY l.peer_id, d.entry_id, d.id
             LIMIT replay.at_most FOR UPDATE OF d SKIP LOCKED),
        taken AS (
            DELETE FROM dead_letters d USING picked WHERE d.id = picked.id
            RETURNING d.*, picked.peer_id AS owner),
        back AS (
            INSERT INTO federation_outbox AS o (peer_id, id, context_type, context_id, event_type,
                   entity_id, payload, encryption_version, created_at, expires_at)
            SELECT t.owner, coalesce(t.entry_id, nextval('federation_outbox_ids')), t.context_type,
                   t.context_id, t.event_type, t.entity_id, t.payload, t.encryption_version,
                   t.created_at, now() + make_interval(days => s.federation_relay_ttl_days)
              FROM taken t CROSS JOIN instance_settings s
             ORDER BY t.owner, t.entry_id, t.id
            RETURNING o.peer_id)
        SELECT count(*), count(DISTINCT back.peer_id), array_agg(DISTINCT back.peer_id)
          INTO entries, peers, owners FROM back;
        PERFORM ops.peers_due(NULL, coalesce(owners, '{}'));
        PERFORM ops.audit_write('replay', ops.about(wanted, replay.peer, replay.type,
            replay.reason_word, replay.older_than), replay.why, entries);
    END IF;
    SELECT count(*), coalesce(entries, count(*)), coalesce(peers, count(DISTINCT l.peer_id))
      INTO remaining, entries, peers
      FROM dead_letters d JOIN ops.letters_to_replay l ON l.id = d.id
     WHERE (wanted IS NULL OR l.peer_id = wanted)
       AND ops.letter_is(d, replay.type, replay.reason_word, replay.older_than);
    meaning := ops.told('queued again', entries, remaining, dry_run);
    RETURN NEXT;
END $$;

-- Dead letters of any queue, the oldest first.
CREATE FUNCTION ops.discard_dead(peer text DEFAULT NULL, type text DEFAULT NULL,
    reason_word text DEFAULT NULL, older_than interval DEFAULT NULL, why text DEFAULT NULL,
    at_most integer DEFAULT 10000, dry_run boolean DEFAULT false)
RETURNS TABLE (entries bigint, peers bigint, remaining bigint, meaning text)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    wanted constant bigint := CASE WHEN NOT EXISTS (
        SELECT FROM dead_letters d WHERE d.peer = discard_dead.peer)
        THEN ops.peer_named(discard_dead.peer) END;
    named constant text := coalesce((SELECT p.origin FROM federation_peers p WHERE p.id = wanted),
        discard_dead.peer);
BEGIN
    PERFORM ops.need_why(discard_dead.why), ops.need_choice(discard_dead.peer, discard_dead.type,
        discard_dead.reason_word, discard_dead.older_than, discard_dead.at_most);
    IF NOT dry_run THEN
        WITH picked AS MATERIALIZED (
            SELECT d.id FROM dead_letters d
             WHERE (named IS NULL OR d.peer = named OR d.peer_id = wanted)
               AND ops.letter_is(d, discard_dead.type, discard_dead.reason_word, discard_dead.older_than)
             ORDER BY d.id LIMIT discard_dead.at_most FOR UPDATE SKIP LOCKED),
        gone AS (
            DELETE FROM dead_letters d USING picked WHERE d.id = picked.id RETURNING d.peer)
        SELECT count(*), count(DISTINCT gone.peer) INTO entries, peers FROM gone;
        PERFORM ops.audit_write('discard_dead', ops.about(wanted, discard_dead.peer, discard_dead.type,
            discard_dead.reason_word, discard_dead.older_than), discard_dead.why, entries);
    END IF;
    SELECT count(*), coalesce(entries, count(*)), coalesce(peers, count(DISTINCT d.peer))
      INTO remaining, entries, peers
      FROM dead_letters d
     WHERE (named IS NULL OR d.peer = named OR d.peer_id = wanted)
       AND ops.letter_is(d, discard_dead.type, discard_dead.reason_word, discard_dead.older_than);
    meaning := ops.told('discarded', entries, remaining, dry_run);
    RETURN NEXT;
END $$;

-- ---- who may ----

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA ops FROM PUBLIC;
GRANT SELECT ON ops.dead_letters, ops.workers TO postrider_operator, postrider_monitor;
GRANT EXECUTE ON FUNCTION ops.sample_percent() TO postrider_operator, postrider_monitor;
GRANT EXECUTE ON FUNCTION
    ops.peer_pause(text, text, interval, boolean),
    ops.peer_resume(text, text, boolean),
    ops.retry_now(text, text, text, interval, text, boolean),
    ops.discard(text, text, text, interval, text, integer, boolean),
    ops.replay(text, text, text, interval, text, integer, boolean),
    ops.discard_dead(text, text, text, interval, text, integer, boolean)
    TO postrider_operator;
