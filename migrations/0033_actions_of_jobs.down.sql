-- no-transaction
DROP INDEX CONCURRENTLY IF EXISTS sexton.operator_actions_of_job
