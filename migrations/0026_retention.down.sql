SET LOCAL lock_timeout = '3s';

ALTER TABLE jobs DROP COLUMN applied_at;
ALTER TABLE retention
    DROP COLUMN stripped_at, DROP COLUMN stripped_id, DROP COLUMN audit_removed_to, DROP COLUMN passed_at,
    DROP COLUMN passed_days, DROP COLUMN passed_audit_days;
DROP FUNCTION forget_operator_actions(timestamptz, timestamptz, integer);
CREATE OR REPLACE FUNCTION operator_actions_are_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'operator_actions is append-only';
END $$;
COMMENT ON TABLE operator_actions IS 'Append-only: who did what, when, why. Without foreign keys: it outlives what it tells of.';
CREATE OR REPLACE FUNCTION remember_job_revision() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO job_revisions (job_id, revision, valid_from, definition)
    VALUES (NEW.id, NEW.revision, NEW.updated_at, to_jsonb(NEW) - ARRAY[
        'id', 'name', 'description', 'target', 'params', 'labels', 'status', 'paused_by', 'paused_why',
        'paused_at', 'next_fire_at', 'planned_until', 'tz_version', 'revision', 'created_at',
        'updated_at', 'failures_since', 'deleted_at', 'deleted_name', 'next_nominal_at', 'runs_used'])
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
