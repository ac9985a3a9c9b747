-- last_executions
-- Ordered as executions_of_job is. By id alone, the planner would walk the primary key backwards,
-- through the whole table for a job that never ran.
SELECT j.id AS "job_id!", e.id, e.state, e.scheduled_for, e.started_at, e.finished_at
FROM unnest($1::uuid[]) AS j (id)
CROSS JOIN LATERAL (
    SELECT id, state, scheduled_for, started_at, finished_at FROM sexton.executions
    WHERE job_id = j.id ORDER BY claimed_at DESC, id DESC LIMIT 1) e
