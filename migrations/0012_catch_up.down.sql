-- What is set aside is given up, and on record: versions before know nothing of it.
INSERT INTO gaps (job_id, first_firing, last_firing, count, reason, recorded_at)
SELECT job_id, first_firing, last_firing, count, 'held', now() FROM held_firings;
DROP TABLE held_firings;
DROP TABLE holds;
DROP TABLE planner_clock;
ALTER TABLE jobs DROP COLUMN misfire_rate;
