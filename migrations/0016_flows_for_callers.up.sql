SET LOCAL lock_timeout = '3s';

-- Why members cannot follow one another: one waits for itself, or they are too many steps; null: they can. Members are taken
-- away whose upstream members are gone, until none is left.
CREATE FUNCTION sexton.flow_order_problem(items jsonb) RETURNS text LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    number CONSTANT integer := jsonb_array_length(items);
    -- Of each member, how many it waits for; the edges in the order of their upstream members, and where each begins.
    waits_for integer[];
    downstream integer[];
    begins integer[];
    free integer[] := '{}';
    -- How many steps each is from a first one.
    steps integer[] := array_fill(0, ARRAY[number]);
    done integer := 0;
    place integer;
    other integer;
BEGIN
    WITH m AS MATERIALIZED (
        SELECT i.n::integer AS n, i.item ->> 'name' AS name, nullif(i.item -> 'after', 'null') AS after
        FROM jsonb_array_elements(items) WITH ORDINALITY AS i (item, n)),
    e AS MATERIALIZED (
        SELECT u.n AS upstream, d.n AS downstream
        FROM m d CROSS JOIN LATERAL jsonb_array_elements_text(d.after) AS a (name) JOIN m u ON u.name = a.name),
    o AS (
        SELECT e.upstream, count(*) AS edges FROM e GROUP BY e.upstream)
    SELECT (SELECT array_agg(e.downstream ORDER BY e.upstream) FROM e),
           (SELECT array_agg(coalesce(w.waits_for, 0) ORDER BY m.n) FROM m
            LEFT JOIN (SELECT e.downstream, count(*)::integer AS waits_for FROM e GROUP BY 1) w ON w.downstream = m.n),
           (SELECT array_agg(b.begins ORDER BY b.n) FROM (
                SELECT m.n, (1 + coalesce(sum(o.edges) OVER (
                    ORDER BY m.n ROWS UNBOUNDED PRECEDING EXCLUDE CURRENT ROW), 0))::integer AS begins
                FROM m LEFT JOIN o ON o.upstream = m.n) b)
    INTO downstream, waits_for, begins;
    FOR member IN 1..number LOOP
        IF waits_for[member] = 0 THEN
            free := free || member;
        END IF;
    END LOOP;
    WHILE done < cardinality(free) LOOP
        done := done + 1;
        place := begins[free[done]];
        WHILE place < coalesce(begins[free[done] + 1], cardinality(downstream) + 1) LOOP
            other := downstream[place];
            waits_for[other] := waits_for[other] - 1;
            steps[other] := greatest(steps[other], steps[free[done]] + 1);
            IF steps[other] >= 1000 THEN
                RETURN format('member %s: it is more than 1,000 steps from the first', items -> (other - 1) ->> 'name');
            END IF;
            IF waits_for[other] = 0 THEN
                free := free || other;
            END IF;
            place := place + 1;
        END LOOP;
    END LOOP;
    FOR member IN 1..number LOOP
        IF waits_for[member] > 0 THEN
            RETURN format('member %s: it waits for itself', items -> (member - 1) ->> 'name');
        END IF;
    END LOOP;
    RETURN NULL;
END $$;

-- What is wrong with the members of a flow apart from their jobs; no rows: nothing.
CREATE FUNCTION sexton.flow_problems(items jsonb) RETURNS SETOF text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp AS $$
    WITH m AS MATERIALIZED (
        SELECT i.n, i.item, i.item ->> 'name' AS name,
               CASE WHEN jsonb_typeof(i.item -> 'after') = 'array' THEN i.item -> 'after' ELSE '[]' END AS after
        FROM jsonb_array_elements(items) WITH ORDINALITY AS i (item, n)),
    names AS MATERIALIZED (SELECT m.name, count(*) AS number FROM m GROUP BY m.name)
    SELECT format('member %s: %s', coalesce(m.name, m.n::text), w.wrong)
    FROM m LEFT JOIN names s ON s.name = m.name, LATERAL (
        SELECT concat_ws('; ',
            CASE WHEN jsonb_typeof(m.item) <> 'object' THEN 'it is not an object'
                 WHEN m.item - ARRAY['name', 'job', 'params', 'results', 'after', 'when', 'on_discard'] <> '{}' THEN 'unknown fields '
                     || jsonb_path_query_array(m.item - ARRAY['name', 'job', 'params', 'results', 'after', 'when', 'on_discard'],
                                               '$.keyvalue().key')::text END,
            CASE WHEN coalesce(jsonb_typeof(m.item -> 'name'), '') <> 'string' OR m.name !~ '^[A-Za-z0-9_-]{1,100}$'
                 THEN 'name is none of 1 to 100 letters, digits, _ and -'
                 WHEN s.number > 1 THEN 'another member has its name' END,
            CASE WHEN coalesce(jsonb_typeof(m.item -> 'job'), '') <> 'string' THEN 'job is no text' END,
            CASE WHEN jsonb_typeof(m.item -> 'params') NOT IN ('object', 'null') THEN 'params is not an object' END,
            CASE WHEN jsonb_typeof(m.item -> 'results') NOT IN ('object', 'null') THEN 'results is not an object'
                 WHEN octet_length((m.item -> 'results')::text) > 65536 THEN 'results has more than 65,536 bytes'
                 ELSE (SELECT 'results names ' || string_agg(DISTINCT r.name[1], ', ') || ', which after does not name'
                       FROM regexp_matches((m.item -> 'results')::text, '\{\{ *upstream\.([A-Za-z0-9_-]+)', 'g') AS r (name)
                       WHERE NOT m.after ? r.name[1]) END,
            CASE WHEN jsonb_typeof(m.item -> 'after') NOT IN ('array', 'null')
                      OR jsonb_path_exists(m.after, '$[*] ? (@.type() != "string")') THEN 'after is not a list of names'
                 WHEN (SELECT count(*) <> count(DISTINCT a) FROM jsonb_array_elements_text(m.after) a)
                 THEN 'after names a member twice'
                 ELSE (SELECT 'after names ' || string_agg(quote_ident(a.name), ', ') || ', which is no member' FROM (
                           SELECT a.name FROM jsonb_array_elements_text(m.after) a (name)
                           WHERE NOT EXISTS (SELECT FROM names WHERE names.name = a.name) LIMIT 5) a) END,
            CASE WHEN m.item ->> 'when' NOT IN ('all_succeeded', 'all_done', 'any_failed')
                 THEN 'when is none of all_succeeded, all_done, any_failed'
                 WHEN m.item ? 'when' AND jsonb_array_length(m.after) = 0 THEN 'when needs after' END,
            CASE WHEN m.item ->> 'on_discard' NOT IN ('skip', 'run', 'cancel')
                 THEN 'on_discard is none of skip, run, cancel' END) AS wrong) w
    WHERE w.wrong <> '' ORDER BY m.n LIMIT 100
$$;

-- Begins a flow in the caller's transaction, and returns one row always.
CREATE FUNCTION sexton.flow(
    definition jsonb, OUT flow_id uuid, OUT created boolean, OUT members integer, OUT open integer)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' AS $$
#variable_conflict use_variable
DECLARE
    called_at CONSTANT timestamptz := clock_timestamp();
    flow_name CONSTANT text := definition ->> 'name';
    flow_key CONSTANT text := definition ->> 'key';
    items CONSTANT jsonb := definition -> 'members';
    problems text[];
    job text;
    code text;
BEGIN
    problems := array_remove(ARRAY[
        CASE WHEN coalesce(jsonb_typeof(definition), '') <> 'object' THEN 'the definition is not an object'
             WHEN definition - ARRAY['name', 'key', 'members'] <> '{}' THEN 'unknown fields '
                 || jsonb_path_query_array(definition - ARRAY['name', 'key', 'members'], '$.keyvalue().key')::text END,
        CASE WHEN coalesce(jsonb_typeof(definition -> 'name'), '') <> 'string' OR flow_name !~ '^[^[:cntrl:]]+$' OR length(flow_name) > 200
             THEN 'name is no text of 1 to 200 characters' END,
        CASE WHEN definition -> 'key' <> 'null' AND (
                 jsonb_typeof(definition -> 'key') <> 'string' OR flow_key !~ '^[^[:cntrl:]]+$' OR length(flow_key) > 256)
             THEN 'key is no text of 1 to 256 characters' END,
        CASE WHEN coalesce(jsonb_typeof(items), '') <> 'array' OR items = '[]' THEN 'members is no list of at least one'
             END], NULL);
    IF problems = '{}' AND jsonb_array_length(items) > 20000 THEN
        RAISE EXCEPTION '% members are more than 20,000', jsonb_array_length(items) USING ERRCODE = 'SX020',
            HINT = 'Let one member do more, or begin several flows.';
    END IF;
    IF problems = '{}' THEN
        problems := ARRAY(SELECT sexton.flow_problems(items));
    END IF;
    IF problems = '{}' THEN
        SELECT CASE WHEN sum(jsonb_array_length(nullif(m -> 'after', 'null'))) > 100000 THEN ARRAY['its members wait for more than 100,000 others']
                    ELSE '{}' END INTO problems FROM jsonb_array_elements(items) m;
    END IF;
    IF problems = '{}' THEN
        problems := array_remove(ARRAY[sexton.flow_order_problem(items)], NULL);
    END IF;
    IF problems <> '{}' THEN
        RAISE EXCEPTION 'flow "%": %', coalesce(flow_name, ''), problems[1] USING ERRCODE = 'SX010',
            DETAIL = array_to_string(problems, E'\n'),
            HINT = 'Nothing was begun. Correct what the detail lists, and call again.';
    END IF;
    -- Locked in one order, so that two callers never wait for each other.
    PERFORM FROM sexton.jobs j
        WHERE j.name IN (SELECT m ->> 'job' FROM jsonb_array_elements(items) m) AND j.deleted_at IS NULL
        ORDER BY j.id FOR KEY SHARE OF j;
    FOR job IN
        SELECT DISTINCT m ->> 'job' FROM jsonb_array_elements(items) m
        WHERE starts_with(m ->> 'job', 'verify.') OR starts_with(m ->> 'job', 'foreign.') OR NOT EXISTS (
            SELECT FROM sexton.jobs j WHERE j.name = m ->> 'job' AND j.deleted_at IS NULL AND j.status = 'active')
        ORDER BY 1
    LOOP
        PERFORM sexton.refuse_job(job);
    END LOOP;
    SELECT array_agg(format('member %s: %s', w.name, w.wrong)), min(w.code) INTO problems, code FROM (
        SELECT p.name, p.code, p.wrong FROM (
            SELECT f.name, CASE WHEN sexton.params_problem(f.params) IS NOT NULL THEN 'SX011' ELSE 'SX012' END AS code,
                   coalesce(f.filled ->> 'problem', sexton.params_problem(f.params),
                       -- A worker checks what has results to come.
                       CASE WHEN f.checked AND NOT f.completed THEN sexton.violations_of_all(
                           sexton.schemas_in_use(f.task_type, f.pool, called_at), f.params) END) AS wrong
            FROM (
                SELECT x.*, coalesce(x.filled -> 'params', x.unfilled) AS params FROM (
                    SELECT m.item ->> 'name' AS name, j.task_type, j.pool,
                           coalesce(m.item -> 'results' NOT IN ('{}', 'null'), false) AS completed,
                           EXISTS (SELECT FROM sexton.offers o WHERE o.task_type = j.task_type AND o.params_schema IS NOT NULL) AS checked,
                           j.params || coalesce(nullif(m.item -> 'params', 'null'), '{}') AS unfilled,
                           CASE WHEN j.templated THEN sexton.filled_execution(
                               j.params, coalesce(nullif(m.item -> 'params', 'null'), '{}'), j.idempotency_template, sexton.template_values(
                                   j.name, j.timezone, '', called_at, NULL, j.params || coalesce(nullif(m.item -> 'params', 'null'), '{}')))
                           END AS filled
                    FROM jsonb_array_elements(items) AS m (item) JOIN sexton.jobs j ON j.name = m.item ->> 'job'
                    OFFSET 0) x
                OFFSET 0) f
            OFFSET 0) p
        WHERE p.wrong IS NOT NULL LIMIT 100) w;
    IF problems IS NOT NULL THEN
        RAISE EXCEPTION 'flow "%": %', flow_name, problems[1] USING ERRCODE = code, DETAIL = array_to_string(problems, E'\n'),
            HINT = 'Nothing was begun. Correct what the detail lists, and call again.';
    END IF;
    flow_id := sexton.uuid_at(floor(extract(epoch FROM called_at) * 4096000)::bigint);
    BEGIN
        INSERT INTO sexton.flows (id, name, key, created_by, created_at, members, open)
        VALUES (flow_id, flow_name, flow_key, sexton.caller(), called_at, jsonb_array_length(items), jsonb_array_length(items));
        PERFORM sexton.add_flow_members(flow_id, NULL, items, sexton.caller(), called_at, called_at);
        created := true;
    EXCEPTION WHEN unique_violation THEN
        -- The flow of this key: another session's, or one of before.
        created := false;
        SELECT f.id INTO flow_id FROM sexton.flows f WHERE f.name = flow_name AND f.key = flow_key;
        IF flow_id IS NULL THEN
            RAISE EXCEPTION 'flow "%": the flow with this key cannot be seen', flow_name
                USING ERRCODE = 'serialization_failure', HINT = 'Repeat the transaction.';
        END IF;
    END;
    IF created AND sexton.notifies() THEN
        PERFORM pg_notify('sexton', 'unpublished'), pg_notify('sexton', 'waiters');
    END IF;
    SELECT f.members, f.open INTO members, open FROM sexton.flows f WHERE f.id = flow_id;
END $$;

-- Cancels what waits of a flow, and requests it of the workers of what runs. A failed member stays, for an operator.
CREATE FUNCTION sexton.cancel_flow(INOUT flow_id uuid, reason text DEFAULT NULL, OUT cancelled integer, OUT open integer)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    called_at CONSTANT timestamptz := clock_timestamp();
    before record;
    gone uuid[];
    asked uuid[];
BEGIN
    IF octet_length(reason) > 2000 THEN
        RAISE EXCEPTION 'the reason has more than 2,000 bytes' USING ERRCODE = 'SX010', HINT = 'Shorten it.';
    END IF;
    SELECT f.id, f.name, e.id IS NULL OR e.own_key OR e.unique_key IS NOT NULL OR starts_with(e.execution_key, 'enqueued-')
               AS is_callers
    INTO before FROM sexton.flows f LEFT JOIN sexton.executions e ON e.id = f.id
    WHERE f.id = flow_id FOR NO KEY UPDATE OF f;
    IF NOT before.is_callers THEN
        RAISE EXCEPTION 'a firing or an operator began the flow %', flow_id USING ERRCODE = 'SX010',
            HINT = 'Operators cancel it: sexton flows cancel.';
    END IF;
    IF before.id IS NOT NULL THEN
        SELECT c.cancelled, c.requested INTO gone, asked FROM sexton.end_flow(flow_id, called_at) c;
        INSERT INTO sexton.operator_actions (at, actor, action, job_id, execution_id, reason, before, after)
        SELECT called_at, sexton.caller(), 'cancel', e.job_id, e.id, reason, jsonb_build_object('flow', before.name),
               jsonb_build_object('state', e.state)
        FROM sexton.executions e WHERE e.id = ANY (gone || asked);
    END IF;
    cancelled := coalesce(cardinality(gone), 0);
    SELECT f.open INTO open FROM sexton.flows f WHERE f.id = flow_id;
END $$;

-- Everybody may execute a new function otherwise.
REVOKE ALL ON FUNCTION sexton.flow(jsonb), sexton.cancel_flow(uuid, text), sexton.flow_problems(jsonb), sexton.flow_order_problem(jsonb)
    FROM PUBLIC;

COMMENT ON FUNCTION sexton.flow IS 'Begins a flow of up to 20,000 executions that depend on one another.';
COMMENT ON FUNCTION sexton.cancel_flow IS 'Cancels what waits of a flow, and requests it of the workers of what runs.';
