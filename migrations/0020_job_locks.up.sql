SET LOCAL lock_timeout = '3s';

ALTER TABLE sexton.jobs
    ADD COLUMN lock_row text CHECK (octet_length(lock_row) BETWEEN 1 AND 64),
    ADD COLUMN lock_at_most_ms bigint CHECK (lock_at_most_ms > 0),
    ADD COLUMN lock_at_least_ms bigint CHECK (lock_at_least_ms BETWEEN 0 AND lock_at_most_ms),
    ADD COLUMN on_locked text NOT NULL DEFAULT 'skip' CHECK (on_locked IN ('skip', 'wait')),
    ADD CONSTRAINT jobs_lock_row CHECK (
        (lock_row IS NULL) = (lock_at_most_ms IS NULL) AND (lock_row IS NULL) = (lock_at_least_ms IS NULL)),
    ADD CONSTRAINT jobs_one_lock CHECK (lock_key IS NULL OR lock_row IS NULL);
COMMENT ON COLUMN sexton.jobs.lock_key IS 'The advisory lock that a worker holds while a task of the job runs.';
COMMENT ON COLUMN sexton.jobs.lock_row IS 'The row of lock_rows that a worker holds while a task of the job runs.';
COMMENT ON COLUMN sexton.jobs.lock_at_most_ms IS 'Milliseconds for which the row stays locked after each extension.';
COMMENT ON COLUMN sexton.jobs.lock_at_least_ms IS 'Milliseconds for which the row stays locked after the task began.';
COMMENT ON COLUMN sexton.jobs.on_locked IS 'What becomes of an execution whose lock is held elsewhere: skip or wait.';

-- The columns are those of ShedLock's table, so that services with that library lock the same rows. Nobody deletes a row:
-- such a library remembers that it is there, and only updates it from then on.
CREATE TABLE sexton.lock_rows (
    name       varchar(64) PRIMARY KEY,
    lock_until timestamp NOT NULL,
    locked_at  timestamp NOT NULL,
    locked_by  varchar(255) NOT NULL
);
COMMENT ON TABLE sexton.lock_rows IS 'Locks that are rows, with the columns of ShedLock''s table.';
COMMENT ON COLUMN sexton.lock_rows.name IS 'What the lock protects.';
COMMENT ON COLUMN sexton.lock_rows.lock_until IS 'Until when it is locked, in UTC; past: it is free.';
COMMENT ON COLUMN sexton.lock_rows.locked_at IS 'Since when, in UTC.';
COMMENT ON COLUMN sexton.lock_rows.locked_by IS 'The process that holds or last held it.';
