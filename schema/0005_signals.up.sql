-- Signals for every writer (DESIGN 2). Our daemons set postrider.signals to
-- after and signal themselves once the commit is through; everyone else is
-- served inside the transaction, so that no writer can forget.

CREATE FUNCTION signal_conversations() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('postrider_conversation',
            format('{"c":"%s","s":%s}', conversation_id, max(seq)))
       FROM added GROUP BY conversation_id;
    RETURN NULL;
END $$;
CREATE TRIGGER conversation_events_signal AFTER INSERT ON conversation_events
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT
    WHEN (current_setting('postrider.signals', true) IS DISTINCT FROM 'after')
    EXECUTE FUNCTION signal_conversations();

CREATE FUNCTION signal_users() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('postrider_user', format('{"u":"%s","s":%s}', user_id, max(seq)))
       FROM added GROUP BY user_id;
    RETURN NULL;
END $$;
CREATE TRIGGER user_events_signal AFTER INSERT ON user_events
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT
    WHEN (current_setting('postrider.signals', true) IS DISTINCT FROM 'after')
    EXECUTE FUNCTION signal_users();

-- The channel is the trigger's argument.
CREATE FUNCTION signal_queue() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify(TG_ARGV[0], '');
    RETURN NULL;
END $$;
CREATE TRIGGER federation_outbox_signal AFTER INSERT ON federation_outbox
    FOR EACH STATEMENT
    WHEN (current_setting('postrider.signals', true) IS DISTINCT FROM 'after')
    EXECUTE FUNCTION signal_queue('postrider_outbox');
CREATE TRIGGER fediverse_outbound_queue_signal AFTER INSERT ON fediverse_outbound_queue
    FOR EACH STATEMENT
    WHEN (current_setting('postrider.signals', true) IS DISTINCT FROM 'after')
    EXECUTE FUNCTION signal_queue('postrider_activity');
CREATE TRIGGER federation_file_queue_signal AFTER INSERT ON federation_file_queue
    FOR EACH STATEMENT
    WHEN (current_setting('postrider.signals', true) IS DISTINCT FROM 'after')
    EXECUTE FUNCTION signal_queue('postrider_files');
CREATE TRIGGER s2s_requests_signal AFTER INSERT ON s2s_requests
    FOR EACH STATEMENT
    WHEN (current_setting('postrider.signals', true) IS DISTINCT FROM 'after')
    EXECUTE FUNCTION signal_queue('postrider_request');

-- What an operator changes must reach every daemon at once, whoever wrote it.
CREATE FUNCTION signal_control() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('postrider_control', TG_ARGV[0]);
    RETURN NULL;
END $$;
CREATE TRIGGER instance_settings_signal AFTER UPDATE ON instance_settings
    FOR EACH STATEMENT EXECUTE FUNCTION signal_control('settings');
CREATE TRIGGER federation_peers_signal
    AFTER UPDATE OF status, hmac_secret, pending_hmac_secret, paused_until ON federation_peers
    FOR EACH STATEMENT EXECUTE FUNCTION signal_control('peer');
CREATE TRIGGER federation_peers_gone_signal AFTER DELETE ON federation_peers
    FOR EACH STATEMENT EXECUTE FUNCTION signal_control('peer');
