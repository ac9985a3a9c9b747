-- no-transaction
CREATE INDEX CONCURRENTLY IF NOT EXISTS executions_under_way ON sexton.executions (job_id) WHERE state IN ('pending', 'running', 'retrying')
