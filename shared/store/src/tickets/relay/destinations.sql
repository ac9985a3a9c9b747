-- find_destinations
WITH RECURSIVE d AS (
    (SELECT pool, state, 1 AS number FROM sexton.executions
     WHERE ticket_published_at IS NULL AND state IN ('pending', 'retrying', 'failed')
       AND (pool, state) > ($2::text, $3::text)
     ORDER BY pool, state LIMIT 1)
    UNION ALL
    SELECT n.pool, n.state, d.number + 1
    FROM d, LATERAL (
        SELECT pool, state FROM sexton.executions
        WHERE ticket_published_at IS NULL AND state IN ('pending', 'retrying', 'failed')
          AND (pool, state) > (d.pool, d.state)
        ORDER BY pool, state LIMIT 1) n
    WHERE d.number < $4)
-- Lookups with an order and a limit, for which no plan reads more than a row: EXISTS may become a hash of all that is due.
SELECT d.pool AS "pool!", d.state AS "state!", t.now AS "now!",
       coalesce((
           SELECT e.relay_after FROM sexton.executions e
           WHERE e.ticket_published_at IS NULL AND e.state IN ('pending', 'retrying', 'failed')
             AND e.pool = d.pool AND e.state = d.state
           ORDER BY e.pool, e.state, e.relay_after LIMIT 1) <= t.now, false) AS "due!",
       (SELECT extract(epoch FROM e.relay_after - t.now)::float8 FROM sexton.executions e
        WHERE e.ticket_published_at IS NULL AND e.state IN ('pending', 'retrying', 'failed')
          AND e.pool = d.pool AND e.state = d.state AND e.relay_after > t.now
        ORDER BY e.pool, e.state, e.relay_after LIMIT 1) AS next_due_seconds
FROM d, (SELECT coalesce($1, now()) AS now) t
