-- list_executions
-- Of one job: in the order of executions_of_job. Of all: in that of the primary key. A walk along the
-- other one would pass through the whole table for a job that rarely runs.
SELECT e.id, e.job_id, coalesce(j.deleted_name, j.name) AS "job_name!", e.execution_key, e.own_key, e.scheduled_for, e.state,
       e.attempt, e.rev, e.task_type, e.pool, e.target, e.params, e.idempotency_key,
       e.claimed_by, e.claimed_at, e.ticket_published_at, e.relay_after, e.next_attempt_at,
       e.reconcile_count, e.retries_used, e.timeouts_used, e.crashes_used, e.snoozes_used,
       e.max_crashes,
       e.started_at, e.finished_at, e.worker_id, e.lease_until, e.cancel_requested, e.outcome,
       e.error_class, e.error_message, e.fingerprint, e.result, e.skip_reason, e.tz_version, e.backfill, e.overlap_override,
       e.waits, e.admitted_at, e.replaced_by,
       (SELECT a.progress FROM sexton.attempts a WHERE e.state = 'running' AND a.execution_id = e.id
           AND a.number = e.attempt) AS progress,
       (SELECT CASE WHEN count(*) > 0 OR e.started_at IS NULL THEN count(*) END
        FROM sexton.attempts a WHERE a.execution_id = e.id) AS attempts_made
FROM sexton.executions e JOIN sexton.jobs j ON j.id = e.job_id
WHERE ($1::uuid IS NULL OR e.job_id = $1)
  AND (cardinality($2::text[]) = 0 OR e.state = ANY ($2))
  AND ($3::timestamptz IS NULL OR e.scheduled_for >= $3)
  AND ($4::timestamptz IS NULL OR e.scheduled_for < $4)
  AND ($5::jsonb IS NULL OR NOT EXISTS (
        SELECT 1 FROM jsonb_array_elements($5) m
        WHERE e.params #>> ARRAY(SELECT jsonb_array_elements_text(m -> 'path'))
              IS DISTINCT FROM m ->> 'value'))
  AND ($6::text IS NULL OR EXISTS (
        SELECT 1 FROM sexton.attempts a LEFT JOIN sexton.instances i ON i.id = a.worker_id
        WHERE a.execution_id = e.id AND (i.name = $6 OR a.worker_id::text = lower($6))))
  AND ($7::uuid IS NULL OR $1 IS NOT NULL OR e.id < $7)
  AND ($7 IS NULL OR $1 IS NULL OR (e.claimed_at, e.id)
        < (coalesce((SELECT b.claimed_at FROM sexton.executions b WHERE b.id = $7), $8::timestamptz), $7))
ORDER BY CASE WHEN $1 IS NOT NULL THEN e.claimed_at END DESC, e.id DESC
LIMIT least($9::bigint, 1000)
