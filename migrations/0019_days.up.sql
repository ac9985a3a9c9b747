SET LOCAL lock_timeout = '3s';

ALTER TABLE sexton.jobs ADD days text CHECK (days IN ('both', 'either'));

COMMENT ON COLUMN sexton.jobs.days IS 'Whether a day must be selected by both day fields of the cron expression, or by either; null: a leading * decides, as in cron.';
