SET LOCAL lock_timeout = '3s';

-- Refused while a job has days: without the column it could fire on other days.
DO $$
BEGIN
    LOCK TABLE sexton.jobs IN ACCESS EXCLUSIVE MODE;
    IF EXISTS (SELECT FROM sexton.jobs j WHERE j.days IS NOT NULL AND j.deleted_at IS NULL) THEN
        RAISE EXCEPTION 'some jobs have days' USING
            HINT = 'Apply them without days first; two day fields are then combined as in cron.';
    END IF;
END
$$;

ALTER TABLE sexton.jobs DROP days;
