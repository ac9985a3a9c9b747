SET LOCAL lock_timeout = '3s';

-- As 0010 and 0011 made them.

-- What is wrong with an enqueue apart from its params; null: nothing. `at` is when it is to run.
CREATE OR REPLACE FUNCTION sexton.enqueue_problems(
    key text, unique_for text, if_exists text, at timestamptz, called_at timestamptz, has_both boolean, labels jsonb)
RETURNS text LANGUAGE sql STABLE AS $$
    SELECT nullif(concat_ws('; ',
        CASE WHEN key IS NULL THEN
                 CASE WHEN unique_for <> 'ever' OR if_exists <> 'keep' THEN 'unique_for and if_exists need a key' END
             WHEN key !~ '[^[:space:]]' THEN 'key is empty'
             WHEN octet_length(key) > 256 THEN 'key has more than 256 bytes'
             WHEN key ~ '[[:cntrl:]]' THEN 'key holds a control character'
             WHEN key ~ '^(cron|every|once)-\d{4}-' THEN 'key is that of a firing, which schedulers make' END,
        CASE WHEN has_both THEN 'run_at and delay exclude each other'
             WHEN at > called_at + interval '400 days' THEN 'it is to run more than 400 days from now' END,
        CASE WHEN unique_for IN ('ever', 'open') THEN NULL
             WHEN unique_for !~ '^[1-9][0-9]{0,7}[smhd]$' THEN 'unique_for is none of ever, open, and a period such as 1h'
             WHEN sexton.period_seconds(unique_for) > 34560000 THEN 'unique_for is longer than 400 days'
             WHEN octet_length(key) > 235 THEN 'key has more than 235 bytes, which leaves no room for the period' END,
        CASE WHEN if_exists NOT IN ('keep', 'replace', 'postpone') THEN 'if_exists is none of keep, replace, postpone' END,
        CASE WHEN labels IS NULL OR labels IN ('{}', 'null') THEN NULL
             WHEN jsonb_typeof(labels) <> 'object' OR jsonb_path_exists(labels, '$.* ? (@.type() != "string")')
                 THEN 'labels is not an object of texts'
             WHEN jsonb_array_length(jsonb_path_query_array(labels, '$.keyvalue()')) > 50
                 THEN 'labels has more than 50 entries'
             WHEN octet_length(labels::text) > 16384 THEN 'labels has more than 16,384 bytes' END), '')
$$;

-- Enqueues executions of one job. Everything is checked before anything is inserted; all problems are reported at once.
CREATE OR REPLACE FUNCTION sexton.enqueue_many(job text, items jsonb)
RETURNS TABLE (ordinal integer, execution_id uuid, key text, created boolean, state text)
LANGUAGE plpgsql SECURITY DEFINER
-- The plans are the same for every call, and planning would take half the time of a call. A day has 24 hours.
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan SET timezone = 'UTC' AS $$
#variable_conflict use_column
DECLARE
    -- now() is when the caller's transaction began, which may be long ago.
    called_at CONSTANT timestamptz := clock_timestamp();
    tick CONSTANT bigint := floor(extract(epoch FROM called_at) * 4096000);
    target record;
    schemas jsonb[];
    problems text[];
    code text;
    ids uuid[]; keys text[]; unique_keys text[]; own boolean[]; due timestamptz[]; merged jsonb[]; notes jsonb[];
    replaces text[];
    fresh uuid[];
    met uuid[];
    missing integer[];
    is_soon boolean;
    is_new boolean := false;
    tries integer := 0;
BEGIN
    SELECT j.id, j.name, j.status, j.task_type, j.pool, j.target, j.params, j.idempotency_template,
           j.overlap IN ('queue', 'replace') AS one_at_a_time,
           EXISTS (SELECT FROM sexton.offers o WHERE o.task_type = j.task_type AND o.params_schema IS NOT NULL) AS checked
    INTO target FROM sexton.jobs j WHERE j.name = enqueue_many.job AND j.deleted_at IS NULL FOR KEY SHARE OF j;
    IF target.status IS DISTINCT FROM 'active' OR starts_with(job, 'verify.') OR starts_with(job, 'foreign.') THEN
        PERFORM sexton.refuse_job(job);
    END IF;
    IF items IS NULL OR jsonb_typeof(items) <> 'array' THEN
        RAISE EXCEPTION 'items is not a JSON array' USING ERRCODE = 'SX010',
            HINT = 'Pass an array of objects such as {"key": "order-1", "params": {}}.';
    END IF;
    IF jsonb_array_length(items) > 10000 THEN
        RAISE EXCEPTION '% items are more than 10,000', jsonb_array_length(items) USING ERRCODE = 'SX020',
            HINT = 'Enqueue them in several calls; they may be in one transaction.';
    END IF;
    IF target.checked THEN
        schemas := sexton.schemas_in_use(target.task_type, target.pool, called_at);
    END IF;
    BEGIN
        SELECT array_agg(c.id), array_agg(sexton.enqueued_key(
                   c.key, CASE WHEN c.wrong IS NULL THEN c.unique_for ELSE 'ever' END, c.due, c.id)),
               array_agg(CASE WHEN c.unique_for = 'open' THEN c.key END),
               array_agg(c.key IS NOT NULL AND c.unique_for <> 'open'),
               array_agg(c.due), array_agg(c.params),
               array_agg(CASE WHEN c.item -> 'labels' NOT IN ('{}', 'null') THEN c.item -> 'labels' END),
               array_agg(CASE WHEN c.if_exists <> 'keep' THEN c.if_exists END),
               bool_or(c.due < called_at + interval '2 seconds'),
               CASE WHEN bool_or(c.wrong IS NOT NULL) THEN 'SX010' WHEN bool_or(c.excessive IS NOT NULL) THEN 'SX011'
                    ELSE 'SX012' END,
               array_agg(format('item %s: %s', c.n, concat_ws('; ', c.wrong, c.excessive, c.violations)))
                   FILTER (WHERE c.wrong IS NOT NULL OR c.excessive IS NOT NULL OR c.violations IS NOT NULL)
        INTO ids, keys, unique_keys, own, due, merged, notes, replaces, is_soon, code, problems
        FROM (
            SELECT i.*, greatest(i.at, called_at) AS due,
                   nullif(concat_ws('; ', sexton.item_problems(i.item), sexton.enqueue_problems(
                       i.key, i.unique_for, i.if_exists, i.at, called_at,
                       i.item ->> 'run_at' IS NOT NULL AND i.item ->> 'delay' IS NOT NULL, i.item -> 'labels')), '') AS wrong,
                   sexton.params_problem(i.params) AS excessive,
                   CASE WHEN cardinality(schemas) > 0 THEN sexton.violations_of_all(schemas, i.params) END AS violations
            FROM (
                SELECT e.n::integer AS n, e.item, sexton.uuid_at(tick + e.n - 1) AS id, e.item ->> 'key' AS key,
                       coalesce(e.item ->> 'unique_for', 'ever') AS unique_for,
                       coalesce(e.item ->> 'if_exists', 'keep') AS if_exists,
                       CASE WHEN jsonb_typeof(e.item -> 'params') = 'object' THEN target.params || (e.item -> 'params')
                            ELSE target.params END AS params,
                       CASE WHEN sexton.item_problems(e.item) IS NOT NULL THEN called_at
                            WHEN e.item ->> 'run_at' IS NOT NULL THEN (e.item ->> 'run_at')::timestamptz
                            WHEN e.item ->> 'delay' IS NOT NULL THEN called_at + (e.item ->> 'delay')::interval
                            ELSE called_at END AS at
                FROM jsonb_array_elements(items) WITH ORDINALITY AS e (item, n)
                -- Each column is computed once.
                OFFSET 0) i
            OFFSET 0) c;
    EXCEPTION WHEN datetime_field_overflow OR invalid_datetime_format OR interval_field_overflow
        OR invalid_time_zone_displacement_value THEN
        RAISE EXCEPTION 'job "%": a run_at or delay is no time: %', job, SQLERRM USING ERRCODE = 'SX010',
            HINT = 'Nothing was enqueued. Correct the item with this value, and call again.';
    END;
    IF problems IS NOT NULL THEN
        RAISE EXCEPTION 'job "%": %', job, problems[1] USING ERRCODE = code,
            DETAIL = array_to_string(problems[1:100], E'\n') || CASE WHEN cardinality(problems) > 100
                THEN format(E'\nand %s more items', cardinality(problems) - 100) ELSE '' END,
            HINT = 'Nothing was enqueued. Correct what the detail lists, and call again.';
    END IF;
    LOOP
        WITH made AS (
            INSERT INTO sexton.executions (id, job_id, execution_key, own_key, unique_key, idempotency_key, scheduled_for,
                state, next_attempt_at, task_type, pool, target, params, labels, claimed_by, claimed_at, relay_after,
                waits)
            SELECT f.id, target.id, f.key, f.own, f.unique_key,
                   sexton.idempotency_key(target.idempotency_template, target.name, f.key),
                   f.due, 'pending', f.due, target.task_type, target.pool, target.target, f.params, f.labels,
                   sexton.caller(),
                   called_at, CASE WHEN target.one_at_a_time THEN timestamptz '9999-01-01 00:00:00+00' ELSE f.due END,
                   -- What is enqueued for later is not under way until the relay, or a planner, admits it.
                   CASE WHEN target.one_at_a_time OR f.due > called_at THEN 'turn' END
            FROM unnest(ids, keys, own, unique_keys, due, merged, notes)
                WITH ORDINALITY AS f (id, key, own, unique_key, due, params, labels, n)
            WHERE missing IS NULL OR f.n = ANY (missing)
            -- In one order, so that two callers never wait for each other.
            ORDER BY coalesce(f.unique_key, f.key), f.unique_key IS NULL, f.n
            ON CONFLICT DO NOTHING RETURNING id)
        SELECT array_agg(made.id) INTO fresh FROM made;
        is_new := is_new OR fresh IS NOT NULL;
        IF cardinality(fresh) = cardinality(ids) THEN
            met := ids;
            EXIT;
        END IF;
        -- Another statement, which sees what others have committed meanwhile.
        SELECT array_agg(e.id ORDER BY f.n), array_agg(f.n) FILTER (WHERE e.id IS NULL) INTO met, missing
        FROM unnest(keys, unique_keys) WITH ORDINALITY AS f (key, unique_key, n)
        LEFT JOIN LATERAL (
            SELECT x.id FROM sexton.executions x WHERE x.job_id = target.id AND x.execution_key = f.key
            UNION ALL
            SELECT x.id FROM sexton.executions x WHERE x.job_id = target.id AND x.unique_key = f.unique_key
                AND x.state IN ('pending', 'running', 'retrying', 'failed')
            LIMIT 1) e ON true;
        EXIT WHEN missing IS NULL;
        -- What it met has ended or was removed between the two statements.
        tries := tries + 1;
        IF tries > 5 THEN
            RAISE EXCEPTION 'job "%": the executions with these keys end faster than they can be read', job
                USING ERRCODE = 'serialization_failure', HINT = 'Repeat the transaction.';
        END IF;
    END LOOP;
    IF met IS DISTINCT FROM ids AND array_remove(replaces, NULL) <> '{}' THEN
        -- Of several items with one key the last counts.
        WITH last AS (
            SELECT DISTINCT ON (f.id) f.id, f.params, f.labels, f.due, f.if_exists
            FROM unnest(met, ids, merged, notes, due, replaces)
                WITH ORDINALITY AS f (id, own_id, params, labels, due, if_exists, n)
            WHERE f.if_exists IS NOT NULL AND f.id <> f.own_id
            ORDER BY f.id, f.n DESC),
        l AS MATERIALIZED (
            SELECT last.* FROM last JOIN sexton.executions e ON e.id = last.id
            WHERE e.state = 'pending' AND e.attempt = 1 AND e.started_at IS NULL
              AND (e.own_key OR e.unique_key IS NOT NULL)
            ORDER BY e.id FOR NO KEY UPDATE OF e)
        UPDATE sexton.executions e SET params = l.params, labels = l.labels, rev = e.rev + 1,
            scheduled_for = CASE l.if_exists WHEN 'postpone' THEN l.due ELSE e.scheduled_for END,
            next_attempt_at = CASE l.if_exists WHEN 'postpone' THEN l.due ELSE e.next_attempt_at END,
            -- It waits for its time, and perhaps for its turn, again; a worker drops the ticket that is in its queue already.
            ticket_published_at = CASE l.if_exists WHEN 'postpone' THEN NULL ELSE e.ticket_published_at END,
            waits = CASE l.if_exists WHEN 'postpone' THEN 'turn' ELSE e.waits END,
            admitted_at = CASE l.if_exists WHEN 'postpone' THEN NULL ELSE e.admitted_at END,
            relay_after = CASE WHEN l.if_exists <> 'postpone' THEN e.relay_after
                WHEN target.one_at_a_time THEN '9999-01-01 00:00:00+00' ELSE l.due END
        FROM l WHERE e.id = l.id;
        is_new := is_new OR FOUND;
    END IF;
    -- A scheduler looks at least once a second; it needs no notification of what is due later than that.
    IF is_new AND is_soon AND sexton.notifies() THEN
        PERFORM pg_notify('sexton', CASE WHEN target.one_at_a_time THEN 'waiters' ELSE 'unpublished' END);
    END IF;
    RETURN QUERY SELECT f.n::integer, f.id, coalesce(f.unique_key, f.key), f.id = f.own_id, coalesce(e.state, 'pending')
        FROM unnest(met, ids, keys, unique_keys) WITH ORDINALITY AS f (id, own_id, key, unique_key, n)
        -- New ones need not be read again.
        LEFT JOIN sexton.executions e ON f.id <> f.own_id AND e.id = f.id
        ORDER BY f.n;
END $$;

-- Enqueues one execution, and returns one row always.
CREATE OR REPLACE FUNCTION sexton.enqueue(
    job text, params jsonb DEFAULT '{}', INOUT key text DEFAULT NULL, run_at timestamptz DEFAULT NULL,
    delay interval DEFAULT NULL, unique_for text DEFAULT 'ever', if_exists text DEFAULT 'keep', labels jsonb DEFAULT '{}',
    OUT execution_id uuid, OUT created boolean, OUT state text)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan SET timezone = 'UTC' AS $$
#variable_conflict use_variable
DECLARE
    called_at CONSTANT timestamptz := clock_timestamp();
    at CONSTANT timestamptz := coalesce(
        run_at, CASE WHEN delay > interval '400 days' THEN 'infinity'
                     WHEN delay < interval '0' THEN called_at ELSE called_at + delay END, called_at);
    due CONSTANT timestamptz := greatest(at, called_at);
    id CONSTANT uuid := sexton.uuid_at(floor(extract(epoch FROM called_at) * 4096000)::bigint);
    target record;
    execution_key text;
    merged jsonb;
    problems text;
    excessive text;
    violations text;
BEGIN
    params := nullif(params, 'null');
    SELECT j.id, j.name, j.status, j.task_type, j.pool, j.target, j.params, j.idempotency_template,
           j.overlap IN ('queue', 'replace') AS one_at_a_time,
           EXISTS (SELECT FROM sexton.offers o WHERE o.task_type = j.task_type AND o.params_schema IS NOT NULL) AS checked
    INTO target FROM sexton.jobs j WHERE j.name = enqueue.job AND j.deleted_at IS NULL FOR KEY SHARE OF j;
    IF target.status IS DISTINCT FROM 'active' OR starts_with(job, 'verify.') OR starts_with(job, 'foreign.') THEN
        PERFORM sexton.refuse_job(job);
    END IF;
    unique_for := coalesce(unique_for, 'ever');
    if_exists := coalesce(if_exists, 'keep');
    problems := CASE WHEN jsonb_typeof(params) <> 'object' THEN 'params is not an object'
        ELSE sexton.enqueue_problems(key, unique_for, if_exists, at, called_at, run_at IS NOT NULL AND delay IS NOT NULL,
                                     labels) END;
    IF problems IS NULL THEN
        merged := target.params || coalesce(params, '{}');
        excessive := sexton.params_problem(merged);
        IF target.checked AND excessive IS NULL THEN
            violations := sexton.violations_of_all(
                sexton.schemas_in_use(target.task_type, target.pool, called_at), merged);
        END IF;
    END IF;
    IF problems IS NOT NULL OR excessive IS NOT NULL OR violations IS NOT NULL THEN
        RAISE EXCEPTION 'job "%": %', job, coalesce(problems, excessive, violations)
            USING ERRCODE = CASE WHEN problems IS NOT NULL THEN 'SX010' WHEN excessive IS NOT NULL THEN 'SX011' ELSE 'SX012' END,
            HINT = 'Nothing was enqueued. Correct what the message names, and call again.';
    END IF;
    execution_key := sexton.enqueued_key(key, unique_for, due, id);
    INSERT INTO sexton.executions (id, job_id, execution_key, own_key, unique_key, idempotency_key, scheduled_for, state,
        next_attempt_at, task_type, pool, target, params, labels, claimed_by, claimed_at, relay_after, waits)
    VALUES (id, target.id, execution_key, key IS NOT NULL AND unique_for <> 'open',
            CASE WHEN unique_for = 'open' THEN key END,
            sexton.idempotency_key(target.idempotency_template, target.name, execution_key),
            due, 'pending', due, target.task_type, target.pool, target.target, merged,
            CASE WHEN labels NOT IN ('{}', 'null') THEN labels END, sexton.caller(), called_at,
            CASE WHEN target.one_at_a_time THEN timestamptz '9999-01-01 00:00:00+00' ELSE due END,
            CASE WHEN target.one_at_a_time OR due > called_at THEN 'turn' END)
    ON CONFLICT DO NOTHING;
    IF FOUND THEN
        key := CASE WHEN unique_for = 'open' THEN key ELSE execution_key END;
        execution_id := id;
        state := 'pending';
        created := true;
        IF due < called_at + interval '2 seconds' AND sexton.notifies() THEN
            PERFORM pg_notify('sexton', CASE WHEN target.one_at_a_time THEN 'waiters' ELSE 'unpublished' END);
        END IF;
        RETURN;
    END IF;
    -- What becomes of a key that is taken is one rule, for one item and for many.
    SELECT m.key, m.execution_id, m.created, m.state INTO key, execution_id, created, state
    FROM sexton.enqueue_many(job, jsonb_build_array(jsonb_build_object(
        'params', coalesce(params, '{}'), 'key', key, 'run_at', due, 'unique_for', unique_for,
        'if_exists', if_exists, 'labels', labels))) m;
END $$;
