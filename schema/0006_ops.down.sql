DROP VIEW ops.audit, ops.dead_letters, ops.stuck, ops.peers,
    ops.hosts_without_peer, ops.outbox_sample, ops.outbox_by_peer;
DROP FUNCTION ops.sample_percent();
DROP FUNCTION ops.outbox_count();
DROP FUNCTION ops.peer_state(public.federation_peers);
DROP SCHEMA ops;
