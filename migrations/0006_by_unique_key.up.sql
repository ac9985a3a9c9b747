-- no-transaction
CREATE INDEX CONCURRENTLY IF NOT EXISTS executions_by_unique_key ON sexton.executions (job_id, unique_key, claimed_at) WHERE unique_key IS NOT NULL
