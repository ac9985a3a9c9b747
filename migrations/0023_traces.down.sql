SET LOCAL lock_timeout = '3s';

DROP TRIGGER executions_continue_trace ON sexton.executions;
ALTER TABLE sexton.executions DROP COLUMN tracestate, DROP COLUMN traceparent;
DROP FUNCTION sexton.continue_trace();
