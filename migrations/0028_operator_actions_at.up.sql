-- no-transaction
-- Retention of the audit, and questions for a time in it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS operator_actions_at ON operator_actions (at);
