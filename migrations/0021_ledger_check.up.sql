-- Schedulers check that each firing of the ledger has a record.
SET LOCAL lock_timeout = '3s';

CREATE TABLE sexton.ledger_checks (
    job_id        uuid PRIMARY KEY REFERENCES sexton.jobs (id) ON DELETE CASCADE,
    checked_until timestamptz NOT NULL,
    checked_at    timestamptz NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX ledger_checks_at ON sexton.ledger_checks (checked_at);
COMMENT ON TABLE sexton.ledger_checks IS 'How far schedulers have checked the firings of each job with a schedule. A trigger adds and removes rows.';
COMMENT ON COLUMN sexton.ledger_checks.job_id IS 'The job.';
COMMENT ON COLUMN sexton.ledger_checks.checked_until IS 'Every firing up to this nominal time was checked.';
COMMENT ON COLUMN sexton.ledger_checks.checked_at IS 'When the job was last checked, or made, by the database''s clock.';

-- A row for each job with a schedule, so that the job that was not checked for longest is found by the index. Claims change
-- neither column. With the owner's rights, so that those who change jobs need none on the table.
CREATE FUNCTION sexton.follow_job_with_ledger_check() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NEW.schedule_kind = 'none' OR NEW.deleted_at IS NOT NULL THEN
        DELETE FROM sexton.ledger_checks WHERE job_id = NEW.id;
    ELSE
        INSERT INTO sexton.ledger_checks (job_id, checked_until, checked_at)
        VALUES (NEW.id, NEW.updated_at, NEW.updated_at) ON CONFLICT DO NOTHING;
    END IF;
    RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION sexton.follow_job_with_ledger_check() FROM PUBLIC;
CREATE TRIGGER check_ledger_of_job AFTER INSERT OR UPDATE OF schedule_kind, deleted_at ON sexton.jobs
    FOR EACH ROW EXECUTE FUNCTION sexton.follow_job_with_ledger_check();

-- The first check of a job that is there goes back one hour.
INSERT INTO sexton.ledger_checks (job_id, checked_until, checked_at)
SELECT id, greatest(created_at, now() - interval '1 hour'), now() FROM sexton.jobs
WHERE schedule_kind <> 'none' AND deleted_at IS NULL;

CREATE TABLE sexton.unaccounted_firings (
    job_id     uuid NOT NULL REFERENCES sexton.jobs (id) ON DELETE CASCADE,
    nominal_at timestamptz NOT NULL,
    found_at   timestamptz NOT NULL,
    checked_at timestamptz NOT NULL,
    PRIMARY KEY (job_id, nominal_at)
);
CREATE INDEX unaccounted_firings_checked ON sexton.unaccounted_firings (checked_at);
COMMENT ON TABLE sexton.unaccounted_firings IS 'Firings without a record: neither an execution nor a gap. A backfill of such a firing removes its row at the next check.';
COMMENT ON COLUMN sexton.unaccounted_firings.job_id IS 'The job.';
COMMENT ON COLUMN sexton.unaccounted_firings.nominal_at IS 'The firing''s nominal time.';
COMMENT ON COLUMN sexton.unaccounted_firings.found_at IS 'When a check first found it; the row is removed 30 days later.';
COMMENT ON COLUMN sexton.unaccounted_firings.checked_at IS 'When it was last looked for.';
