DROP FUNCTION ops.fediverse_discard_dead(text, interval, text, integer, boolean);
DROP FUNCTION ops.fediverse_replay(text, interval, text, integer, boolean);
DROP FUNCTION ops.fediverse_discard(text, interval, text, integer, boolean);
DROP FUNCTION ops.fediverse_retry_now(text, text, boolean);
DROP FUNCTION ops.domain_revive(text, text, boolean);
DROP FUNCTION ops.domain_resume(text, text, boolean);
DROP FUNCTION ops.domain_pause(text, text, interval, boolean);
DROP FUNCTION ops.about_activities(text, interval);
DROP FUNCTION ops.need_activities(text, interval, text, integer);
DROP FUNCTION ops.activity_is(public.fediverse_outbound_queue, text, interval);
DROP FUNCTION ops.domain_named(text);
DROP VIEW ops.workers, ops.queue, ops.fediverse_queue, ops.domains;
DROP FUNCTION ops.domain_state(public.fediverse_domains);
DROP FUNCTION ops.fediverse_ended();
DROP FUNCTION ops.fediverse_aside();
DROP FUNCTION ops.fediverse_count();
DROP VIEW ops.fediverse_sample, ops.fediverse_by_domain;
DROP FUNCTION ops.fediverse_sample_percent();
ALTER TABLE fediverse_domains
    DROP COLUMN paused_reason,
    DROP COLUMN paused_by,
    DROP COLUMN paused_until;
