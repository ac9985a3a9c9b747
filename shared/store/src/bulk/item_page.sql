-- page_of_bulk_items
-- In any state, in one that has ended, or in an open one. No index has the states that have ended: these are looked for among the next
-- $3 items. The inner LIMIT makes PostgreSQL walk along the primary key, and OFFSET 0 makes it look each row up by its id.
SELECT i.ordinal AS "ordinal!", i.execution_id AS "execution_id!", i.seen AS "seen!", i.state AS "state!", i.note AS "note?",
       a.at AS "acted_at?", e.job_name AS "job_name?", e.state AS "execution_state?", e.attempt AS "execution_attempt?"
FROM (
    (SELECT ordinal, execution_id, seen, state, note FROM sexton.bulk_items
     WHERE bulk_id = $1 AND ordinal > $2 AND $4::text IS NULL
     ORDER BY ordinal LIMIT $5)
    UNION ALL
    (SELECT ordinal, execution_id, seen, state, note FROM (
        SELECT ordinal, execution_id, seen, state, note FROM sexton.bulk_items
        WHERE bulk_id = $1 AND ordinal > $2
        ORDER BY ordinal LIMIT $3) AS walked
     WHERE $4 NOT IN ('unasked', 'waiting') AND state = $4
     ORDER BY ordinal LIMIT $5)
    UNION ALL
    (SELECT ordinal, execution_id, seen, state, note FROM sexton.bulk_items
     WHERE bulk_id = $1 AND ordinal > $2 AND $4 IN ('unasked', 'waiting') AND state = $4 AND state IN ('unasked', 'waiting')
     ORDER BY ordinal LIMIT $5)) AS i
LEFT JOIN LATERAL (
    SELECT coalesce(j.deleted_name, j.name) AS job_name, e.state, e.attempt
    FROM sexton.executions e JOIN sexton.jobs j ON j.id = e.job_id
    WHERE e.id = i.execution_id OFFSET 0) e ON true
LEFT JOIN LATERAL (
    SELECT min(of_execution.at) AS at FROM (
        SELECT o.at FROM sexton.operator_actions o
        WHERE o.execution_id = i.execution_id AND o.bulk_id = $1 OFFSET 0) AS of_execution) a ON true
ORDER BY i.ordinal
