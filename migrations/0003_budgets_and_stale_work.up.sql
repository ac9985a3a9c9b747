-- A budget each for errors, timeouts and crashes, classes of error that no retry helps, and firings
-- that come too late to be run.

-- Rather not at all than holding up everybody behind somebody who reads for long. Run again, it goes on.
SET LOCAL lock_timeout = '3s';

ALTER TABLE jobs
    ADD COLUMN max_timeouts      integer CHECK (max_timeouts BETWEEN 1 AND 1000),
    ADD COLUMN max_crashes       integer CHECK (max_crashes BETWEEN 1 AND 1000),
    ADD COLUMN permanent_classes text[] CHECK (cardinality(permanent_classes) <= 50),
    ADD COLUMN stale_after_ms    bigint CHECK (stale_after_ms > 0);

COMMENT ON COLUMN jobs.max_timeouts IS 'Attempts that may run into their timeout; the so-many-th parks; null: the worker''s default.';
COMMENT ON COLUMN jobs.max_crashes IS 'Attempts that may crash (lost, out of memory); the so-many-th parks; null: the worker''s default.';
COMMENT ON COLUMN jobs.permanent_classes IS 'Classes of error after which no retry is made; null: those of the worker''s catalogue.';
COMMENT ON COLUMN jobs.stale_after_ms IS 'Milliseconds after its nominal time from which a firing that was never begun is skipped; null: never.';

-- Nullable, or with a constant default: no row is written.
ALTER TABLE executions
    ADD COLUMN timeouts_used integer NOT NULL DEFAULT 0,
    ADD COLUMN max_crashes   integer;
-- Not valid: rows of before keep it by the default, so the table need not be read under its lock.
ALTER TABLE executions
    ADD CONSTRAINT executions_budgets CHECK (timeouts_used >= 0 AND max_crashes >= 1) NOT VALID;

COMMENT ON COLUMN executions.timeouts_used IS 'Since the claim or the last requeue.';
COMMENT ON COLUMN executions.max_crashes IS 'The crash budget that held at the last open, for whoever finds the attempt lost; null: never opened.';
