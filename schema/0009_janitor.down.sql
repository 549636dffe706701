REVOKE INSERT ON s2s_requests FROM postrider_janitord;
REVOKE ALL ON peer_rates FROM postrider_janitord;
REVOKE ALL ON FUNCTION ops.peer_state(public.federation_peers), ops.outbox_count()
    FROM postrider_janitord;
REVOKE ALL ON ops.queue FROM postrider_janitord;
REVOKE ALL ON SCHEMA ops FROM postrider_janitord;
DROP FUNCTION ops.watch();
ALTER TABLE federation_peers DROP COLUMN probes, DROP COLUMN last_probe_at;
