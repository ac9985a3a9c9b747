-- look_for_waiters
WITH t AS MATERIALIZED (SELECT coalesce($2, clock_timestamp()) AS now),
w AS MATERIALIZED (
    SELECT DISTINCT job_id FROM sexton.executions
    WHERE ticket_published_at IS NULL AND state = 'pending' AND waits IS NOT NULL
      AND admitted_at IS NULL AND scheduled_for <= (SELECT now FROM t) + interval '5 milliseconds'),
f AS (
    SELECT w.job_id FROM w JOIN sexton.jobs j ON j.id = w.job_id
    WHERE j.overlap = 'allow' OR NOT EXISTS (
        SELECT FROM sexton.executions e
        WHERE e.job_id = w.job_id AND e.state IN ('pending', 'running', 'retrying')
          AND e.overlap_override IS NULL
          AND e.scheduled_for <= (SELECT now FROM t) + interval '5 milliseconds'
          AND NOT (e.state = 'pending' AND e.waits IS NOT NULL AND e.admitted_at IS NULL))
    LIMIT $1)
SELECT (SELECT count(*) FROM w) AS "jobs!",
       coalesce((SELECT array_agg(job_id) FROM f), '{}') AS "free!",
       -- One that was enqueued for later waits from then on.
       (SELECT extract(epoch FROM min(scheduled_for) - (SELECT now FROM t))::float8 FROM sexton.executions
        WHERE ticket_published_at IS NULL AND state = 'pending' AND waits IS NOT NULL AND admitted_at IS NULL
          AND scheduled_for > (SELECT now FROM t) + interval '5 milliseconds') AS next_seconds
