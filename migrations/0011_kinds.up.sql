-- The terms of a schedule: between which instants it holds, on which days it does not, by how much its
-- firings are spread, and how many of them run.

-- Rather not at all than holding up everybody behind somebody who reads for long. Run again, it goes on.
SET LOCAL lock_timeout = '3s';

-- Nullable, or with a constant default: no row is written. The index jobs_due stays as it is: what is
-- due is still asked of next_fire_at, which is later than the nominal time of a firing that is spread.
ALTER TABLE jobs
    ADD COLUMN start_at        text,
    ADD COLUMN end_at          text,
    ADD COLUMN exclude         text[] NOT NULL DEFAULT '{}',
    ADD COLUMN jitter_ms       bigint CHECK (jitter_ms > 0),
    ADD COLUMN max_runs        integer CHECK (max_runs > 0),
    ADD COLUMN runs_used       integer NOT NULL DEFAULT 0 CHECK (runs_used >= 0),
    ADD COLUMN next_nominal_at timestamptz;

COMMENT ON COLUMN jobs.schedule_expression IS 'The cron text, the period as a duration (15m, with a phase 15m+5m), or the instant in RFC 3339 (without an offset: of the job''s zone); null for none.';
COMMENT ON COLUMN jobs.timezone IS 'IANA name of the zone whose clocks the schedule, start_at, end_at and exclude are about.';
COMMENT ON COLUMN jobs.start_at IS 'RFC 3339, without an offset of the job''s zone: there is no firing before it; null: always was.';
COMMENT ON COLUMN jobs.end_at IS 'RFC 3339, without an offset of the job''s zone: there is no firing after it; null: always will be.';
COMMENT ON COLUMN jobs.exclude IS 'Days of the job''s zone, 2026-12-25 or 2026-12-24..2026-12-26, whose firings are not executed.';
COMMENT ON COLUMN jobs.jitter_ms IS 'Milliseconds; a firing becomes due later than its nominal time by less than this; null: at it.';
COMMENT ON COLUMN jobs.max_runs IS 'The most firings that are claimed to run; null: any number.';
COMMENT ON COLUMN jobs.runs_used IS 'Firings claimed to run since max_runs was given; 0 without it.';
COMMENT ON COLUMN jobs.next_nominal_at IS 'Nominal time of the firing that is due at next_fire_at, where that is later; null: the same.';
COMMENT ON COLUMN jobs.next_fire_at IS 'When the next firing that is not claimed yet becomes due; null: never again by itself.';
COMMENT ON COLUMN jobs.planned_until IS 'The nominal time of the next firing is the first after this instant; of one firing alone: since when it was due at the earliest; null: of a version before.';

-- A single firing at a local time moves with the data of the zones as well.
DROP INDEX jobs_zone_data;
CREATE INDEX jobs_zone_data ON jobs ((coalesce(tz_version, '') COLLATE "C"), id)
    WHERE schedule_kind IN ('cron', 'once') AND timezone <> 'UTC' AND next_fire_at IS NOT NULL
          AND planned_until IS NOT NULL;
