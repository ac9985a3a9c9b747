SET LOCAL lock_timeout = '3s';

-- The execution that a caller's key names: the one that has it for ever, or the newest that had it while it was open;
-- of both, one that has not ended.
CREATE FUNCTION sexton.execution_of(job uuid, key text) RETURNS uuid LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp AS $$
    SELECT x.id FROM (
        SELECT e.id, e.state, e.claimed_at FROM sexton.executions e WHERE e.job_id = job AND e.execution_key = key
        UNION ALL
        (SELECT e.id, e.state, e.claimed_at FROM sexton.executions e WHERE e.job_id = job AND e.unique_key = key
         ORDER BY e.claimed_at DESC, e.id DESC LIMIT 1)) x
    ORDER BY x.state IN ('pending', 'running', 'retrying', 'failed') DESC, x.claimed_at DESC LIMIT 1
$$;

-- The job of this name, whether it is paused or not.
CREATE FUNCTION sexton.job_of(name text) RETURNS uuid LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    job_id uuid := (SELECT j.id FROM sexton.jobs j WHERE j.name = job_of.name AND j.deleted_at IS NULL);
BEGIN
    IF job_id IS NULL THEN
        PERFORM sexton.refuse_job(name);
    END IF;
    RETURN job_id;
END $$;

-- Cancels an execution that waits, or requests it of the worker of one that runs. Returns one row always: without an
-- execution of this key, or when it has ended already, nothing is cancelled.
CREATE FUNCTION sexton.cancel(
    job text, INOUT key text, reason text DEFAULT NULL, OUT execution_id uuid, OUT cancelled boolean, OUT state text)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    job_id CONSTANT uuid := sexton.job_of(job);
    called_at CONSTANT timestamptz := clock_timestamp();
    before record;
BEGIN
    IF key IS NULL THEN
        RAISE EXCEPTION 'key is null' USING ERRCODE = 'SX010', HINT = 'Name the execution by its key.';
    END IF;
    IF starts_with(job, 'verify.') OR starts_with(job, 'foreign.') THEN
        PERFORM sexton.refuse_job(job);
    END IF;
    IF octet_length(reason) > 2000 THEN
        RAISE EXCEPTION 'the reason has more than 2,000 bytes' USING ERRCODE = 'SX010', HINT = 'Shorten it.';
    END IF;
    -- Not firings, nor what was triggered without a key: operators cancel those.
    SELECT e.id, e.state, e.attempt, e.cancel_requested INTO before FROM sexton.executions e
    WHERE e.id = sexton.execution_of(job_id, key)
      AND (e.own_key OR e.unique_key IS NOT NULL OR starts_with(e.execution_key, 'enqueued-')) FOR NO KEY UPDATE;
    execution_id := before.id;
    state := before.state;
    cancelled := coalesce(state IN ('pending', 'retrying') OR state = 'running' AND NOT before.cancel_requested, false);
    IF NOT cancelled THEN
        RETURN;
    END IF;
    IF state = 'running' THEN
        UPDATE sexton.executions e SET cancel_requested = true WHERE e.id = before.id;
        IF sexton.notifies() THEN
            PERFORM pg_notify('sexton', 'cancel');
        END IF;
    ELSE
        state := 'cancelled';
        UPDATE sexton.executions e SET state = 'cancelled', rev = e.rev + 1, next_attempt_at = NULL,
            finished_at = called_at, outcome = 'cancelled'
        WHERE e.id = before.id;
    END IF;
    INSERT INTO sexton.operator_actions (at, actor, action, job_id, execution_id, reason, before, after)
    VALUES (called_at, sexton.caller(), 'cancel', job_id, before.id, reason,
            jsonb_build_object('state', before.state, 'attempt', before.attempt),
            CASE WHEN state = 'running' THEN jsonb_build_object('state', 'running', 'cancel_requested', true)
                 ELSE jsonb_build_object('state', 'cancelled') END);
END $$;

-- What has become of an execution. Returns one row always: of nulls, if there is no such execution (any more).
CREATE FUNCTION sexton.execution(
    INOUT execution_id uuid, OUT job text, OUT key text, OUT state text, OUT attempt integer,
    OUT scheduled_for timestamptz, OUT started_at timestamptz, OUT finished_at timestamptz, OUT outcome text,
    OUT result jsonb, OUT error_class text, OUT error_message text)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
    SELECT e.id, coalesce(j.deleted_name, j.name), coalesce(e.unique_key, e.execution_key), e.state, e.attempt,
           e.scheduled_for, e.started_at, e.finished_at, e.outcome, e.result, e.error_class, e.error_message
    FROM (SELECT execution_id AS id) wanted
    LEFT JOIN sexton.executions e ON e.id = wanted.id
    LEFT JOIN sexton.jobs j ON j.id = e.job_id
$$;

CREATE FUNCTION sexton.execution(
    INOUT job text, INOUT key text, OUT execution_id uuid, OUT state text, OUT attempt integer,
    OUT scheduled_for timestamptz, OUT started_at timestamptz, OUT finished_at timestamptz, OUT outcome text,
    OUT result jsonb, OUT error_class text, OUT error_message text)
LANGUAGE sql VOLATILE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
    SELECT execution.job, execution.key, e.execution_id, e.state, e.attempt, e.scheduled_for, e.started_at, e.finished_at, e.outcome,
           e.result, e.error_class, e.error_message
    FROM sexton.execution(sexton.execution_of(sexton.job_of(job), key)) e
$$;

-- How much work a pool has, for a program that decides how many workers it needs: due executions that wait, at most 100,000 of
-- which are counted, running ones, and how long the first has waited.
CREATE FUNCTION sexton.demand(
    INOUT pool text, OUT waiting bigint, OUT running bigint, OUT oldest_wait interval)
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
    SELECT demand.pool, w.waiting,
           (SELECT count(*) FROM sexton.executions e WHERE e.state = 'running' AND e.pool = demand.pool),
           coalesce(clock_timestamp() - w.oldest, interval '0')
    FROM (SELECT count(*) AS waiting, min(d.next_attempt_at) AS oldest FROM (
              SELECT e.next_attempt_at FROM sexton.executions e
              WHERE e.state IN ('pending', 'retrying') AND e.next_attempt_at <= statement_timestamp()
                AND e.pool = demand.pool
                -- One that waits for its job needs no worker yet.
                AND NOT (e.state = 'pending' AND e.waits IS NOT NULL AND e.admitted_at IS NULL
                         AND e.relay_after > statement_timestamp())
              ORDER BY e.next_attempt_at LIMIT 100000) d) w
$$;

-- The version of these functions: plus one when a program that calls them must be changed.
CREATE FUNCTION sexton.functions_version() RETURNS integer LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp AS 'SELECT 1';

-- Everybody may execute a new function otherwise. `sexton migrate --grant` grants those that are for callers.
REVOKE ALL ON FUNCTION sexton.functions_version(), sexton.demand(text), sexton.execution(text, text), sexton.execution(uuid),
    sexton.cancel(text, text, text), sexton.job_of(text), sexton.execution_of(uuid, text) FROM PUBLIC;

COMMENT ON FUNCTION sexton.enqueue IS 'Enqueues one execution of a job in the caller''s transaction.';
COMMENT ON FUNCTION sexton.enqueue_many IS 'Enqueues up to 10,000 executions of a job: an array of objects with the arguments of enqueue.';
COMMENT ON FUNCTION sexton.cancel IS 'Cancels the execution of this key, or requests it of its worker.';
COMMENT ON FUNCTION sexton.execution(uuid) IS 'What has become of an execution.';
COMMENT ON FUNCTION sexton.execution(text, text) IS 'What has become of the execution of this job with this key.';
COMMENT ON FUNCTION sexton.demand IS 'How much work a pool has, for autoscalers.';
COMMENT ON FUNCTION sexton.functions_version IS 'The version of the functions for callers.';
