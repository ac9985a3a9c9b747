DROP INDEX jobs_zone_data;
CREATE INDEX jobs_zone_data ON jobs ((coalesce(tz_version, '') COLLATE "C"), id)
    WHERE schedule_kind = 'cron' AND timezone <> 'UTC' AND next_fire_at IS NOT NULL
          AND planned_until IS NOT NULL;

-- A firing that is spread is due at its nominal time again, and keeps its key.
UPDATE jobs SET next_fire_at = next_nominal_at WHERE next_nominal_at IS NOT NULL;

ALTER TABLE jobs
    DROP COLUMN start_at,
    DROP COLUMN end_at,
    DROP COLUMN exclude,
    DROP COLUMN jitter_ms,
    DROP COLUMN max_runs,
    DROP COLUMN runs_used,
    DROP COLUMN next_nominal_at;

COMMENT ON COLUMN jobs.schedule_expression IS 'The cron text, the period as a duration, or the instant in RFC 3339; null for none.';
COMMENT ON COLUMN jobs.timezone IS 'IANA name of the zone whose clocks a cron expression is about.';
COMMENT ON COLUMN jobs.next_fire_at IS 'The next nominal firing that is not claimed yet; null: never again by itself.';
COMMENT ON COLUMN jobs.planned_until IS 'next_fire_at is the first firing after this instant; null: of a version before.';
