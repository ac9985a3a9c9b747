SET LOCAL lock_timeout = '3s';

-- An attempt is written once, when it ends: until then its execution's row says all of it. One that writes output or
-- progress has its row from the first of them on.
ALTER TABLE sexton.executions ADD COLUMN lease_ms bigint;

COMMENT ON COLUMN sexton.executions.lease_ms IS 'Milliseconds for which one renewal of the open attempt lasts, as its worker opened it; null: not running, or opened by a worker of a version that wrote it into attempts.';
COMMENT ON COLUMN sexton.executions.started_at IS 'When the last attempt was opened: attempts.opened_at.';
COMMENT ON TABLE sexton.attempts IS 'One row for each attempt that has ended, or has output or progress. all_attempts has the others that run, too.';
COMMENT ON COLUMN sexton.attempts.lease_ms IS 'Milliseconds for which one renewal of the attempt lasted, as its worker opened it; null: not known.';

CREATE VIEW sexton.all_attempts AS
SELECT execution_id, number, worker_id, lease_ms, opened_at, finished_at, outcome, error_class, error_message,
       exit_code, signal, result, progress, output, late_outcome, late_at
FROM sexton.attempts
UNION ALL
SELECT e.id, e.attempt, e.worker_id, e.lease_ms, coalesce(e.started_at, e.claimed_at), NULL, NULL, NULL, NULL,
       NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM sexton.executions e
WHERE e.state = 'running'
  AND NOT EXISTS (SELECT FROM sexton.attempts a WHERE a.execution_id = e.id AND a.number = e.attempt);

COMMENT ON VIEW sexton.all_attempts IS 'Every attempt: the rows of attempts, and what executions says of those that run.';

-- Programs of the version before end an attempt by an update of its row. Where there is none, this inserts it. What they
-- do not clear, the lease, the next attempt does not inherit. And where they find no row for the list of the last
-- crashes, they leave no message.
CREATE FUNCTION sexton.record_attempt() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    message text := NEW.error_message;
BEGIN
    IF NEW.outcome = 'lost' THEN
        message := 'the worker was not heard of again before the lease ran out';
        NEW.error_message := coalesce(NEW.error_message, message);
    END IF;
    INSERT INTO sexton.attempts (execution_id, number, worker_id, lease_ms, opened_at, finished_at, outcome,
                                 error_class, error_message)
    VALUES (OLD.id, OLD.attempt, OLD.worker_id, OLD.lease_ms, coalesce(OLD.started_at, OLD.claimed_at), now(),
            coalesce(NEW.outcome, 'lost'), NEW.error_class, message)
    ON CONFLICT DO NOTHING;
    NEW.lease_ms := NULL;
    RETURN NEW;
END $$;
CREATE TRIGGER record_attempt BEFORE UPDATE OF state ON sexton.executions
    FOR EACH ROW WHEN (OLD.state = 'running' AND NEW.state <> 'running' AND NEW.lease_ms IS NOT NULL)
    EXECUTE FUNCTION sexton.record_attempt();
