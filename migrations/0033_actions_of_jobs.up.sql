-- no-transaction
-- For the page of a job: what people did to it is not looked for among what was done to its executions, and what was enqueued.
CREATE INDEX CONCURRENTLY IF NOT EXISTS operator_actions_of_job ON sexton.operator_actions (job_id, id) WHERE job_id IS NOT NULL AND execution_id IS NULL AND action <> 'enqueue'
