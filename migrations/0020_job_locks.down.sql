SET LOCAL lock_timeout = '3s';

-- Refused while a lock is in use: a job would run beside others that it excludes, and services would lose a table that they write.
DO $$
BEGIN
    LOCK TABLE sexton.jobs, sexton.lock_rows IN ACCESS EXCLUSIVE MODE;
    IF EXISTS (SELECT FROM sexton.jobs j WHERE (j.lock_row IS NOT NULL OR j.on_locked <> 'skip') AND j.deleted_at IS NULL)
        OR EXISTS (SELECT FROM sexton.lock_rows r WHERE r.lock_until > timezone('utc', clock_timestamp())) THEN
        RAISE EXCEPTION 'some jobs have a lock row or on_locked, or a lock row is held' USING
            HINT = 'Apply the jobs without them, and let no service lock rows of sexton.lock_rows.';
    END IF;
END
$$;

DROP TABLE sexton.lock_rows;
ALTER TABLE sexton.jobs
    DROP CONSTRAINT jobs_one_lock,
    DROP CONSTRAINT jobs_lock_row,
    DROP COLUMN on_locked,
    DROP COLUMN lock_at_least_ms,
    DROP COLUMN lock_at_most_ms,
    DROP COLUMN lock_row;
COMMENT ON COLUMN sexton.jobs.lock_key IS 'The job''s advisory lock key, unique among the jobs that are not deleted; null: none.';
