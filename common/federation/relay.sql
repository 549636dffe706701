-- One batch of a peer at a time, in commit order; a statement of its own, so
-- that the next one sees what the batch before has left.
-- name: relay_lock :none
SELECT pg_advisory_xact_lock(7236839, hashtext($1));
