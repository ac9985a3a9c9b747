SET LOCAL lock_timeout = '3s';

COMMENT ON COLUMN executions.lease_until IS 'Until then the open attempt is its worker''s alone; null unless running.';
COMMENT ON COLUMN executions.claimed_by IS '<instance>:<pid> of the process that inserted the row.';
