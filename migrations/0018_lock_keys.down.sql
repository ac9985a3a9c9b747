SET LOCAL lock_timeout = '3s';

DROP INDEX sexton.jobs_lock_key;

COMMENT ON COLUMN sexton.jobs.lock_key IS 'A number by which other systems know the job.';

DO $$
BEGIN
    LOCK TABLE sexton.lock_key_ranges IN ACCESS EXCLUSIVE MODE;
    IF EXISTS (SELECT FROM sexton.lock_key_ranges) THEN
        RAISE EXCEPTION 'lock_key_ranges holds the decisions of people; save them (sexton keys list --format csv) and empty it first';
    END IF;
END
$$;

DROP TABLE sexton.lock_key_ranges;
