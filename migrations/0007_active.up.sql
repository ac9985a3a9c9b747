-- no-transaction
CREATE INDEX CONCURRENTLY IF NOT EXISTS executions_active ON sexton.executions (job_id, scheduled_for) WHERE state IN ('pending', 'running', 'retrying')
