-- no-transaction
DROP INDEX CONCURRENTLY IF EXISTS executions_ended;
