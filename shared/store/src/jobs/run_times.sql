-- run_times
-- Along executions_of_job and the attempts' primary key: the last $2 executions of each job and their
-- attempts, however long the history is. Attempts that somebody or something cut short say nothing of
-- how long the task takes.
SELECT j.id AS "job_id!", r.runs AS "runs!", r.p95_ms
FROM unnest($1::uuid[]) AS j (id)
CROSS JOIN LATERAL (
    SELECT count(*) AS runs,
        percentile_disc(0.95) WITHIN GROUP (
            ORDER BY (extract(epoch FROM a.finished_at - a.opened_at) * 1000)::bigint) AS p95_ms
    FROM (SELECT id FROM sexton.executions WHERE job_id = j.id ORDER BY claimed_at DESC LIMIT $2) e
    JOIN sexton.attempts a ON a.execution_id = e.id
    WHERE a.outcome IN ('succeeded', 'error', 'permanent', 'timeout')) r
