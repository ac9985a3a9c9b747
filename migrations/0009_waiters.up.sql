-- no-transaction
-- Executions that a planner admits when their job is free, by when they are due.
CREATE INDEX CONCURRENTLY IF NOT EXISTS executions_waiters ON sexton.executions (job_id, next_attempt_at, id) WHERE ticket_published_at IS NULL AND state = 'pending' AND waits IS NOT NULL AND admitted_at IS NULL AND relay_after >= '9999-01-01 00:00:00+00'
