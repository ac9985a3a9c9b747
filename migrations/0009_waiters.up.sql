-- no-transaction
CREATE INDEX CONCURRENTLY IF NOT EXISTS executions_waiters ON sexton.executions (scheduled_for, job_id) WHERE ticket_published_at IS NULL AND state = 'pending' AND waits IS NOT NULL AND admitted_at IS NULL
