-- The mutation log: what a node tells that asks what it has missed (sync).

-- Append-only, in the transaction of the change. mutated_at is when that was;
-- when a row may be read it says nothing about, since rows commit late.
ALTER TABLE federation_mutation_log
    ADD COLUMN hosts text[] NOT NULL DEFAULT '{}',
    ADD COLUMN except_host text,
    ADD COLUMN homeward boolean NOT NULL DEFAULT false,
    ADD COLUMN xact xid8 NOT NULL DEFAULT pg_current_xact_id();
COMMENT ON TABLE federation_mutation_log IS 'Every change that is told to other nodes, for sync; 90 days.';
COMMENT ON COLUMN federation_mutation_log.payload IS
    'The event''s members after "timestamp"; NULL: a message, told in its current state.';
COMMENT ON COLUMN federation_mutation_log.hosts IS 'Who took part when it happened.';
COMMENT ON COLUMN federation_mutation_log.except_host IS 'Where it came from: it has it under its own id.';
COMMENT ON COLUMN federation_mutation_log.homeward IS 'For these hosts only, the home of its author.';
DROP INDEX federation_mutation_log_in_order;
