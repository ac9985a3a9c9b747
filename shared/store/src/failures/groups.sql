-- list_failure_groups
-- Aggregated counts and unaggregated changes together; a few rows for each group, however many executions it has.
WITH aggregated AS (
    SELECT fingerprint, sum(standing) AS standing, count(*) FILTER (WHERE standing > 0) AS jobs
    FROM sexton.failure_counts
    WHERE ($1::uuid IS NULL OR job_id = $1) AND ($3::text IS NULL OR fingerprint = $3)
    GROUP BY fingerprint),
changed AS (
    SELECT fingerprint, job_id, sum(change) AS change FROM sexton.failure_changes
    WHERE ($1 IS NULL OR job_id = $1) AND ($3 IS NULL OR fingerprint = $3)
    GROUP BY fingerprint, job_id),
-- A change decides whether a job counts only together with the aggregated count.
unaggregated AS (
    SELECT c.fingerprint, sum(c.change) AS standing,
           sum((coalesce(f.standing, 0) + c.change > 0)::int - (coalesce(f.standing, 0) > 0)::int) AS jobs
    FROM changed c LEFT JOIN sexton.failure_counts f ON f.fingerprint = c.fingerprint AND f.job_id = c.job_id
    GROUP BY c.fingerprint),
sums AS (
    SELECT fingerprint, sum(standing)::bigint AS standing, sum(jobs)::bigint AS jobs
    FROM (SELECT * FROM aggregated UNION ALL SELECT * FROM unaggregated) n GROUP BY fingerprint),
news AS (
    SELECT fingerprint, min(failed_at) AS first_seen, max(failed_at) AS last_seen,
           (array_agg(execution_id ORDER BY change DESC, id DESC))[1] AS example
    FROM sexton.failure_changes WHERE $3 IS NULL OR fingerprint = $3 GROUP BY fingerprint),
groups AS (
    SELECT fingerprint, coalesce(g.state, 'open') AS decision, g.error_class, g.pattern, g.note,
           g.decided_by, g.decided_at, coalesce(s.standing, 0) AS standing, coalesce(s.jobs, 0) AS jobs,
           least(g.first_seen, n.first_seen) AS first_seen, greatest(g.last_seen, n.last_seen) AS last_seen,
           coalesce(n.example, g.example) AS example
    FROM (SELECT * FROM sexton.failure_groups WHERE $3 IS NULL OR fingerprint = $3) g
    FULL JOIN news n USING (fingerprint)
    FULL JOIN sums s USING (fingerprint)),
page AS (
    SELECT * FROM groups
    WHERE (standing > 0 OR ($4::bool AND $1 IS NULL))
      -- As sexton_model::failures::Decision::stands has it.
      AND ($2::text IS NULL OR $2 = CASE WHEN decision = 'resolved' AND last_seen > decided_at
                                         THEN 'reopened' ELSE decision END)
      -- Behind the last group of the page before, in the order below; an instant that is not known is the earliest.
      AND ($9::text IS NULL OR (
            -CASE $5::text WHEN 'count' THEN standing ELSE 0 END,
            -extract(epoch FROM coalesce(CASE $5 WHEN 'first' THEN first_seen ELSE last_seen END, '0001-01-01')),
            fingerprint)
          > (-CASE $5 WHEN 'count' THEN $7::bigint ELSE 0 END,
             -extract(epoch FROM coalesce($8::timestamptz, '0001-01-01')), $9))
    ORDER BY CASE $5::text WHEN 'count' THEN standing END DESC NULLS LAST,
             CASE $5 WHEN 'first' THEN first_seen ELSE last_seen END DESC NULLS LAST, fingerprint
    LIMIT least($6::bigint, 1001))
SELECT p.fingerprint AS "fingerprint!", p.decision AS "decision!", p.pattern, p.note, p.decided_by,
       p.decided_at, p.standing AS "standing!", p.jobs AS "jobs!", p.first_seen, p.last_seen, p.example,
       coalesce(p.error_class, e.error_class) AS error_class,
       coalesce(a.error_message, e.error_message) AS message
FROM page p
-- Of a group that is so new that it has no pattern yet.
LEFT JOIN sexton.executions e ON p.pattern IS NULL AND e.id = p.example AND e.fingerprint = p.fingerprint
LEFT JOIN sexton.attempts a ON a.execution_id = e.id AND a.number = e.attempt - 1
ORDER BY CASE $5 WHEN 'count' THEN p.standing END DESC NULLS LAST,
         CASE $5 WHEN 'first' THEN p.first_seen ELSE p.last_seen END DESC NULLS LAST, p.fingerprint
