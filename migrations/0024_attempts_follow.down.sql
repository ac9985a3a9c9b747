SET LOCAL lock_timeout = '3s';

LOCK TABLE executions, attempts IN ACCESS EXCLUSIVE MODE;
DROP TRIGGER forget_attempts ON executions;
DROP FUNCTION forget_attempts();
ALTER TABLE attempts ADD CONSTRAINT attempts_execution_id_fkey
    FOREIGN KEY (execution_id) REFERENCES executions (id) ON DELETE CASCADE;
COMMENT ON COLUMN attempts.execution_id IS 'The execution.';
