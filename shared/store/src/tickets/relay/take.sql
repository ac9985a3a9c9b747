-- take_unpublished
WITH d AS MATERIALIZED (
    SELECT * FROM unnest($2::text[], $3::text[], $4::bigint[]) AS d (pool, state, quota)),
l AS MATERIALIZED (
    SELECT t.id FROM d, LATERAL (
        SELECT e.id FROM sexton.executions e
        WHERE e.ticket_published_at IS NULL AND e.state IN ('pending', 'retrying', 'failed')
          AND e.pool = d.pool AND e.state = d.state AND e.relay_after <= coalesce($1, now())
          -- A waiter's ticket is published after its admission only.
          AND NOT (e.state = 'pending' AND e.waits IS NOT NULL AND e.admitted_at IS NULL)
        ORDER BY e.relay_after, e.scheduled_for, e.id LIMIT d.quota
        FOR NO KEY UPDATE SKIP LOCKED) t)
UPDATE sexton.executions e SET relay_after = coalesce($1, now()) + interval '30 seconds'
FROM l, sexton.jobs j WHERE e.id = l.id AND j.id = e.job_id
RETURNING e.id, e.job_id, coalesce(j.deleted_name, j.name) AS "job_name!", e.attempt, e.rev, e.state,
          e.pool, e.task_type, e.target, e.params, e.execution_key, e.idempotency_key, e.scheduled_for,
          e.next_attempt_at, e.finished_at, e.error_message, e.retries_used, coalesce($1, now()) AS "now!"
