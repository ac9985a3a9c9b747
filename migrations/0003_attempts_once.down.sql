SET LOCAL lock_timeout = '3s';

-- The version before looks for the row of an attempt that runs.
LOCK TABLE sexton.executions IN ACCESS EXCLUSIVE MODE;
INSERT INTO sexton.attempts (execution_id, number, worker_id, lease_ms, opened_at)
SELECT execution_id, number, worker_id, lease_ms, opened_at FROM sexton.all_attempts WHERE outcome IS NULL
ON CONFLICT DO NOTHING;

DROP VIEW sexton.all_attempts;
DROP TRIGGER record_attempt ON sexton.executions;
DROP FUNCTION sexton.record_attempt();
ALTER TABLE sexton.executions DROP COLUMN lease_ms;

COMMENT ON COLUMN sexton.executions.started_at IS 'When the last attempt was opened.';
COMMENT ON TABLE sexton.attempts IS 'One row for each attempt; its primary key is why an attempt is opened at most once.';
COMMENT ON COLUMN sexton.attempts.lease_ms IS 'Milliseconds for which one renewal of the attempt lasts, as its worker opened it; null: not known.';
