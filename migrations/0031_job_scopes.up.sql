-- Tokens and accounts that are restricted to jobs.
SET LOCAL lock_timeout = '3s';

-- Before those that every request reads, so that these are not locked while this waits.
LOCK TABLE sexton.jobs, sexton.bulks, sexton.approval_requests, sexton.operator_actions IN SHARE ROW EXCLUSIVE MODE;

ALTER TABLE sexton.tokens ADD COLUMN only_jobs text
    CHECK (only_jobs IS NULL OR only_jobs ~ '^([^*=]+[*]|[^=]+=.+)$' AND length(only_jobs) <= 300 AND role <> 'admin');
COMMENT ON COLUMN sexton.tokens.only_jobs IS 'The jobs that it may change: billing.* by the beginning of the name, team=billing by a label; null: all.';
ALTER TABLE sexton.accounts ADD COLUMN only_jobs text
    CHECK (only_jobs IS NULL OR only_jobs ~ '^([^*=]+[*]|[^=]+=.+)$' AND length(only_jobs) <= 300 AND role <> 'admin');
COMMENT ON COLUMN sexton.accounts.only_jobs IS 'The jobs that it may change: billing.* by the beginning of the name, team=billing by a label; null: all.';

CREATE FUNCTION sexton.is_in_scope(name text, labels jsonb, only_jobs text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce(CASE WHEN strpos(only_jobs, '=') > 0
        THEN labels ->> split_part(only_jobs, '=', 1) = substr(only_jobs, strpos(only_jobs, '=') + 1)
        ELSE starts_with(name, left(only_jobs, -1)) END, false)
$$;
COMMENT ON FUNCTION sexton.is_in_scope(text, jsonb, text) IS 'Whether a job of this name, with these labels, is among only_jobs.';

CREATE FUNCTION sexton.refuse_out_of_scope(what text, only_jobs text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE EXCEPTION 'restricted to the jobs %, and this concerns %', only_jobs, what USING ERRCODE = 'SX040',
        HINT = 'Somebody whose token or account is not restricted can do it.';
END $$;

-- A job is in the scope before and after a change, so that nobody takes a job of others by giving it a label.
CREATE FUNCTION sexton.jobs_stay_in_scope() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    only_jobs text := current_setting('sexton.only_jobs');
    applied sexton.jobs;
BEGIN
    -- A file that has the job unchanged says only that it is still there.
    IF TG_OP = 'UPDATE' THEN
        applied := OLD;
        applied.applied_at := NEW.applied_at;
        IF NEW IS NOT DISTINCT FROM applied THEN
            RETURN NEW;
        END IF;
    END IF;
    IF TG_OP <> 'INSERT' AND NOT sexton.is_in_scope(coalesce(OLD.deleted_name, OLD.name), OLD.labels, only_jobs) THEN
        PERFORM sexton.refuse_out_of_scope('the job ' || coalesce(OLD.deleted_name, OLD.name), only_jobs);
    END IF;
    IF TG_OP = 'DELETE' THEN
        RETURN OLD;
    END IF;
    IF NOT sexton.is_in_scope(coalesce(NEW.deleted_name, NEW.name), NEW.labels, only_jobs) THEN
        PERFORM sexton.refuse_out_of_scope('the job ' || coalesce(NEW.deleted_name, NEW.name), only_jobs);
    END IF;
    RETURN NEW;
END $$;
-- The condition is all that other transactions pay.
CREATE TRIGGER jobs_stay_in_scope BEFORE INSERT OR UPDATE OR DELETE ON sexton.jobs FOR EACH ROW
    WHEN (current_setting('sexton.only_jobs', true) <> '') EXECUTE FUNCTION sexton.jobs_stay_in_scope();

CREATE INDEX jobs_lock_row ON sexton.jobs (lock_row) WHERE lock_row IS NOT NULL;

-- Nor does a job reach others: by a flow, whose members a scheduler makes without a record, or by a lock's row, which the other job's
-- executions wait for. Looked at when all jobs of the transaction are written: a member may be among them.
CREATE FUNCTION sexton.jobs_reach_only_scope() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    only_jobs text := current_setting('sexton.only_jobs');
    other text;
BEGIN
    IF NEW.flow IS NOT NULL AND (TG_OP = 'INSERT' OR OLD.flow IS DISTINCT FROM NEW.flow) THEN
        SELECT m.item ->> 'job' INTO other FROM jsonb_array_elements(NEW.flow) AS m (item)
        WHERE NOT EXISTS (
            SELECT FROM sexton.jobs j WHERE j.name = m.item ->> 'job' AND j.deleted_at IS NULL
              AND sexton.is_in_scope(j.name, j.labels, only_jobs))
        LIMIT 1;
        IF FOUND THEN
            PERFORM sexton.refuse_out_of_scope(format('the job %s, as a member of the flow of %s', other, NEW.name), only_jobs);
        END IF;
    END IF;
    IF NEW.lock_row IS NOT NULL AND (TG_OP = 'INSERT' OR (OLD.lock_row, OLD.lock_at_most_ms, OLD.lock_at_least_ms)
        IS DISTINCT FROM (NEW.lock_row, NEW.lock_at_most_ms, NEW.lock_at_least_ms)) THEN
        SELECT j.name INTO other FROM sexton.jobs j
        WHERE j.lock_row = NEW.lock_row AND j.deleted_at IS NULL AND NOT sexton.is_in_scope(j.name, j.labels, only_jobs)
        LIMIT 1;
        IF FOUND THEN
            PERFORM sexton.refuse_out_of_scope(format('the lock row %s of the job %s', NEW.lock_row, other), only_jobs);
        END IF;
        -- A service elsewhere may have it. Deleted jobs keep theirs.
        IF (TG_OP = 'INSERT' OR OLD.lock_row IS DISTINCT FROM NEW.lock_row)
            AND EXISTS (SELECT FROM sexton.lock_rows r WHERE r.name = NEW.lock_row)
            AND NOT EXISTS (
                SELECT FROM sexton.jobs j WHERE j.lock_row = NEW.lock_row AND j.updated_at < transaction_timestamp()
                  AND sexton.is_in_scope(coalesce(j.deleted_name, j.name), j.labels, only_jobs)) THEN
            PERFORM sexton.refuse_out_of_scope(format('the lock row %s, which something else has', NEW.lock_row), only_jobs);
        END IF;
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER jobs_reach_only_scope AFTER INSERT OR UPDATE OF flow, lock_row, lock_at_most_ms, lock_at_least_ms ON sexton.jobs
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (current_setting('sexton.only_jobs', true) <> '' AND (NEW.flow IS NOT NULL OR NEW.lock_row IS NOT NULL))
    EXECUTE FUNCTION sexton.jobs_reach_only_scope();

-- With which scope a bulk or a request was made: those of the scope may end it, whatever becomes of its jobs. Names are given again.
ALTER TABLE sexton.bulks ADD COLUMN only_jobs text DEFAULT nullif(current_setting('sexton.only_jobs', true), '');
COMMENT ON COLUMN sexton.bulks.only_jobs IS 'The jobs to which the one who made it was restricted; if it waited for approvals, the one who requested it, and otherwise the one whose approval carried it out; null: to none.';
ALTER TABLE sexton.approval_requests ADD COLUMN only_jobs text DEFAULT nullif(current_setting('sexton.only_jobs', true), '');
COMMENT ON COLUMN sexton.approval_requests.only_jobs IS 'The jobs to which the one who requested it was restricted; null: to none.';

-- When a job came into a scope by a label, or left it.
ALTER TABLE sexton.jobs ADD COLUMN labels_changed_at timestamptz;
COMMENT ON COLUMN sexton.jobs.labels_changed_at IS 'When its labels were last changed; null: never since it was created.';
CREATE FUNCTION sexton.labels_have_changed() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    NEW.labels_changed_at := clock_timestamp();
    RETURN NEW;
END $$;
CREATE TRIGGER labels_have_changed BEFORE UPDATE OF labels ON sexton.jobs FOR EACH ROW
    WHEN (OLD.labels IS DISTINCT FROM NEW.labels) EXECUTE FUNCTION sexton.labels_have_changed();

-- A filter in the scope's words selects nothing else. What is selected already is compared, too: ids one by one; and what a filter by a label
-- has selected, only if a job outside has got other labels since, or an hour before, by a transaction that took long. Items can be a million.
CREATE FUNCTION sexton.is_bulk_in_scope(bulk bigint, only_jobs text) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    number bigint := bulk;
    b sexton.bulks;
    others uuid[];
BEGIN
    LOOP
        SELECT * INTO b FROM sexton.bulks x WHERE x.id = number;
        IF NOT FOUND THEN
            RETURN false;
        END IF;
        -- One that takes another back has its items.
        EXIT WHEN NOT b.selector ? 'bulk';
        number := least((b.selector ->> 'bulk')::bigint, number - 1);
    END LOOP;
    IF b.selector ? 'filter' THEN
        IF NOT sexton.is_in_scope(b.selector #>> '{filter,job_prefix}', b.selector #> '{filter,labels}', only_jobs) THEN
            RETURN false;
        END IF;
        others := ARRAY(SELECT j.id FROM sexton.jobs j
            WHERE strpos(only_jobs, '=') > 0 AND j.labels_changed_at >= b.created_at - interval '1 hour'
              AND NOT sexton.is_in_scope(coalesce(j.deleted_name, j.name), j.labels, only_jobs));
    ELSE
        others := ARRAY(SELECT j.id FROM sexton.jobs j
            WHERE NOT sexton.is_in_scope(coalesce(j.deleted_name, j.name), j.labels, only_jobs));
    END IF;
    RETURN others = '{}' OR NOT EXISTS (
        SELECT FROM (
            SELECT DISTINCT e.job_id FROM sexton.bulk_items i JOIN sexton.executions e ON e.id = i.execution_id
            WHERE i.bulk_id = number OFFSET 0) AS of_bulk
        WHERE of_bulk.job_id = ANY (others));
END $$;
COMMENT ON FUNCTION sexton.is_bulk_in_scope(bigint, text) IS 'Whether a bulk, and for one that takes another back also that one, selects only executions of only_jobs.';

-- Every change is recorded in its transaction, so who may not record it has not made it.
CREATE FUNCTION sexton.actions_stay_in_scope() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    only_jobs text := current_setting('sexton.only_jobs');
    job sexton.jobs;
BEGIN
    -- The password and the session of the person who acts; and requests for approval, whose jobs the program compares.
    IF NEW.action IN ('set_account_password', 'log_in', 'request_approval', 'approve_request', 'reject_request', 'fail_request') THEN
        RETURN NEW;
    END IF;
    IF NEW.job_id IS NOT NULL THEN
        SELECT * INTO job FROM sexton.jobs j WHERE j.id = NEW.job_id;
        IF NOT FOUND OR NOT sexton.is_in_scope(coalesce(job.deleted_name, job.name), job.labels, only_jobs) THEN
            PERFORM sexton.refuse_out_of_scope(
                coalesce('the job ' || coalesce(job.deleted_name, job.name), 'a job that is gone'), only_jobs);
        END IF;
        -- The record names one of the jobs that have the row. A deleted one may still run.
        IF NEW.action = 'break_lock' AND EXISTS (
            SELECT FROM sexton.jobs j WHERE j.lock_row = NEW.before ->> 'lock'
              AND NOT sexton.is_in_scope(coalesce(j.deleted_name, j.name), j.labels, only_jobs)
              AND (j.deleted_at IS NULL
                OR EXISTS (SELECT FROM sexton.executions e WHERE e.job_id = j.id AND e.state = 'running'))) THEN
            PERFORM sexton.refuse_out_of_scope(format('the lock row %s of other jobs', NEW.before ->> 'lock'), only_jobs);
        END IF;
        RETURN NEW;
    END IF;
    IF NEW.bulk_id IS NULL THEN
        PERFORM sexton.refuse_out_of_scope('more than jobs', only_jobs);
    -- Those whose scope made it, or whose scope its filter is in, can end it, whatever has become of its jobs.
    ELSIF NEW.action = 'bulk_stop' AND EXISTS (
        SELECT FROM sexton.bulks b WHERE b.id = NEW.bulk_id AND (b.only_jobs = only_jobs OR b.selector ? 'filter'
          AND sexton.is_in_scope(b.selector #>> '{filter,job_prefix}', b.selector #> '{filter,labels}', only_jobs))) THEN
        RETURN NEW;
    ELSIF NOT sexton.is_bulk_in_scope(NEW.bulk_id, only_jobs) THEN
        PERFORM sexton.refuse_out_of_scope(format('bulk %s of other jobs', NEW.bulk_id), only_jobs);
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER actions_stay_in_scope BEFORE INSERT ON sexton.operator_actions FOR EACH ROW
    WHEN (current_setting('sexton.only_jobs', true) <> '') EXECUTE FUNCTION sexton.actions_stay_in_scope();

REVOKE ALL ON FUNCTION sexton.is_in_scope(text, jsonb, text), sexton.refuse_out_of_scope(text, text), sexton.jobs_stay_in_scope(),
    sexton.jobs_reach_only_scope(), sexton.labels_have_changed(), sexton.is_bulk_in_scope(bigint, text), sexton.actions_stay_in_scope() FROM PUBLIC;
