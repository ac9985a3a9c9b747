COMMENT ON COLUMN attempts.outcome IS 'succeeded, error, permanent, timeout, signal, lost, cancelled or interrupted.';
ALTER TABLE executions
    DROP CONSTRAINT executions_snoozes,
    DROP COLUMN snoozes_used;
