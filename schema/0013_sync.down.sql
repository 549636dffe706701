DROP FUNCTION ops.repair(), ops.repair_home_instances(), ops.repair_owner(),
    ops.repair_federated_ids(), ops.repair_duplicate_channels(), ops.repair_mutation_log(),
    ops.merge_pair(bigint, bigint), ops.home_id_of(bigint), ops.repair_audit(text, bigint);
DROP TYPE ops.repair_line;
ALTER TABLE peer_rates DROP COLUMN syncs;
DROP TRIGGER users_sync_gone ON users;
DROP TRIGGER dm_channels_sync_gone ON dm_channels;
DROP TRIGGER users_sync_open ON users;
DROP FUNCTION sync_person_gone(), sync_conversation_gone(), sync_open(), hosts_declared(jsonb),
    host_of(text), sync_publish(integer, interval),
    sync_natives(text, text, text), sync_settled(interval), sync_drawn(), sync_writers();
DROP TABLE federation_sync_state, federation_sync_entries;
DROP INDEX federation_mutation_log_by_context;
DELETE FROM federation_mutation_log WHERE mutation_type = 'open';
ALTER TABLE federation_mutation_log
    DROP COLUMN hosts, DROP COLUMN except_host, DROP COLUMN homeward;
CREATE INDEX federation_mutation_log_in_order ON federation_mutation_log (context_type, mutated_at, id);
CREATE INDEX federation_mutation_log_by_age ON federation_mutation_log (mutated_at);
COMMENT ON TABLE federation_mutation_log IS NULL;
COMMENT ON COLUMN federation_mutation_log.payload IS NULL;
