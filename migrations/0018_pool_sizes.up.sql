-- How many connections each process may open, for `sexton doctor`, which compares their sum with what the
-- server allows.
SET LOCAL lock_timeout = '3s';

ALTER TABLE instances ADD COLUMN db_connections integer CHECK (db_connections >= 1);

COMMENT ON COLUMN instances.db_connections IS 'Connections to PostgreSQL that the process may hold for its own work, DB_POOL_SIZE; null: of a version that does not say.';
