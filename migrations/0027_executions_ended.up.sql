-- no-transaction
-- Retention: what has ended, and nothing else, by when it did. What a caller's own key keeps for longer stands apart, so
-- that it lies before nothing that can go. A row enters it once, at its end.
CREATE INDEX CONCURRENTLY IF NOT EXISTS executions_ended ON executions (own_key, finished_at, id)
    WHERE state IN ('succeeded', 'cancelled', 'skipped', 'discarded');
