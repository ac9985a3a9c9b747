-- The zone whose clocks a job's schedule is about, and which data of the zones was used for what.

-- Rather not at all than holding up everybody behind somebody who reads for long. Run again, it goes on.
SET LOCAL lock_timeout = '3s';

-- Nullable, or with a constant default: no row is written. What `timezone` may be is known by the
-- programs, whose data of the zones grows.
ALTER TABLE jobs
    ADD COLUMN timezone      text NOT NULL DEFAULT 'UTC',
    ADD COLUMN dst           text NOT NULL DEFAULT 'vixie' CHECK (dst IN ('vixie', 'skip', 'wall')),
    ADD COLUMN planned_until timestamptz,
    ADD COLUMN tz_version    text;

COMMENT ON COLUMN jobs.timezone IS 'IANA name of the zone whose clocks a cron expression is about.';
COMMENT ON COLUMN jobs.dst IS 'What a change of those clocks means for fixed times of the day: vixie, skip or wall.';
COMMENT ON COLUMN jobs.planned_until IS 'next_fire_at is the first firing after this instant; null: of a version before.';
COMMENT ON COLUMN jobs.tz_version IS 'Release of the time zone data (2025b) by which next_fire_at was computed; null: of a version before.';
-- Which cursors older data computed: asked once an hour, in the order of the index. Nearly always there
-- are none.
CREATE INDEX jobs_zone_data ON jobs ((coalesce(tz_version, '') COLLATE "C"), id)
    WHERE schedule_kind = 'cron' AND timezone <> 'UTC' AND next_fire_at IS NOT NULL
          AND planned_until IS NOT NULL;

ALTER TABLE executions ADD COLUMN tz_version text;
COMMENT ON COLUMN executions.tz_version IS 'Release of the time zone data by which its firing was computed; null: no firing, or of a version before.';

ALTER TABLE instances ADD COLUMN tz_version text;
COMMENT ON COLUMN instances.tz_version IS 'Release of the time zone data in the program; null: a worker, or of a version before.';
