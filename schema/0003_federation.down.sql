DROP TABLE peer_rates, nonces, s2s_requests, federation_mutation_log, federation_file_queue,
    dead_letters, outbox_presented, federation_outbox, federation_allowed_origins, federation_peers;
