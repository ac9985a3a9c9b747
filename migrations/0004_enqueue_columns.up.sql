SET LOCAL lock_timeout = '3s';

-- What an enqueued execution has more than a triggered one.
ALTER TABLE sexton.executions
    ADD COLUMN unique_key text,
    ADD COLUMN labels jsonb,
    -- Without a look at the rows that are there: they have neither.
    ADD CONSTRAINT executions_labels CHECK (jsonb_typeof(labels) = 'object') NOT VALID,
    ADD CONSTRAINT executions_unique_key CHECK (length(unique_key) BETWEEN 1 AND 256) NOT VALID;

COMMENT ON COLUMN sexton.executions.unique_key IS 'A caller''s own key of which only one execution at a time may be under way or failed; null: none.';
COMMENT ON COLUMN sexton.executions.labels IS 'The caller''s own words about this execution, text to text; null: none.';
COMMENT ON COLUMN sexton.executions.scheduled_for IS 'The nominal time; for a trigger, when it was triggered; for an enqueued execution, when it is to run.';
