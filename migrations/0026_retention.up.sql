-- Retention: how far it is, when it last came to its end, and the audit, which goes after a time of its own.

-- Rather not at all than holding up everybody behind somebody who reads for long. Run again, it goes on.
SET LOCAL lock_timeout = '3s';

-- Nullable: no row is written.
ALTER TABLE jobs ADD COLUMN applied_at timestamptz;
COMMENT ON COLUMN jobs.applied_at IS 'Of a one-shot job that is over: when a file that was applied had it last, to within a day; null: not since updated_at.';

-- One row, so nothing is written anew.
ALTER TABLE retention
    ADD COLUMN stripped_at       timestamptz,
    ADD COLUMN stripped_id       uuid,
    ADD COLUMN audit_removed_to  bigint NOT NULL DEFAULT 0,
    ADD COLUMN passed_at         timestamptz,
    ADD COLUMN passed_days       integer,
    ADD COLUMN passed_audit_days integer;
COMMENT ON COLUMN retention.stripped_at IS 'Executions with a caller''s own key that finished before this are stripped; null: none are.';
COMMENT ON COLUMN retention.stripped_id IS 'Of those that finished at stripped_at, the ones up to this id are.';
COMMENT ON COLUMN retention.audit_removed_to IS 'The largest operator_actions.id that was removed; 0: none ever.';
COMMENT ON COLUMN retention.passed_at IS 'The 3:00 UTC whose pass came to its end last; null: none yet.';
COMMENT ON COLUMN retention.passed_days IS 'RETENTION_DAYS of that pass.';
COMMENT ON COLUMN retention.passed_audit_days IS 'AUDIT_DAYS of that pass, in days; 2147483647: for ever.';

-- As in 0010, but for applied_at, which is no part of a schedule.
CREATE OR REPLACE FUNCTION remember_job_revision() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO job_revisions (job_id, revision, valid_from, definition)
    VALUES (NEW.id, NEW.revision, NEW.updated_at, to_jsonb(NEW) - ARRAY[
        'id', 'name', 'description', 'target', 'params', 'labels', 'status', 'paused_by', 'paused_why',
        'paused_at', 'next_fire_at', 'planned_until', 'tz_version', 'revision', 'created_at',
        'updated_at', 'failures_since', 'deleted_at', 'deleted_name', 'next_nominal_at', 'runs_used',
        'applied_at'])
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;

COMMENT ON TABLE operator_actions IS 'Append-only: who did what, when, why. Without foreign keys: it outlives what it tells of. Retention alone removes from it, by forget_operator_actions.';

-- Nobody changes what was recorded, and nobody removes it but the function below, for as long as it runs. Who
-- lacks the right to delete is refused before this is asked.
CREATE OR REPLACE FUNCTION operator_actions_are_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND current_setting('sexton.forgets', true) = 'on' THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION 'operator_actions is append-only';
END $$;

-- Runs with the rights of its owner, so that the programs need none to delete; and so it removes nothing that is
-- younger than 30 days, whatever it is asked for. Names are qualified, and it looks for none anywhere else: its
-- caller cannot put tables of his own in their place. By EXECUTE, since the schema's name is not known here.
DO $do$
BEGIN
    EXECUTE format($create$
        CREATE FUNCTION %1$I.forget_operator_actions(
            older_than timestamptz, behind timestamptz, most integer,
            OUT removed bigint, OUT last_at timestamptz, OUT last_id bigint)
        LANGUAGE plpgsql SECURITY DEFINER
        SET search_path = pg_catalog, pg_temp
        AS $function$
        BEGIN
            -- Not by a SET of the function, for which the owner would need a right of its own.
            PERFORM set_config('sexton.forgets', 'on', true);
            WITH gone AS (
                DELETE FROM %1$I.operator_actions WHERE id IN (
                    SELECT o.id FROM %1$I.operator_actions o
                    WHERE o.at < least(older_than, clock_timestamp() - interval '30 days')
                      AND o.at >= coalesce(behind, '-infinity')
                    ORDER BY o.at LIMIT most)
                RETURNING id, at)
            SELECT count(*), max(gone.at), max(gone.id) INTO removed, last_at, last_id FROM gone;
            PERFORM set_config('sexton.forgets', 'off', true);
        END $function$
    $create$, current_schema());
    EXECUTE format('REVOKE ALL ON FUNCTION %I.forget_operator_actions(timestamptz, timestamptz, integer) FROM PUBLIC',
                   current_schema());
    EXECUTE format($comment$
        COMMENT ON FUNCTION %I.forget_operator_actions(timestamptz, timestamptz, integer) IS
        'Retention of the audit: removes what is older than older_than and than 30 days, the oldest from behind on, at most most of it.'
    $comment$, current_schema());
END $do$;
