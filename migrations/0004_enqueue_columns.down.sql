SET LOCAL lock_timeout = '3s';

-- For a platform at rest: what callers' open keys and labels said is lost.
ALTER TABLE sexton.executions DROP COLUMN unique_key, DROP COLUMN labels;
COMMENT ON COLUMN sexton.executions.scheduled_for IS 'The nominal time; for a trigger, when it was triggered.';
