-- no-transaction
DROP INDEX CONCURRENTLY IF EXISTS operator_actions_at;
