-- no-transaction
-- Unpublished tickets by destination, those that are due first: the relay. executions_owed stays for the relays of
-- the version before, and for the status, which counts all of them.
CREATE INDEX CONCURRENTLY IF NOT EXISTS executions_unpublished
    ON executions (pool, state, relay_after, scheduled_for, id)
    WHERE ticket_published_at IS NULL AND state IN ('pending', 'retrying', 'failed');
