-- What an operator does: about trust, and on the queues. Each function there
-- takes what a person types, counts only when dry_run is true, answers one row
-- and writes to audit who did it and why. Nothing waits for a worker and no
-- worker waits for long: entries that are being booked right now are skipped,
-- and at most at_most entries are touched a call.

-- ---- trust ----
-- The caller is session_user, which a definer's rights do not change.

CREATE FUNCTION ops.origin_of(typed text) RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    origin constant text := lower(rtrim(btrim(typed), '/'));
BEGIN
    IF origin IS NULL OR origin !~ '^https?://([a-z0-9._-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?$' THEN
        RAISE EXCEPTION 'an origin looks like https://chat.example.org'
            USING ERRCODE = 'PT400';
    END IF;
    RETURN origin;
END $$;

CREATE FUNCTION ops.audit_write(what text, about text, because text, many bigint) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO public.audit (action, target, reason, rows) VALUES (what, about, because, many)
$$;

-- Beforehand: this origin may peer although the policy asks for approval.
CREATE FUNCTION ops.peer_allow(origin text, reason text DEFAULT NULL)
RETURNS TABLE (peer text, state text, meaning text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    wanted constant text := ops.origin_of(peer_allow.origin);
    many bigint;
    known text;
BEGIN
    INSERT INTO federation_allowed_origins AS a (origin) VALUES (wanted)
        ON CONFLICT ON CONSTRAINT federation_allowed_origins_pkey DO NOTHING;
    GET DIAGNOSTICS many = ROW_COUNT;
    PERFORM ops.audit_write('peer_allow', wanted, peer_allow.reason, many);
    SELECT ops.peer_state(p) INTO known FROM federation_peers p WHERE p.origin = wanted;
    RETURN QUERY SELECT wanted, coalesce(known, 'no peer'), CASE
        WHEN known = 'awaiting approval' THEN 'allowed; what waits already still needs ops.peer_approve'
        WHEN many = 0 THEN 'was allowed already'
        ELSE 'allowed: it may peer without asking' END;
END $$;

CREATE FUNCTION ops.peer_approve(origin text, reason text DEFAULT NULL)
RETURNS TABLE (peer text, state text, meaning text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    wanted constant text := ops.origin_of(peer_approve.origin);
    found_id bigint;
    request bigint;
BEGIN
    UPDATE federation_peers p SET status = 'pending'
     WHERE p.origin = wanted AND p.status = 'awaiting_approval'
    RETURNING p.id INTO found_id;
    IF found_id IS NULL THEN
        RAISE EXCEPTION '% is not waiting for approval', wanted USING ERRCODE = 'PT404';
    END IF;
    INSERT INTO s2s_requests AS r (kind, peer_id, origin, deadline)
    VALUES ('counter', found_id, wanted, now() + interval '30 seconds')
    RETURNING r.id INTO request;
    PERFORM pg_notify('postrider_request', request::text);
    PERFORM ops.audit_write('peer_approve', wanted, peer_approve.reason, 1);
    RETURN QUERY SELECT wanted, 'pending',
        'approved: outboxd completes the handshake now; look at ops.peers';
END $$;

-- The row stays, so that it is refused when it asks again.
CREATE FUNCTION ops.peer_deny(origin text, reason text DEFAULT NULL)
RETURNS TABLE (peer text, state text, meaning text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    wanted constant text := ops.origin_of(peer_deny.origin);
    many bigint;
BEGIN
    UPDATE federation_peers p
       SET status = 'revoked', hmac_secret = NULL, pending_hmac_secret = NULL,
           offered_secret = NULL, offered_at = NULL, approval_token = NULL
     WHERE p.origin = wanted AND p.status = 'awaiting_approval';
    GET DIAGNOSTICS many = ROW_COUNT;
    IF many = 0 THEN
        RAISE EXCEPTION '% is not waiting for approval', wanted USING ERRCODE = 'PT404';
    END IF;
    PERFORM ops.audit_write('peer_deny', wanted, peer_deny.reason, many);
    RETURN QUERY SELECT wanted, 'revoked', 'denied: it gets 403 when it asks again';
END $$;

CREATE FUNCTION ops.make_admin(username text, reason text DEFAULT NULL)
RETURNS TABLE (person text, state text, meaning text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    was boolean;
BEGIN
    SELECT u.is_admin INTO was FROM users u
     WHERE u.username = make_admin.username AND u.home_instance IS NULL AND NOT u.is_deleted
       FOR NO KEY UPDATE;
    IF was IS NULL THEN
        RAISE EXCEPTION 'nobody of this node is called %', make_admin.username
            USING ERRCODE = 'PT404';
    END IF;
    UPDATE users u SET is_admin = true WHERE u.username = make_admin.username AND NOT u.is_admin;
    PERFORM ops.audit_write('make_admin', make_admin.username, make_admin.reason, (NOT was)::int);
    RETURN QUERY SELECT make_admin.username, 'admin',
        CASE WHEN was THEN 'was an administrator already' ELSE 'is an administrator now' END;
END $$;

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
GRANT EXECUTE ON FUNCTION
    ops.peer_allow(text, text), ops.peer_approve(text, text), ops.peer_deny(text, text),
    ops.make_admin(text, text),
    ops.peer_pause(text, text, interval, boolean),
    ops.peer_resume(text, text, boolean),
    ops.retry_now(text, text, text, interval, text, boolean),
    ops.discard(text, text, text, interval, text, integer, boolean),
    ops.replay(text, text, text, interval, text, integer, boolean),
    ops.discard_dead(text, text, text, interval, text, integer, boolean)
    TO postrider_operator;
