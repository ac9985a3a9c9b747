-- no-transaction
-- For open pages: what people decided is not looked for among all that programs enqueue over the API.
CREATE INDEX CONCURRENTLY IF NOT EXISTS operator_actions_decisions ON sexton.operator_actions (id) WHERE action <> 'enqueue'
