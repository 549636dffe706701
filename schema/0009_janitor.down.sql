REVOKE INSERT ON s2s_requests FROM postrider_janitord;
REVOKE ALL ON peer_rates FROM postrider_janitord;
REVOKE ALL ON FUNCTION ops.peer_state(public.federation_peers), ops.outbox_count()
    FROM postrider_janitord;
REVOKE ALL ON SCHEMA ops FROM postrider_janitord;
DROP FUNCTION ops.watch();
