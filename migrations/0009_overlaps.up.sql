-- Overlap policies under which an execution waits until its job is free, or replaces what is under way.

SET LOCAL lock_timeout = '3s';

-- Not valid: what is there was checked by the narrower one, so no row is read under the table's lock.
ALTER TABLE jobs
    DROP CONSTRAINT jobs_overlap_check,
    ADD CONSTRAINT jobs_overlap_check CHECK (overlap IN ('allow', 'skip', 'queue', 'replace')) NOT VALID;
COMMENT ON COLUMN jobs.overlap IS 'What a firing does while an earlier execution is under way: allow, skip, queue or replace.';

-- Nullable: no row is written.
ALTER TABLE executions
    ADD COLUMN waits       text,
    ADD COLUMN admitted_at timestamptz,
    ADD COLUMN replaced_by uuid;
ALTER TABLE executions
    ADD CONSTRAINT executions_waits CHECK (waits IN ('queue', 'replace', 'turn')) NOT VALID,
    ADD CONSTRAINT executions_admitted CHECK (admitted_at IS NULL OR waits IS NOT NULL) NOT VALID,
    -- The fence against a program of the version before, which knows of no replacement: it cannot record
    -- a success either, so what its task did in the transaction of that record is rolled back.
    ADD CONSTRAINT executions_replaced
        CHECK (replaced_by IS NULL OR state IN ('running', 'cancelled')) NOT VALID;

COMMENT ON COLUMN executions.waits IS 'Why its ticket was held back until the job was free: queue, replace, or turn (asked for by a person); null: it was not.';
COMMENT ON COLUMN executions.admitted_at IS 'When the job was free for it; null: it waits still, or never waited.';
COMMENT ON COLUMN executions.replaced_by IS 'The execution of a newer firing that took its place; without a foreign key, which may be gone before.';
COMMENT ON COLUMN executions.relay_after IS 'Not before this does the relay publish an owed ticket; far away while the execution waits for its job.';
COMMENT ON COLUMN executions.outcome IS 'How the last attempt ended, or replaced.';
COMMENT ON COLUMN attempts.outcome IS 'succeeded, error, permanent, timeout, signal, out_of_memory, lost, cancelled, replaced, interrupted or snoozed.';

-- No index of their own: whoever waits owes its ticket, so executions_owed finds all of them.
