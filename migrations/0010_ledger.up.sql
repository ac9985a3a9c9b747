-- The ledger: what a job's schedule was when, who is behind a gap, what was backfilled, up to where rows
-- were removed; jobs that pause themselves after failures, and jobs that were deleted.

-- Rather not at all than holding up everybody behind somebody who reads for long. Run again, it goes on.
SET LOCAL lock_timeout = '3s';

-- Nullable: no row is written.
ALTER TABLE jobs
    ADD COLUMN pause_after_failures integer CHECK (pause_after_failures BETWEEN 1 AND 100),
    ADD COLUMN failures_since       timestamptz,
    ADD COLUMN deleted_at           timestamptz,
    ADD COLUMN deleted_name         text;
-- A deleted job gives its name away by taking one that no job can have. So a program of the version
-- before, which knows nothing of this, does not find it by its old name, does not fire it, and cannot
-- resume it. Not valid: no row of before is deleted, so the table need not be read under its lock.
ALTER TABLE jobs ADD CONSTRAINT jobs_deleted CHECK (
    (deleted_at IS NULL) = (deleted_name IS NULL)
    AND (deleted_at IS NULL OR (status = 'paused' AND next_fire_at IS NULL AND name LIKE '~%'))) NOT VALID;

COMMENT ON COLUMN jobs.pause_after_failures IS 'After so many executions in a row that failed for good the job is paused; null: never.';
COMMENT ON COLUMN jobs.failures_since IS 'Only executions that ended after this count for pause_after_failures: the last resume; null: all.';
COMMENT ON COLUMN jobs.deleted_at IS 'When it was deleted; its rows stay. Null: it lives.';
COMMENT ON COLUMN jobs.deleted_name IS 'The name that it had; jobs.name is ~ and its id then. Null: it lives.';

-- Nullable: no row is written.
ALTER TABLE executions
    ADD COLUMN backfill         bigint,
    ADD COLUMN overlap_override text;
-- Not valid: rows of before keep it, so the table need not be read under its lock.
ALTER TABLE executions ADD CONSTRAINT executions_overlap_override
    CHECK (overlap_override IN ('allow')) NOT VALID;
COMMENT ON COLUMN executions.backfill IS 'operator_actions.id of the backfill that claimed it; null: claimed otherwise.';
COMMENT ON COLUMN executions.overlap_override IS 'allow: it neither waits for others of its job nor counts as under way for them; null: the job''s policy.';

ALTER TABLE gaps
    ADD COLUMN actor    text,
    ADD COLUMN why      text,
    ADD COLUMN into_key text;
COMMENT ON COLUMN gaps.actor IS 'Who paused, changed or deleted the job, where that is the reason; null: nobody, or of a version before.';
COMMENT ON COLUMN gaps.why IS 'What he said; null: nothing.';
COMMENT ON COLUMN gaps.into_key IS 'Where coalesced: the execution key of the firing that ran for these; null: not known yet when they were recorded.';

CREATE TABLE job_revisions (
    job_id     uuid NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    revision   integer NOT NULL,
    valid_from timestamptz NOT NULL,
    definition jsonb NOT NULL,
    PRIMARY KEY (job_id, revision)
);
COMMENT ON TABLE job_revisions IS 'What a job''s schedule and policies were when: one row for each revision, valid until the next one''s beginning.';
COMMENT ON COLUMN job_revisions.job_id IS 'The job.';
COMMENT ON COLUMN job_revisions.revision IS 'jobs.revision.';
COMMENT ON COLUMN job_revisions.valid_from IS 'Its firings are those after this instant; by the database''s clock.';
COMMENT ON COLUMN job_revisions.definition IS 'Schedule and policies, by the names of the columns of jobs.';

CREATE TABLE retention (
    one           boolean PRIMARY KEY DEFAULT true CHECK (one),
    pruned_before timestamptz
);
COMMENT ON TABLE retention IS 'One row: what retention has done. Whoever removes executions locks it first, whoever backfills shares it.';
COMMENT ON COLUMN retention.one IS 'There is one row.';
COMMENT ON COLUMN retention.pruned_before IS 'Executions that finished before this may have been removed, and their keys are forgotten; null: none ever.';
-- What versions before have removed is not known: as if it had been everything.
INSERT INTO retention (pruned_before) SELECT CASE WHEN EXISTS (SELECT FROM jobs) THEN now() END;

-- Written by a trigger rather than by whoever applies: jobs that a version before applies beside this
-- one are remembered as well. A claim moves only the cursor, so it never comes here.
CREATE FUNCTION remember_job_revision() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO job_revisions (job_id, revision, valid_from, definition)
    VALUES (NEW.id, NEW.revision, NEW.updated_at, to_jsonb(NEW) - ARRAY[
        'id', 'name', 'description', 'target', 'params', 'labels', 'status', 'paused_by', 'paused_why',
        'paused_at', 'next_fire_at', 'planned_until', 'tz_version', 'revision', 'created_at',
        'updated_at', 'failures_since', 'deleted_at', 'deleted_name', 'next_nominal_at', 'runs_used'])
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER remember_new_job AFTER INSERT ON jobs
    FOR EACH ROW EXECUTE FUNCTION remember_job_revision();
CREATE TRIGGER remember_changed_job AFTER UPDATE OF revision ON jobs
    FOR EACH ROW WHEN (OLD.revision IS DISTINCT FROM NEW.revision)
    EXECUTE FUNCTION remember_job_revision();

-- The jobs that are there: as they are, since they were applied last.
INSERT INTO job_revisions (job_id, revision, valid_from, definition)
SELECT j.id, j.revision,
       CASE WHEN j.revision = 1 THEN j.created_at
            ELSE coalesce((SELECT max(o.at) FROM operator_actions o
                           WHERE o.job_id = j.id AND o.action = 'apply'), j.updated_at) END,
       to_jsonb(j) - ARRAY[
        'id', 'name', 'description', 'target', 'params', 'labels', 'status', 'paused_by', 'paused_why',
        'paused_at', 'next_fire_at', 'planned_until', 'tz_version', 'revision', 'created_at',
        'updated_at', 'failures_since', 'deleted_at', 'deleted_name', 'next_nominal_at', 'runs_used']
FROM jobs j;
