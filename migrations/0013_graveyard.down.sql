SET LOCAL lock_timeout = '3s';

DROP TRIGGER forget_fingerprint ON executions;
DROP TRIGGER keep_new_failure ON executions;
DROP TRIGGER keep_changed_failure ON executions;
DROP TRIGGER keep_removed_failure ON executions;
ALTER TABLE executions DROP COLUMN fingerprint;
DROP TABLE failures, failure_changes, failure_counts, failure_hours, failure_groups, failures_fill;
DROP FUNCTION keep_failure();
DROP FUNCTION count_failure();
DROP FUNCTION forget_fingerprint();
