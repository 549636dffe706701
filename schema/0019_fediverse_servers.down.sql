DROP FUNCTION fediverse_moved_inboxes();
DROP VIEW ops.moved_inboxes;
DROP FUNCTION fediverse_inbox_found(text, text, text);
DROP FUNCTION fediverse_inbox_moved(text, text);
DELETE FROM s2s_requests WHERE kind = 'inbox';
ALTER TABLE s2s_requests
    DROP CONSTRAINT s2s_requests_kind_check,
    ADD CONSTRAINT s2s_requests_kind_check
        CHECK (kind IN ('accept', 'counter', 'relay', 'info', 'identity', 'rotate', 'actor'));
DROP INDEX fediverse_followers_by_shared_inbox;
DROP TABLE fediverse_moved_inboxes;
DROP FUNCTION ops.domain_style(text, text, text, boolean);
DROP FUNCTION ops.domain_unblock(text, text, boolean);
DROP FUNCTION ops.domain_block(text, text, boolean);
DROP FUNCTION ops.host_covers(text, text);
DROP FUNCTION ops.host_named(text);
