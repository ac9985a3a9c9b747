-- no-transaction
DROP INDEX CONCURRENTLY IF EXISTS executions_unpublished;
