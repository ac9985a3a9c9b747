SET LOCAL lock_timeout = '3s';

-- The place in a trace from which an execution came. A program gives it with `SET LOCAL sexton.traceparent`, a scheduler
-- that traces writes that of the firing. Added without a default first, so that no row is written again.
ALTER TABLE sexton.executions ADD COLUMN traceparent text, ADD COLUMN tracestate text;
ALTER TABLE sexton.executions
    -- What is not a traceparent is left out: a trace must not make an enqueue fail.
    ALTER COLUMN traceparent SET DEFAULT CASE
        WHEN current_setting('sexton.traceparent', true) ~ '^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$'
        THEN current_setting('sexton.traceparent', true) END,
    ALTER COLUMN tracestate SET DEFAULT CASE
        WHEN current_setting('sexton.traceparent', true) ~ '^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$'
         AND current_setting('sexton.tracestate', true) COLLATE "C" ~ '^[ -~]+$'
         AND length(current_setting('sexton.tracestate', true)) <= 512
        THEN current_setting('sexton.tracestate', true) END;

COMMENT ON COLUMN sexton.executions.traceparent IS 'The span from which it came, as W3C Trace Context writes it; null: none is known.';
COMMENT ON COLUMN sexton.executions.tracestate IS 'What the systems of that trace say in its tracestate; null: nothing.';

-- The members that a scheduler makes for a job's flow continue the trace of the firing that began it.
CREATE FUNCTION sexton.continue_trace() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    SELECT e.traceparent, e.tracestate INTO NEW.traceparent, NEW.tracestate
    FROM sexton.executions e WHERE e.id = NEW.flow_id;
    RETURN NEW;
END $$;
CREATE TRIGGER executions_continue_trace BEFORE INSERT ON sexton.executions
    FOR EACH ROW WHEN (NEW.flow_id IS NOT NULL AND NEW.flow_id <> NEW.id AND NEW.traceparent IS NULL)
    EXECUTE FUNCTION sexton.continue_trace();
REVOKE ALL ON FUNCTION sexton.continue_trace() FROM PUBLIC;
