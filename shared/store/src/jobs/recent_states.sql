-- recent_states
-- Ordered as executions_of_job is: by id, too, all those that were claimed at one instant would be read and sorted.
SELECT j.id AS "job_id!", r.states AS "states!"
FROM unnest($1::uuid[]) AS j (id)
CROSS JOIN LATERAL (
    SELECT array_agg(e.state ORDER BY e.claimed_at, e.id) AS states
    FROM (SELECT id, state, claimed_at FROM sexton.executions
          WHERE job_id = j.id ORDER BY claimed_at DESC LIMIT $2) e) r
WHERE r.states IS NOT NULL
