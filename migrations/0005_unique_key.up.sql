-- no-transaction
CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS executions_unique_key ON sexton.executions (job_id, unique_key) WHERE unique_key IS NOT NULL AND state IN ('pending', 'running', 'retrying', 'failed')
