SET LOCAL lock_timeout = '3s';

ALTER TABLE instances DROP COLUMN db_connections;
