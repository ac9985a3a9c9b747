-- Schedulers check that each firing of the ledger has a record.
SET LOCAL lock_timeout = '3s';

CREATE TABLE sexton.ledger_checks (
    job_id        uuid PRIMARY KEY REFERENCES sexton.jobs (id) ON DELETE CASCADE,
    checked_until timestamptz NOT NULL,
    checked_at    timestamptz NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX ledger_checks_at ON sexton.ledger_checks (checked_at);
COMMENT ON TABLE sexton.ledger_checks IS 'How far schedulers have checked each job''s firings for records.';
COMMENT ON COLUMN sexton.ledger_checks.job_id IS 'The job.';
COMMENT ON COLUMN sexton.ledger_checks.checked_until IS 'Every firing up to this nominal time was checked.';
COMMENT ON COLUMN sexton.ledger_checks.checked_at IS 'When the job was last checked, by the database''s clock.';

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
