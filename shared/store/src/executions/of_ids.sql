-- executions_of_ids
SELECT e.id, e.job_id, coalesce(j.deleted_name, j.name) AS "job_name!", e.execution_key, e.own_key, e.scheduled_for, e.state,
       e.attempt, e.rev, e.task_type, e.pool, e.target, e.params, e.idempotency_key,
       e.claimed_by, e.claimed_at, e.ticket_published_at, e.relay_after, e.next_attempt_at,
       e.reconcile_count, e.retries_used, e.timeouts_used, e.crashes_used, e.snoozes_used,
       e.max_crashes,
       e.started_at, e.finished_at, e.worker_id, e.lease_until, e.cancel_requested, e.outcome,
       e.error_class, e.error_message, e.fingerprint, e.result, e.skip_reason, e.tz_version, e.backfill, e.overlap_override,
       e.waits, e.admitted_at, e.replaced_by, e.flow_id, e.traceparent, j.timezone,
       (SELECT a.progress FROM sexton.attempts a WHERE e.state = 'running' AND a.execution_id = e.id
           AND a.number = e.attempt) AS progress,
       (SELECT CASE WHEN e.state = 'running' THEN count(*) FILTER (WHERE a.number <> e.attempt) + 1
                    WHEN count(*) > 0 OR e.started_at IS NULL THEN count(*) END
        FROM sexton.attempts a WHERE a.execution_id = e.id) AS attempts_made
FROM sexton.executions e JOIN sexton.jobs j ON j.id = e.job_id
WHERE e.id = ANY ($1)
