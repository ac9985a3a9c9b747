SET LOCAL lock_timeout = '3s';

ALTER TABLE attempts DROP COLUMN lease_ms;
COMMENT ON COLUMN executions.lease_until IS 'Until then the open attempt is its worker''s alone; null unless running.';
