-- How long an attempt's lease is stands with the attempt, so that whoever watches it can measure by a clock of
-- their own how long it was not renewed, and need not compare instants of the database's clock.
SET LOCAL lock_timeout = '3s';

ALTER TABLE attempts ADD COLUMN lease_ms bigint;
COMMENT ON COLUMN attempts.lease_ms IS 'Milliseconds for which one renewal of the attempt lasts, as its worker opened it; null: opened by a worker of a version that did not say.';
