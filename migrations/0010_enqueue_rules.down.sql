DROP FUNCTION sexton.refuse_job(text), sexton.violations_of_all(jsonb[], jsonb),
    sexton.schemas_in_use(text, text, timestamptz), sexton.notifies(),
    sexton.params_violations(jsonb, jsonb, text, jsonb, integer), sexton.params_problem(jsonb), sexton.item_problems(jsonb),
    sexton.enqueue_problems(text, text, text, timestamptz, timestamptz, boolean, jsonb), sexton.caller(),
    sexton.idempotency_key(text, text, text), sexton.enqueued_key(text, text, timestamptz, uuid),
    sexton.period_seconds(text), sexton.uuid_at(bigint);
