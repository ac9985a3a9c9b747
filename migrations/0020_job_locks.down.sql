DROP TABLE sexton.lock_rows;
ALTER TABLE sexton.jobs
    DROP CONSTRAINT jobs_one_lock,
    DROP CONSTRAINT jobs_lock_row,
    DROP COLUMN on_locked,
    DROP COLUMN lock_at_least_ms,
    DROP COLUMN lock_at_most_ms,
    DROP COLUMN lock_row;
COMMENT ON COLUMN sexton.jobs.lock_key IS 'A number by which other systems know the job.';
