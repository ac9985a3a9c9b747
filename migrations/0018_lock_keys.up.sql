SET LOCAL lock_timeout = '3s';

-- Before anything else: no duplicate can be written between the look and the index. Planners and applies wait for the build,
-- which reads a million jobs within a second or two.
LOCK TABLE sexton.jobs IN SHARE MODE;

DO $$
DECLARE
    duplicates text;
BEGIN
    SELECT string_agg(format('%s: %s', d.lock_key, d.names), '; ' ORDER BY d.lock_key) INTO duplicates
    FROM (
        SELECT j.lock_key, string_agg(j.name, ', ' ORDER BY j.name) AS names
        FROM sexton.jobs j WHERE j.lock_key IS NOT NULL AND j.deleted_at IS NULL
        GROUP BY j.lock_key HAVING count(*) > 1 ORDER BY j.lock_key LIMIT 50) d;
    IF duplicates IS NOT NULL THEN
        RAISE EXCEPTION 'jobs share a lock_key, which belongs to one job from this version on (%). Change or remove lock_key of all but one in their jobs files, apply them with the version before, and run `sexton migrate` again', left(duplicates, 4000);
    END IF;
END
$$;

-- A deleted job gives its key up.
CREATE UNIQUE INDEX jobs_lock_key ON sexton.jobs (lock_key) WHERE lock_key IS NOT NULL AND deleted_at IS NULL;

COMMENT ON COLUMN sexton.jobs.lock_key IS 'The job''s advisory lock key, unique among the jobs that are not deleted; null: none.';

-- Which service draws the lock keys of its jobs from which numbers. The largest number is 2^53 - 1: programs in JavaScript
-- round larger ones.
CREATE TABLE sexton.lock_key_ranges (
    service     text PRIMARY KEY CHECK (service ~ '^[A-Za-z0-9_-]{1,100}$'),
    first_key   bigint NOT NULL,
    keys        integer NOT NULL DEFAULT 50 CHECK (keys BETWEEN 1 AND 10000),
    assigned_by text NOT NULL,
    assigned_at timestamptz NOT NULL,
    CHECK (first_key BETWEEN -9007199254740991 AND 9007199254740992 - keys),
    -- Deferrable, so that one statement may exchange two ranges.
    CONSTRAINT lock_key_ranges_overlap EXCLUDE USING gist (int8range(first_key, first_key + keys) WITH &&) DEFERRABLE
);

COMMENT ON TABLE sexton.lock_key_ranges IS 'The registry of lock keys: the numbers of each service''s jobs.';
COMMENT ON COLUMN sexton.lock_key_ranges.service IS 'The part of a job''s name before its first dot.';
COMMENT ON COLUMN sexton.lock_key_ranges.first_key IS 'The first key.';
COMMENT ON COLUMN sexton.lock_key_ranges.keys IS 'Number of keys.';
COMMENT ON COLUMN sexton.lock_key_ranges.assigned_by IS 'The operator who assigned or last changed it.';
COMMENT ON COLUMN sexton.lock_key_ranges.assigned_at IS 'When that was.';
