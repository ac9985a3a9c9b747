-- no-transaction
DROP INDEX CONCURRENTLY IF EXISTS sexton.executions_under_way
