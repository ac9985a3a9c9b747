-- actions_of_job
-- By operator_actions_of_job, whose condition this has: nearly all actions of a job may be on its executions, or enqueue some.
-- A range of one job, in the order of that index: after job_id = $1 the order of id alone would do, and PostgreSQL might walk along all
-- decisions of all jobs until it has found enough.
SELECT id, at, actor, action, job_id, execution_id, reason, before, after, from_where,
       host(from_address) AS from_address, bulk_id
FROM sexton.operator_actions WHERE job_id BETWEEN $1 AND $1 AND execution_id IS NULL AND action <> 'enqueue' ORDER BY job_id DESC, id DESC LIMIT $2
