-- read_running
SELECT e.id, e.attempt, e.open_token AS "token!", e.lease_until AS "lease_until!",
       e.xmin::text::bigint AS "written_by!", pg_postmaster_start_time() AS "server!",
       coalesce(e.lease_ms, a.lease_ms, least(3600000, greatest(20000, (
           extract(epoch FROM e.lease_until - e.started_at) * 1000)::bigint))) AS "lease_ms!",
       coalesce(e.lease_ms, a.lease_ms) IS NULL AND e.lease_until >= coalesce($3, now()) AS "alive!"
FROM sexton.executions e
-- Of those that a worker of an older version has opened: by the key, never all attempts there ever were.
LEFT JOIN LATERAL (
    SELECT t.lease_ms FROM sexton.attempts t
    WHERE e.lease_ms IS NULL AND t.execution_id = e.id AND t.number = e.attempt OFFSET 0) a ON true
WHERE e.state = 'running' AND e.id > $1
ORDER BY e.id LIMIT $2
