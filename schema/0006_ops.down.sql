DROP FUNCTION ops.make_admin(text, text);
DROP FUNCTION ops.peer_deny(text, text);
DROP FUNCTION ops.peer_approve(text, text);
DROP FUNCTION ops.peer_allow(text, text);
DROP FUNCTION ops.audit_write(text, text, text, bigint);
DROP FUNCTION ops.origin_of(text);
DROP VIEW ops.audit, ops.workers, ops.dead_letters, ops.stuck, ops.peers,
    ops.hosts_without_peer, ops.queue, ops.outbox_by_peer;
DROP FUNCTION ops.outbox_count();
DROP FUNCTION ops.peer_state(public.federation_peers);
DROP SCHEMA ops;
