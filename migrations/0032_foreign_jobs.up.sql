-- Jobs of tasks that other programs publish are counted before another one is made, and there may be a million
-- other jobs. Built in one pass over `jobs`, for which claims wait: less than a second for a million of them.
SET LOCAL lock_timeout = '3s';
CREATE INDEX jobs_foreign ON jobs (name) WHERE starts_with(name, 'foreign.');
COMMENT ON TABLE offers IS 'What workers offer, each as its catalogue said at its start; removed an hour after it said goodbye.';
