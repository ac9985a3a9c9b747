-- changes
-- The decisions by operator_actions_decisions, whose condition this has: nearly all actions may enqueue something.
WITH actions AS MATERIALIZED (
    SELECT md5(coalesce(string_agg(id::text, ','), '')) AS digest
    FROM (SELECT id FROM sexton.operator_actions ORDER BY id DESC LIMIT 50) newest
),
decisions AS MATERIALIZED (
    SELECT md5(coalesce(string_agg(id::text, ','), '')) AS digest
    FROM (SELECT id FROM sexton.operator_actions WHERE (action = 'enqueue') IS NOT TRUE ORDER BY id DESC LIMIT 50) newest
)
SELECT actions.digest AS "actions!",
       decisions.digest AS "decisions!",
       decisions.digest || (
           SELECT md5(coalesce(string_agg(execution_id::text || failed_at::text || coalesce(fingerprint, ''), ','), ''))
           FROM (SELECT execution_id, failed_at, fingerprint FROM sexton.failures WHERE NOT discarded
                 ORDER BY failed_at DESC, execution_id DESC LIMIT 50) newest) AS "failures!",
       (SELECT md5(coalesce(string_agg(id::text || state || rev, ','), ''))
        FROM (SELECT id, state, rev FROM sexton.executions ORDER BY id DESC LIMIT 50) newest) AS "executions!",
       (SELECT md5(coalesce(string_agg(id::text || changed_at::text, ','), ''))
        FROM (SELECT id, changed_at FROM sexton.incidents ORDER BY opened_at DESC, id DESC LIMIT 50) newest)
       || (SELECT md5(coalesce(string_agg(id::text || changed_at::text, ','), ''))
           FROM (SELECT id, changed_at FROM sexton.incidents WHERE state <> 'resolved'
                 ORDER BY subject_kind, subject LIMIT 500) unresolved) AS "incidents!",
       (SELECT md5(coalesce(string_agg(newest::text, ','), ''))
        FROM (SELECT * FROM sexton.bulks ORDER BY id DESC LIMIT 20) newest)
       || (SELECT md5(coalesce(string_agg(active::text, ','), ''))
           FROM (SELECT * FROM sexton.bulks WHERE state IN ('preparing', 'running')
                 ORDER BY id LIMIT 100) active) AS "bulks!"
FROM actions, decisions
