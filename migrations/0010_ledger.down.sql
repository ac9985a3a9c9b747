DROP TRIGGER remember_changed_job ON jobs;
DROP TRIGGER remember_new_job ON jobs;
DROP FUNCTION remember_job_revision();
DROP TABLE job_revisions;
DROP TABLE retention;
ALTER TABLE gaps DROP COLUMN actor, DROP COLUMN why, DROP COLUMN into_key;
ALTER TABLE executions DROP COLUMN backfill, DROP COLUMN overlap_override;
ALTER TABLE jobs
    DROP COLUMN pause_after_failures,
    DROP COLUMN failures_since,
    DROP COLUMN deleted_at,
    DROP COLUMN deleted_name;
