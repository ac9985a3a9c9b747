-- no-transaction
DROP INDEX CONCURRENTLY IF EXISTS sexton.executions_active
