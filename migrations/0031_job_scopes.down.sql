SET LOCAL lock_timeout = '3s';

-- Refused while somebody is restricted, who could change every job then.
DO $$
BEGIN
    LOCK TABLE sexton.tokens, sexton.accounts IN ACCESS EXCLUSIVE MODE;
    IF EXISTS (SELECT FROM sexton.tokens t WHERE t.only_jobs IS NOT NULL AND t.revoked_at IS NULL)
        OR EXISTS (SELECT FROM sexton.accounts a WHERE a.only_jobs IS NOT NULL AND a.disabled_at IS NULL) THEN
        RAISE EXCEPTION 'some tokens or accounts are restricted to jobs, and could change all jobs after this' USING
            HINT = 'Revoke these tokens and disable these accounts first: sexton tokens list, sexton accounts list.';
    END IF;
END
$$;
DROP TRIGGER actions_stay_in_scope ON sexton.operator_actions;
DROP FUNCTION sexton.actions_stay_in_scope();
DROP FUNCTION sexton.is_bulk_in_scope(bigint, text);
DROP TRIGGER labels_have_changed ON sexton.jobs;
DROP FUNCTION sexton.labels_have_changed();
ALTER TABLE sexton.jobs DROP COLUMN labels_changed_at;
ALTER TABLE sexton.approval_requests DROP COLUMN only_jobs;
ALTER TABLE sexton.bulks DROP COLUMN only_jobs;
DROP TRIGGER jobs_reach_only_scope ON sexton.jobs;
DROP FUNCTION sexton.jobs_reach_only_scope();
DROP INDEX sexton.jobs_lock_row;
DROP TRIGGER jobs_stay_in_scope ON sexton.jobs;
DROP FUNCTION sexton.jobs_stay_in_scope();
DROP FUNCTION sexton.refuse_out_of_scope(text, text);
DROP FUNCTION sexton.is_in_scope(text, jsonb, text);
ALTER TABLE sexton.accounts DROP COLUMN only_jobs;
ALTER TABLE sexton.tokens DROP COLUMN only_jobs;
