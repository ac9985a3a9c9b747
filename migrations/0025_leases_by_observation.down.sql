SET LOCAL lock_timeout = '3s';

ALTER TABLE attempts DROP COLUMN lease_ms;
