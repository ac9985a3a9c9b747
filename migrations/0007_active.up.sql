-- no-transaction
-- The second column tells executions that wait for their turn, or for their time, from those that are under way.
CREATE INDEX CONCURRENTLY IF NOT EXISTS executions_active ON sexton.executions (job_id, (CASE WHEN state = 'pending' AND waits = 'turn' AND admitted_at IS NULL THEN 1 ELSE 0 END)) WHERE state IN ('pending', 'running', 'retrying')
