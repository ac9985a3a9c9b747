-- take_unpublished
WITH d AS MATERIALIZED (
    SELECT * FROM unnest($2::text[], $3::text[], $4::bigint[]) AS d (pool, state, quota)),
l AS MATERIALIZED (
    SELECT t.id FROM d, LATERAL (
        SELECT e.id FROM sexton.executions e
        WHERE e.ticket_published_at IS NULL AND e.state IN ('pending', 'retrying', 'failed')
          AND e.pool = d.pool AND e.state = d.state AND e.relay_after <= coalesce($1, now())
        ORDER BY e.relay_after, e.scheduled_for, e.id LIMIT d.quota
        FOR NO KEY UPDATE SKIP LOCKED) t),
u AS (
    -- One that was enqueued for later is admitted here, unless its job runs one at a time by now: then a planner does it.
    -- By an array, so that the rows are found by their ids, however many of them PostgreSQL expects.
    UPDATE sexton.executions e SET
        relay_after = CASE WHEN e.state = 'pending' AND e.waits IS NOT NULL AND e.admitted_at IS NULL
                                AND j.overlap IN ('queue', 'replace') THEN '9999-01-01 00:00:00+00'
                           ELSE coalesce($1, now()) + interval '30 seconds' END,
        admitted_at = CASE WHEN e.state = 'pending' AND e.waits IS NOT NULL AND j.overlap NOT IN ('queue', 'replace')
                           THEN coalesce(e.admitted_at, $1, now()) ELSE e.admitted_at END
    FROM sexton.jobs j WHERE e.id = ANY (ARRAY(SELECT l.id FROM l)) AND j.id = e.job_id
    RETURNING e.id, e.job_id, coalesce(j.deleted_name, j.name) AS job_name, e.attempt, e.rev, e.state,
              e.pool, e.task_type, e.target, e.params, e.execution_key, e.idempotency_key, e.scheduled_for,
              e.next_attempt_at, e.finished_at, e.error_message, e.retries_used,
              e.traceparent, e.tracestate,
              e.relay_after = '9999-01-01 00:00:00+00' AS waits)
SELECT u.id AS "id!", u.job_id AS "job_id!", u.job_name AS "job_name!", u.attempt AS "attempt!", u.rev AS "rev!",
       u.state AS "state!", u.pool AS "pool!", u.task_type AS "task_type!", u.target, u.params AS "params!",
       u.execution_key AS "execution_key!", u.idempotency_key AS "idempotency_key!",
       u.scheduled_for AS "scheduled_for!", u.next_attempt_at, u.finished_at, u.error_message,
       u.retries_used AS "retries_used!", u.traceparent, u.tracestate, coalesce($1, now()) AS "now!"
FROM u WHERE NOT u.waits
