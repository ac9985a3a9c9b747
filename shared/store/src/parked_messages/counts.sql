-- failed_counts
-- From the failure index: some rows for each group and job, however many executions are failed. A trigger keeps it in the
-- transaction that fails an execution or ends its failure, so it counts what executions would. Only until what failed
-- before there was an index is read in (CASE evaluates one of its branches) does it read all failed executions.
SELECT CASE
           WHEN EXISTS (SELECT FROM sexton.failures_fill WHERE done_at IS NOT NULL) THEN
               (SELECT coalesce(sum(standing), 0)::bigint FROM sexton.failure_counts)
               + (SELECT coalesce(sum(change), 0)::bigint FROM sexton.failure_changes)
               -- Not in a group yet.
               + (SELECT count(*) FROM sexton.failures WHERE fingerprint IS NULL AND NOT discarded)
           ELSE (SELECT count(*) FROM sexton.executions WHERE state = 'failed')
       END AS "failed!",
       (SELECT count(*) FROM sexton.executions WHERE state = 'failed' AND ticket_published_at IS NULL) AS "unpublished!"
