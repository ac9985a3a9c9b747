-- no-transaction
-- For open pages: what people decided is not looked for among all that programs enqueue over the API. The condition is not written as
-- action <> 'enqueue', because PostgreSQL would then take this index for the actions of one job, too, and read all of those on executions.
CREATE INDEX CONCURRENTLY IF NOT EXISTS operator_actions_decisions ON sexton.operator_actions (id) WHERE (action = 'enqueue') IS NOT TRUE
