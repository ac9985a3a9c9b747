DROP FUNCTION sexton.functions_version(), sexton.demand(text), sexton.execution(text, text), sexton.execution(uuid),
    sexton.cancel(text, text, text), sexton.job_of(text), sexton.execution_of(uuid, text);
