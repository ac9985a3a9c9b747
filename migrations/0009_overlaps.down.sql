-- Waiters run as soon as a relay finds them; the version before knows only one of these policies.
UPDATE executions SET relay_after = now(), next_attempt_at = now()
    WHERE state = 'pending' AND waits IS NOT NULL AND admitted_at IS NULL;
UPDATE jobs SET overlap = 'skip' WHERE overlap IN ('queue', 'replace');
ALTER TABLE executions
    DROP CONSTRAINT executions_waits,
    DROP CONSTRAINT executions_admitted,
    DROP CONSTRAINT executions_replaced,
    DROP COLUMN waits,
    DROP COLUMN admitted_at,
    DROP COLUMN replaced_by;
ALTER TABLE jobs
    DROP CONSTRAINT jobs_overlap_check,
    ADD CONSTRAINT jobs_overlap_check CHECK (overlap IN ('allow', 'skip'));
COMMENT ON COLUMN jobs.overlap IS 'What a firing does while an earlier execution is under way.';
COMMENT ON COLUMN executions.relay_after IS 'Not before this does the relay publish an owed ticket.';
COMMENT ON COLUMN executions.outcome IS 'How the last attempt ended.';
COMMENT ON COLUMN attempts.outcome IS 'succeeded, error, permanent, timeout, signal, out_of_memory, lost, cancelled, interrupted or snoozed.';
