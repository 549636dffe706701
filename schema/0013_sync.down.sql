ALTER TABLE federation_mutation_log
    DROP COLUMN hosts, DROP COLUMN except_host, DROP COLUMN homeward, DROP COLUMN xact;
CREATE INDEX federation_mutation_log_in_order ON federation_mutation_log (context_type, mutated_at, id);
COMMENT ON TABLE federation_mutation_log IS NULL;
COMMENT ON COLUMN federation_mutation_log.payload IS NULL;
