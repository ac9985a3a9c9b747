-- no-transaction
DROP INDEX CONCURRENTLY IF EXISTS sexton.executions_unique_key
