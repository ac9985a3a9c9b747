-- aggregate_failure_changes
WITH taken AS (
    DELETE FROM sexton.failure_changes WHERE id = ANY (ARRAY(
        SELECT id FROM sexton.failure_changes ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED))
    RETURNING *),
counted AS (
    INSERT INTO sexton.failure_counts AS c (fingerprint, job_id, standing)
    SELECT fingerprint, job_id, sum(change) FROM taken GROUP BY 1, 2 ORDER BY 1, 2
    ON CONFLICT (fingerprint, job_id) DO UPDATE SET standing = c.standing + EXCLUDED.standing),
hours AS (
    INSERT INTO sexton.failure_hours AS h (fingerprint, hour, failed)
    SELECT fingerprint, date_trunc('hour', failed_at, 'UTC'), count(*) FROM taken
    WHERE failed_at > coalesce($2, now()) - $3 * interval '1 day' GROUP BY 1, 2 ORDER BY 1, 2
    ON CONFLICT (fingerprint, hour) DO UPDATE SET failed = h.failed + EXCLUDED.failed),
groups AS (
    INSERT INTO sexton.failure_groups AS g (fingerprint, example, first_seen, last_seen)
    SELECT fingerprint, (array_agg(execution_id ORDER BY change DESC, id DESC))[1],
           min(failed_at), max(failed_at)
    FROM taken GROUP BY 1 ORDER BY 1
    ON CONFLICT (fingerprint) DO UPDATE SET example = EXCLUDED.example,
        first_seen = least(g.first_seen, EXCLUDED.first_seen),
        last_seen = greatest(g.last_seen, EXCLUDED.last_seen)
    -- Of the row as it is now that it is locked: a decision came before, or waits.
    RETURNING fingerprint, CASE WHEN state = 'resolved' THEN decided_at END AS resolved_at)
SELECT t.fingerprint AS "fingerprint!", count(*) AS "changes!",
       count(*) FILTER (WHERE t.failed_at > g.resolved_at) AS "again!",
       bool_or(t.change < 0) AS "has_ended!"
FROM taken t JOIN groups g ON g.fingerprint = t.fingerprint GROUP BY t.fingerprint ORDER BY t.fingerprint
