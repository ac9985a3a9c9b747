-- look_for_waiters
WITH RECURSIVE t AS MATERIALIZED (SELECT coalesce($2, clock_timestamp()) AS now),
-- The first waiter of each job, by one lookup for a job.
w AS (
    (SELECT job_id, next_attempt_at FROM sexton.executions
     WHERE ticket_published_at IS NULL AND state = 'pending' AND waits IS NOT NULL AND admitted_at IS NULL
       AND relay_after >= '9999-01-01 00:00:00+00'
     ORDER BY job_id, next_attempt_at LIMIT 1)
    UNION ALL
    SELECT n.job_id, n.next_attempt_at FROM w, LATERAL (
        SELECT job_id, next_attempt_at FROM sexton.executions
        WHERE ticket_published_at IS NULL AND state = 'pending' AND waits IS NOT NULL AND admitted_at IS NULL
          AND relay_after >= '9999-01-01 00:00:00+00' AND job_id > w.job_id
        ORDER BY job_id, next_attempt_at LIMIT 1) n),
d AS MATERIALIZED (
    SELECT w.job_id FROM w, t WHERE w.next_attempt_at <= t.now + interval '5 milliseconds'),
f AS (
    SELECT d.job_id FROM d JOIN sexton.jobs j ON j.id = d.job_id
    -- Looked up for each job: of NOT EXISTS PostgreSQL may make a table of all executions under way.
    WHERE j.overlap = 'allow' OR (
        SELECT 1 FROM sexton.executions e
        WHERE e.job_id = d.job_id AND e.state IN ('pending', 'running', 'retrying')
          AND (CASE WHEN e.state = 'pending' AND e.waits = 'turn' AND e.admitted_at IS NULL THEN 1 ELSE 0 END) = 0
          AND e.overlap_override IS NULL
          AND NOT (e.state = 'pending' AND e.waits IS NOT NULL AND e.admitted_at IS NULL) LIMIT 1) IS NULL
    LIMIT $1)
SELECT (SELECT count(*) FROM d) AS "jobs!",
       coalesce((SELECT array_agg(job_id) FROM f), '{}') AS "free!",
       -- One that was enqueued for later waits from then on.
       (SELECT extract(epoch FROM min(w.next_attempt_at) - min(t.now))::float8 FROM w, t
        WHERE w.next_attempt_at > t.now + interval '5 milliseconds') AS next_seconds
