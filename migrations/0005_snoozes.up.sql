-- How often an execution was put off by its own task, which costs no budget and must not go on for ever.

SET LOCAL lock_timeout = '3s';

-- With a constant default: no row is written.
ALTER TABLE executions ADD COLUMN snoozes_used integer NOT NULL DEFAULT 0;
-- Not valid: rows of before keep it by the default, so the table need not be read under its lock.
ALTER TABLE executions ADD CONSTRAINT executions_snoozes CHECK (snoozes_used >= 0) NOT VALID;

COMMENT ON COLUMN executions.snoozes_used IS 'Attempts that ended with the wish to be run later, since the claim or the last requeue; counted, and bounded.';
COMMENT ON COLUMN attempts.outcome IS 'succeeded, error, permanent, timeout, signal, out_of_memory, lost, cancelled, interrupted or snoozed.';
