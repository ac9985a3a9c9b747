SET LOCAL lock_timeout = '3s';

ALTER TABLE executions DROP COLUMN asks_about;
ALTER TABLE jobs DROP COLUMN verify_task;
COMMENT ON COLUMN jobs.name IS 'Unique; <service>.<jobName> by convention; foreign.<type> for tasks published by others.';
DROP TABLE bulk_questions;
DROP TABLE offers;
