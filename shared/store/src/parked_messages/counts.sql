-- failed_counts
-- From the failure index: some rows for each group and job, however many executions are failed. A trigger keeps it in the
-- transaction that fails an execution or ends its failure, so it counts what executions would.
SELECT (SELECT coalesce(sum(standing), 0)::bigint FROM sexton.failure_counts)
       + (SELECT coalesce(sum(change), 0)::bigint FROM sexton.failure_changes)
       -- Not in a group yet.
       + (SELECT count(*) FROM sexton.failures WHERE fingerprint IS NULL AND NOT discarded) AS "failed!",
       (SELECT count(*) FROM sexton.executions WHERE state = 'failed' AND ticket_published_at IS NULL) AS "unpublished!"
