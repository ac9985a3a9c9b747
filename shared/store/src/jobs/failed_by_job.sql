-- failed_by_job
-- A range of one job, ordered by the job, too: only failures_by_job has that order. Where most failures are of one job, the planner would
-- otherwise walk failures_by_time, for each of the other jobs through all of them.
SELECT j.id AS "job_id!", c.failed AS "failed!"
FROM unnest($1::uuid[]) AS j (id)
CROSS JOIN LATERAL (
    SELECT count(*) AS failed
    FROM (SELECT FROM sexton.failures WHERE NOT discarded AND job_id >= j.id AND job_id <= j.id
          ORDER BY job_id, failed_at LIMIT $2) f) c
WHERE c.failed > 0
