-- no-transaction
DROP INDEX CONCURRENTLY IF EXISTS sexton.executions_by_unique_key
