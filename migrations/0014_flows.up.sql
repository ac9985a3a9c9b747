SET LOCAL lock_timeout = '3s';

-- Flows: executions that depend on the ends of others. docs/guides/flows.md describes them. A member that waits for others is an
-- execution for later whose time is not known: it waits for its turn, and is due in the year 9999.

ALTER TABLE sexton.executions ADD COLUMN flow_id uuid;
ALTER TABLE sexton.jobs ADD COLUMN flow jsonb;

COMMENT ON COLUMN sexton.executions.flow_id IS 'The flow of which it is a member: its own id, if the flow is its job''s; null: none.';
COMMENT ON COLUMN sexton.jobs.flow IS 'The members of the flow that each of its executions begins, as in sexton.flow(); null: none.';

CREATE TABLE sexton.flows (
    id         uuid PRIMARY KEY,
    name       text NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
    key        text CHECK (length(key) BETWEEN 1 AND 256),
    created_by text NOT NULL,
    created_at timestamptz NOT NULL,
    members    integer NOT NULL CHECK (members >= 1),
    open       integer NOT NULL CHECK (open BETWEEN 0 AND members),
    ended_at   timestamptz,
    to_make    jsonb,
    make_after timestamptz,
    problem    text CHECK (octet_length(problem) <= 2000),
    UNIQUE (name, key),
    CHECK ((open = 0) = (ended_at IS NOT NULL)),
    CHECK ((to_make IS NULL) = (make_after IS NULL))
) WITH (fillfactor = 50);
CREATE INDEX flows_newest ON sexton.flows (created_at DESC, id DESC);
CREATE INDEX flows_open ON sexton.flows (created_at DESC, id DESC) WHERE ended_at IS NULL;
CREATE INDEX flows_to_make ON sexton.flows (make_after, id) WHERE to_make IS NOT NULL;

COMMENT ON TABLE sexton.flows IS 'Executions that depend on one another. The row goes with its last member.';
COMMENT ON COLUMN sexton.flows.id IS 'UUID version 7; the first execution''s id, if the flow is that of a job.';
COMMENT ON COLUMN sexton.flows.name IS 'The caller''s name for it, or the job''s.';
COMMENT ON COLUMN sexton.flows.key IS 'The caller''s own key, which makes one flow of this name; null: none.';
COMMENT ON COLUMN sexton.flows.created_by IS 'executions.claimed_by of its members.';
COMMENT ON COLUMN sexton.flows.created_at IS 'When it began.';
COMMENT ON COLUMN sexton.flows.members IS 'Number of its members.';
COMMENT ON COLUMN sexton.flows.open IS 'Number of members that have not ended; a failed one has not.';
COMMENT ON COLUMN sexton.flows.ended_at IS 'When its last member ended; null: it is open.';
COMMENT ON COLUMN sexton.flows.to_make IS 'The members that a scheduler has yet to make, as in jobs.flow; null: all are there.';
COMMENT ON COLUMN sexton.flows.make_after IS 'When a scheduler makes them, or tries again; null: all are there.';
COMMENT ON COLUMN sexton.flows.problem IS 'Why they could not be made, or were not; null: nothing went wrong.';

CREATE TABLE sexton.flow_members (
    execution_id uuid PRIMARY KEY,
    flow_id      uuid NOT NULL,
    name         text NOT NULL CHECK (length(name) BETWEEN 1 AND 100),
    runs_when    text NOT NULL CHECK (runs_when IN ('all_succeeded', 'all_done', 'any_failed')),
    on_discard   text NOT NULL CHECK (on_discard IN ('skip', 'run', 'cancel')),
    waits_for    integer NOT NULL CHECK (waits_for >= 0),
    unsuccessful integer NOT NULL DEFAULT 0 CHECK (unsuccessful >= 0),
    results      jsonb,
    decided      boolean NOT NULL,
    ended        boolean NOT NULL DEFAULT false,
    counted      boolean NOT NULL DEFAULT false,
    UNIQUE (flow_id, name)
) WITH (fillfactor = 50);

COMMENT ON TABLE sexton.flow_members IS 'What an execution is in its flow.';
COMMENT ON COLUMN sexton.flow_members.execution_id IS 'The execution. Without a foreign key: a trigger removes the row.';
COMMENT ON COLUMN sexton.flow_members.flow_id IS 'flows.id.';
COMMENT ON COLUMN sexton.flow_members.name IS 'Its name in the flow.';
COMMENT ON COLUMN sexton.flow_members.runs_when IS 'By which ends of its upstream members it runs: all_succeeded, all_done or any_failed.';
COMMENT ON COLUMN sexton.flow_members.on_discard IS 'What its discard means downstream: skip (it did not succeed), run (as if it had), or cancel (the flow).';
COMMENT ON COLUMN sexton.flow_members.waits_for IS 'Number of upstream members that have not ended.';
COMMENT ON COLUMN sexton.flow_members.unsuccessful IS 'Number of upstream members that ended otherwise than by success.';
COMMENT ON COLUMN sexton.flow_members.results IS 'Templates of params that results of upstream members fill when it becomes due; null: none.';
COMMENT ON COLUMN sexton.flow_members.ended IS 'Whether flows.open counts it as ended.';
COMMENT ON COLUMN sexton.flow_members.decided IS 'Whether it runs or is skipped; otherwise it waits for upstream members.';
COMMENT ON COLUMN sexton.flow_members.counted IS 'Whether its end has been counted downstream, which happens once.';

CREATE TABLE sexton.flow_edges (
    upstream   uuid NOT NULL,
    downstream uuid NOT NULL,
    PRIMARY KEY (upstream, downstream)
);
CREATE INDEX flow_edges_downstream ON sexton.flow_edges (downstream);

COMMENT ON TABLE sexton.flow_edges IS 'Which member waits for which.';
COMMENT ON COLUMN sexton.flow_edges.upstream IS 'The execution whose end is waited for.';
COMMENT ON COLUMN sexton.flow_edges.downstream IS 'The execution that waits.';

-- What becomes of a member, by the ends of those upstream: run, skip, or null as long as it waits.
-- shared/model/src/flow.rs has the same table, and a test compares the two.
CREATE FUNCTION sexton.flow_verdict(runs_when text, waits_for bigint, unsuccessful bigint) RETURNS text
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE
        WHEN unsuccessful > 0 AND runs_when = 'all_succeeded' THEN 'skip'
        WHEN unsuccessful > 0 AND runs_when = 'any_failed' THEN 'run'
        WHEN waits_for > 0 THEN NULL
        WHEN runs_when = 'any_failed' THEN 'skip'
        ELSE 'run' END
$$;

-- The filled execution of a member, which must have no problem: two executions with an idempotency key that lacks the param by
-- which they differ would be repetitions of one another.
CREATE FUNCTION sexton.filled_member(member text, job text, filled jsonb) RETURNS jsonb LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF filled ->> 'problem' IS NOT NULL THEN
        RAISE EXCEPTION 'member % of job %: %', member, job, filled ->> 'problem' USING ERRCODE = 'SX012';
    END IF;
    RETURN filled;
END $$;

-- Inserts the members of a flow that has a row, and what each waits for. `first` is an execution that is a member already;
-- `nominal` the time that their templates name.
CREATE FUNCTION sexton.add_flow_members(
    flow uuid, first uuid, items jsonb, made_by text, nominal timestamptz, called_at timestamptz)
RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    tick CONSTANT bigint := floor(extract(epoch FROM called_at) * 4096000);
BEGIN
    INSERT INTO sexton.flow_members (execution_id, flow_id, name, runs_when, on_discard, waits_for, decided)
    SELECT first, flow, 'start', 'all_succeeded', 'skip', 0, true WHERE first IS NOT NULL;
    WITH m AS MATERIALIZED (
        SELECT sexton.uuid_at(tick + i.n) AS id, i.item, i.item ->> 'name' AS name, coalesce(nullif(i.item -> 'params', 'null'), '{}') AS given,
               'flow-' || flow || '-' || (i.item ->> 'name') AS execution_key,
               coalesce(jsonb_array_length(nullif(i.item -> 'after', 'null')), 0) AS upstream
        FROM jsonb_array_elements(items) WITH ORDINALITY AS i (item, n)),
    t AS MATERIALIZED (
        SELECT m.*, j.id AS job_id, j.name AS job_name, j.task_type, j.pool, j.target, j.params, j.idempotency_template,
               j.overlap IN ('queue', 'replace') AS one_at_a_time,
               CASE WHEN j.templated THEN sexton.filled_member(m.name, j.name, sexton.filled_execution(
                   j.params, m.given, j.idempotency_template, sexton.template_values(
                       j.name, j.timezone, m.execution_key, nominal, NULL, j.params || m.given))) END AS filled
        FROM m JOIN sexton.jobs j ON j.name = m.item ->> 'job' AND j.deleted_at IS NULL),
    made AS (
        INSERT INTO sexton.executions (id, job_id, execution_key, idempotency_key, scheduled_for, state, next_attempt_at,
            task_type, pool, target, params, claimed_by, claimed_at, relay_after, waits, flow_id)
        SELECT t.id, t.job_id, t.execution_key,
               coalesce(t.filled ->> 'idempotency_key',
                        sexton.idempotency_key(t.idempotency_template, t.job_name, t.execution_key)),
               nominal, 'pending', CASE WHEN t.upstream > 0 THEN '9999-12-31 00:00:00+00' ELSE called_at END,
               t.task_type, t.pool, t.target, coalesce(t.filled -> 'params', t.params || t.given), made_by, called_at,
               CASE WHEN t.upstream > 0 OR t.one_at_a_time THEN '9999-01-01 00:00:00+00' ELSE called_at END,
               CASE WHEN t.upstream > 0 OR t.one_at_a_time THEN 'turn' END, flow
        FROM t)
    INSERT INTO sexton.flow_members (execution_id, flow_id, name, runs_when, on_discard, waits_for, results, decided)
    SELECT t.id, flow, t.name, coalesce(t.item ->> 'when', 'all_succeeded'), coalesce(t.item ->> 'on_discard', 'skip'),
           t.upstream, nullif(t.item -> 'results', 'null'), t.upstream = 0
    FROM t;
    INSERT INTO sexton.flow_edges (upstream, downstream)
    SELECT u.execution_id, d.execution_id
    FROM jsonb_array_elements(items) AS i (item), jsonb_array_elements_text(nullif(i.item -> 'after', 'null')) AS a (name),
         sexton.flow_members u, sexton.flow_members d
    WHERE u.flow_id = flow AND u.name = a.name AND d.flow_id = flow AND d.name = i.item ->> 'name';
END $$;

-- An execution of a job with a flow begins it. Its members are made by a scheduler, one flow after another: a claim of many
-- firings stays as short as without. As the other triggers here with the owner's rights: the role that ends an execution need not
-- be able to change others.
CREATE FUNCTION sexton.begin_flow() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO sexton.flows (id, name, created_by, created_at, members, open, to_make, make_after)
    SELECT NEW.id, j.name, NEW.claimed_by, clock_timestamp(), 1 + jsonb_array_length(j.flow), 1 + jsonb_array_length(j.flow), j.flow,
           clock_timestamp()
    FROM sexton.jobs j WHERE j.id = NEW.job_id AND j.flow IS NOT NULL;
    IF NOT FOUND THEN
        -- An apply has taken the flow away meanwhile.
        UPDATE sexton.executions e SET flow_id = NULL WHERE e.id = NEW.id;
    ELSIF sexton.notifies() THEN
        PERFORM pg_notify('sexton', 'flows');
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER begin_flow AFTER INSERT ON sexton.executions
    FOR EACH ROW WHEN (NEW.flow_id = NEW.id) EXECUTE FUNCTION sexton.begin_flow();

-- Follows the end of the first member, if it ended before there was anybody to tell. If it ends just now, that transaction waits
-- for the flow's row, which the caller has locked.
CREATE FUNCTION sexton.follow_first(flow uuid) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF (SELECT e.state FROM sexton.executions e WHERE e.id = flow)
        IN ('succeeded', 'cancelled', 'skipped', 'discarded') THEN
        PERFORM sexton.follow_ends(flow, ARRAY[flow]);
    END IF;
END $$;

-- Gives up the members that a flow has yet to make, but for the first, which is there. The caller has locked the flow's row.
CREATE FUNCTION sexton.give_up_members(flow uuid, why text) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO sexton.flow_members (execution_id, flow_id, name, runs_when, on_discard, waits_for, decided)
    VALUES (flow, flow, 'start', 'all_succeeded', 'skip', 0, true);
    UPDATE sexton.flows f SET to_make = NULL, make_after = NULL, members = 1, open = 1, problem = left(why, 500)
    WHERE f.id = flow;
    PERFORM sexton.follow_first(flow);
END $$;

-- Makes the members of a flow whose row the caller has locked. Returns how many. What is wrong with one of them raises an error.
CREATE FUNCTION sexton.make_members(flow_id uuid) RETURNS integer LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    flow record;
    missing text;
BEGIN
    SELECT f.id, f.name, f.created_by, f.to_make, e.scheduled_for INTO flow
    FROM sexton.flows f JOIN sexton.executions e ON e.id = f.id WHERE f.id = flow_id AND f.to_make IS NOT NULL;
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    -- Their jobs stay until the commit.
    PERFORM FROM sexton.jobs j
        WHERE j.name IN (SELECT m ->> 'job' FROM jsonb_array_elements(flow.to_make) m) AND j.deleted_at IS NULL
        ORDER BY j.id FOR KEY SHARE OF j;
    SELECT string_agg(DISTINCT m.item ->> 'job', ', ') INTO missing FROM jsonb_array_elements(flow.to_make) AS m (item)
    WHERE NOT EXISTS (SELECT FROM sexton.jobs j WHERE j.name = m.item ->> 'job' AND j.deleted_at IS NULL);
    IF missing IS NOT NULL THEN
        -- An apply refuses such a flow, and a delete such a job; somebody has changed rows by hand.
        RAISE EXCEPTION 'there is no job %', missing USING ERRCODE = 'SX001';
    END IF;
    PERFORM sexton.add_flow_members(
        flow.id, flow.id, flow.to_make, flow.created_by, flow.scheduled_for, clock_timestamp());
    UPDATE sexton.flows f SET to_make = NULL, make_after = NULL, problem = NULL WHERE f.id = flow.id;
    PERFORM sexton.follow_first(flow.id);
    RETURN jsonb_array_length(flow.to_make);
END $$;

-- Makes the members of flows that have begun, the oldest first, until there are about this many. Returns how many members
-- were made; null: no flow waits for any. A flow whose row another transaction has locked is left for the next call. One that
-- cannot be made says why, holds up no other, and is tried again after a minute.
CREATE FUNCTION sexton.make_flow_members(most integer) RETURNS integer LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    flow uuid;
    made integer := 0;
    found_one boolean := false;
BEGIN
    FOR flow IN
        SELECT f.id FROM sexton.flows f WHERE f.to_make IS NOT NULL AND f.make_after <= clock_timestamp()
        ORDER BY f.make_after, f.id LIMIT 100 FOR NO KEY UPDATE SKIP LOCKED
    LOOP
        found_one := true;
        BEGIN
            made := made + sexton.make_members(flow);
        EXCEPTION WHEN OTHERS THEN
            UPDATE sexton.flows f SET make_after = clock_timestamp() + interval '1 minute', problem = left(SQLERRM, 500)
            WHERE f.id = flow;
        END;
        EXIT WHEN made >= most;
    END LOOP;
    RETURN CASE WHEN found_one THEN made END;
END $$;

-- Cancels what waits of a flow, and requests it of the workers of what runs. The caller has locked the flow's row, and
-- follows the ends of what is cancelled.
CREATE FUNCTION sexton.cancel_members(flow uuid, called_at timestamptz, OUT cancelled uuid[], OUT requested uuid[])
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    -- Locked first, and judged as they are then: one whose lease is being renewed, or whose attempt ends just now and leaves a
    -- retry, must not be left out. No settlement waits for the flow with such a lock.
    SELECT coalesce(array_agg(l.id) FILTER (WHERE l.state <> 'running'), '{}'),
           coalesce(array_agg(l.id) FILTER (WHERE l.state = 'running'), '{}')
    INTO cancelled, requested
    FROM (
        SELECT e.id, e.state FROM sexton.executions e JOIN sexton.flow_members m ON m.execution_id = e.id
        WHERE m.flow_id = flow AND (e.state IN ('pending', 'retrying') OR e.state = 'running' AND NOT e.cancel_requested)
        ORDER BY e.id FOR NO KEY UPDATE OF e) l;
    -- Counted before they end, so that the trigger has nothing to do for each of them.
    UPDATE sexton.flow_members m SET ended = true WHERE m.execution_id = ANY (cancelled);
    UPDATE sexton.executions e SET state = 'cancelled', rev = e.rev + 1, next_attempt_at = NULL,
        finished_at = called_at, outcome = 'cancelled'
    WHERE e.id = ANY (cancelled);
    UPDATE sexton.executions e SET cancel_requested = true WHERE e.id = ANY (requested);
    IF requested <> '{}' AND sexton.notifies() THEN
        PERFORM pg_notify('sexton', 'cancel');
    END IF;
END $$;

-- What follows from the ends of members: those downstream run or are skipped, and what ends by that has consequences of
-- its own. The caller has locked the flow's row, so its ends come one after another, and has marked these as ended.
CREATE FUNCTION sexton.follow_ends(flow uuid, ends uuid[]) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    called_at CONSTANT timestamptz := clock_timestamp();
    fresh uuid[] := ends;
    number integer := cardinality(ends);
    to_run uuid[];
    to_skip uuid[];
    gone uuid[];
    cancels boolean;
    ran boolean := false;
BEGIN
    UPDATE sexton.flow_members m SET ended = true WHERE m.execution_id = ANY (ends) AND NOT m.ended;
    LOOP
        WITH news AS (
            UPDATE sexton.flow_members m SET counted = true FROM sexton.executions e
            WHERE m.execution_id = ANY (fresh) AND NOT m.counted AND e.id = m.execution_id
            RETURNING m.execution_id, e.state = 'discarded' AND m.on_discard = 'cancel' AS cancels,
                      e.state = 'succeeded' OR e.state = 'discarded' AND m.on_discard = 'run' AS succeeded),
        sums AS (
            SELECT d.downstream, count(*) AS ends, count(*) FILTER (WHERE NOT news.succeeded) AS unsuccessful
            FROM news JOIN sexton.flow_edges d ON d.upstream = news.execution_id GROUP BY d.downstream),
        judged AS MATERIALIZED (
            SELECT c.*, m.decided, sexton.flow_verdict(
                       m.runs_when, m.waits_for - c.ends, m.unsuccessful + c.unsuccessful) AS verdict
            FROM sums c JOIN sexton.flow_members m ON m.execution_id = c.downstream),
        written AS (
            UPDATE sexton.flow_members m SET waits_for = m.waits_for - j.ends,
                unsuccessful = m.unsuccessful + j.unsuccessful, decided = m.decided OR j.verdict IS NOT NULL
            FROM judged j WHERE m.execution_id = j.downstream)
        SELECT (SELECT coalesce(bool_or(news.cancels), false) FROM news),
               array_agg(j.downstream) FILTER (WHERE j.verdict = 'run' AND NOT j.decided),
               array_agg(j.downstream) FILTER (WHERE j.verdict = 'skip' AND NOT j.decided)
        INTO cancels, to_run, to_skip FROM judged j;
        gone := '{}';
        IF cancels THEN
            SELECT c.cancelled INTO gone FROM sexton.cancel_members(flow, called_at) c;
        END IF;
        IF to_skip IS NOT NULL THEN
            -- Locked and counted before they end, as in cancel_members.
            WITH l AS MATERIALIZED (
                SELECT e.id FROM sexton.executions e
                WHERE e.id = ANY (to_skip) AND e.state = 'pending' ORDER BY e.id FOR NO KEY UPDATE),
            c AS (
                UPDATE sexton.flow_members m SET ended = true FROM l WHERE m.execution_id = l.id RETURNING l.id)
            SELECT coalesce(array_agg(c.id), '{}') INTO to_skip FROM c;
            UPDATE sexton.executions e SET state = 'skipped', skip_reason = 'upstream', rev = e.rev + 1,
                next_attempt_at = NULL, finished_at = called_at
            WHERE e.id = ANY (to_skip);
            gone := gone || to_skip;
        END IF;
        IF to_run IS NOT NULL THEN
            PERFORM sexton.free_members(to_run, called_at);
            ran := true;
        END IF;
        number := number + cardinality(gone);
        fresh := gone;
        EXIT WHEN fresh = '{}';
    END LOOP;
    UPDATE sexton.flows f SET open = f.open - number, ended_at = CASE WHEN f.open = number THEN called_at END
    WHERE f.id = flow;
    IF ran AND sexton.notifies() THEN
        PERFORM pg_notify('sexton', 'unpublished'), pg_notify('sexton', 'waiters');
    END IF;
END $$;

-- Members whose upstream members have ended become due. Params get what their templates name of upstream results; if
-- that makes them too large, the member fails, and an operator may edit them.
CREATE FUNCTION sexton.free_members(members uuid[], called_at timestamptz) RETURNS void LANGUAGE sql
SET search_path = pg_catalog, pg_temp AS $$
    WITH f AS MATERIALIZED (
        SELECT e.id, j.overlap IN ('queue', 'replace') AS one_at_a_time,
               CASE WHEN m.results IS NOT NULL THEN e.params || sexton.filled(m.results, jsonb_build_object('upstream', (
                   SELECT jsonb_object_agg(u.name, jsonb_build_object('state', x.state, 'result', x.result))
                   FROM (SELECT DISTINCT r.name[1] AS name FROM regexp_matches(
                             m.results::text, '\{\{ *upstream\.([A-Za-z0-9_-]+)', 'g') AS r (name)) n
                   JOIN sexton.flow_members u ON u.flow_id = m.flow_id AND u.name = n.name
                   JOIN sexton.executions x ON x.id = u.execution_id))) END AS filled
        FROM sexton.executions e JOIN sexton.jobs j ON j.id = e.job_id
        JOIN sexton.flow_members m ON m.execution_id = e.id
        WHERE e.id = ANY (members) AND e.state = 'pending'),
    p AS MATERIALIZED (
        SELECT f.*, sexton.params_problem(f.filled) AS problem FROM f)
    UPDATE sexton.executions e SET rev = e.rev + 1,
        params = CASE WHEN p.problem IS NULL THEN coalesce(p.filled, e.params) ELSE e.params END,
        state = CASE WHEN p.problem IS NULL THEN 'pending' ELSE 'failed' END,
        next_attempt_at = CASE WHEN p.problem IS NULL THEN called_at END,
        finished_at = CASE WHEN p.problem IS NOT NULL THEN called_at END,
        outcome = CASE WHEN p.problem IS NOT NULL THEN 'failure' END,
        error_class = CASE WHEN p.problem IS NOT NULL THEN 'flow.params' END,
        error_message = CASE WHEN p.problem IS NOT NULL THEN p.problem || ' with the results of the members before' END,
        admitted_at = CASE WHEN p.one_at_a_time AND p.problem IS NULL THEN NULL ELSE called_at END,
        relay_after = CASE WHEN p.one_at_a_time AND p.problem IS NULL THEN '9999-01-01 00:00:00+00' ELSE called_at END
    FROM p WHERE e.id = p.id
$$;

-- Cancels a flow: what waits at once, what runs by its worker; failed members stay. Returns both kinds. Members that cannot be
-- made are given up.
CREATE FUNCTION sexton.end_flow(flow uuid, called_at timestamptz, OUT cancelled uuid[], OUT requested uuid[])
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM FROM sexton.flows f WHERE f.id = flow FOR NO KEY UPDATE;
    BEGIN
        PERFORM sexton.make_members(flow);
    EXCEPTION WHEN OTHERS THEN
        PERFORM sexton.give_up_members(flow, SQLERRM);
    END;
    SELECT c.cancelled, c.requested INTO cancelled, requested FROM sexton.cancel_members(flow, called_at) c;
    IF cancelled <> '{}' THEN
        PERFORM sexton.follow_ends(flow, cancelled);
    END IF;
END $$;

-- Locks the row of the flow that an execution is a member of: before the execution, as everybody does who follows an end.
CREATE FUNCTION sexton.wait_for_flow_of(execution uuid) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM FROM sexton.flows f WHERE f.id = (SELECT e.flow_id FROM sexton.executions e WHERE e.id = execution)
        FOR NO KEY UPDATE;
END $$;

-- Whether the flow's row could be locked at once. A worker's batch asks before it settles a member: a caller's transaction
-- may hold the row for as long as it likes, and holds up nobody else.
CREATE FUNCTION sexton.lock_flow(flow uuid) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM FROM sexton.flows f WHERE f.id = flow FOR NO KEY UPDATE SKIP LOCKED;
    -- Without a row there is nothing to wait for.
    RETURN FOUND OR NOT EXISTS (SELECT FROM sexton.flows f WHERE f.id = flow);
END $$;

CREATE FUNCTION sexton.settle_member() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    -- What ends as a consequence of an end was counted by the loop that ends it.
    IF NEW.state <> 'failed' AND EXISTS (
        SELECT FROM sexton.flow_members m WHERE m.execution_id = NEW.id AND m.ended) THEN
        RETURN NULL;
    END IF;
    PERFORM FROM sexton.flows f WHERE f.id = NEW.flow_id FOR NO KEY UPDATE;
    IF NEW.state = 'failed' THEN
        -- A discard was taken back.
        UPDATE sexton.flow_members m SET ended = false WHERE m.execution_id = NEW.id AND m.ended;
        IF FOUND THEN
            UPDATE sexton.flows f SET open = f.open + 1, ended_at = NULL WHERE f.id = NEW.flow_id;
        END IF;
    ELSIF EXISTS (SELECT FROM sexton.flow_members m WHERE m.execution_id = NEW.id) THEN
        -- Without members yet, the scheduler that makes them finds that it has ended.
        PERFORM sexton.follow_ends(NEW.flow_id, ARRAY[NEW.id]);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER settle_member AFTER UPDATE OF state ON sexton.executions
    FOR EACH ROW WHEN (NEW.flow_id IS NOT NULL AND
        (OLD.state IN ('succeeded', 'cancelled', 'skipped', 'discarded')) <>
        (NEW.state IN ('succeeded', 'cancelled', 'skipped', 'discarded')))
    EXECUTE FUNCTION sexton.settle_member();

-- Removed executions take with them what they were in their flows.
CREATE FUNCTION sexton.delete_members() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    DELETE FROM sexton.flow_edges d USING gone
    WHERE gone.flow_id IS NOT NULL AND (d.upstream = gone.id OR d.downstream = gone.id);
    DELETE FROM sexton.flow_members m USING gone WHERE gone.flow_id IS NOT NULL AND m.execution_id = gone.id;
    DELETE FROM sexton.flows f WHERE f.id IN (SELECT gone.flow_id FROM gone WHERE gone.flow_id IS NOT NULL)
        AND NOT EXISTS (SELECT FROM sexton.flow_members m WHERE m.flow_id = f.id);
    RETURN NULL;
END $$;
CREATE TRIGGER delete_members AFTER DELETE ON sexton.executions REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION sexton.delete_members();

-- Everybody may execute a new function otherwise.
REVOKE ALL ON FUNCTION sexton.delete_members(), sexton.settle_member(), sexton.lock_flow(uuid), sexton.end_flow(uuid, timestamptz),
    sexton.wait_for_flow_of(uuid), sexton.begin_flow(),
    sexton.free_members(uuid[], timestamptz), sexton.follow_ends(uuid, uuid[]), sexton.make_flow_members(integer), sexton.make_members(uuid),
    sexton.give_up_members(uuid, text), sexton.follow_first(uuid), sexton.filled_member(text, text, jsonb),
    sexton.cancel_members(uuid, timestamptz),
    sexton.add_flow_members(uuid, uuid, jsonb, text, timestamptz, timestamptz), sexton.flow_verdict(text, bigint, bigint)
    FROM PUBLIC;
