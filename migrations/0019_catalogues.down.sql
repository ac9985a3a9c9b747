SET LOCAL lock_timeout = '3s';

-- Requeues would ask nobody, also when the column is back again.
DO $$ BEGIN
    IF EXISTS (SELECT FROM jobs WHERE verify_task IS NOT NULL) THEN
        RAISE EXCEPTION 'there are jobs with a verify task: take `verify` out of their files and apply them first';
    END IF;
END $$;

ALTER TABLE executions DROP COLUMN asks_about;
ALTER TABLE jobs DROP COLUMN verify_task;
COMMENT ON COLUMN jobs.name IS 'Unique; <service>.<jobName> by convention; foreign.<type> for tasks published by others.';
DROP TABLE bulk_questions;
DROP TABLE offers;
