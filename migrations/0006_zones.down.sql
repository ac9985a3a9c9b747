DROP INDEX jobs_zone_data;
ALTER TABLE instances DROP COLUMN tz_version;
ALTER TABLE executions DROP COLUMN tz_version;
ALTER TABLE jobs
    DROP COLUMN timezone,
    DROP COLUMN dst,
    DROP COLUMN planned_until,
    DROP COLUMN tz_version;
