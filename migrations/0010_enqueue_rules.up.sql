SET LOCAL lock_timeout = '3s';

-- Programs enqueue executions in their own transactions, by functions alone: they see no table, and every rule about
-- keys stands here once, for all languages. docs/reference/sql-functions.md describes them.

-- The next functions are expressions, which PostgreSQL writes into the statements that call them; only the functions of
-- this schema do, and those pin the search_path.

-- Identifiers of version 7 in the order of the calls: milliseconds, then 4096ths of one, then chance. `tick` counts
-- 4096ths of a millisecond since 1970.
CREATE FUNCTION sexton.uuid_at(tick bigint) RETURNS uuid LANGUAGE sql VOLATILE AS $$
    SELECT (lpad(to_hex(tick >> 12), 12, '0') || '7' || lpad(to_hex(tick & 4095), 3, '0')
            || right(replace(gen_random_uuid()::text, '-', ''), 16))::uuid
$$;

-- The seconds of a period such as 90s, 15m, 1h or 7d.
CREATE FUNCTION sexton.period_seconds(period text) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT left(period, -1)::bigint * CASE right(period, 1) WHEN 's' THEN 1 WHEN 'm' THEN 60 WHEN 'h' THEN 3600 ELSE 86400 END
$$;

-- The execution key of an enqueued execution. A key that only counts for a time, or among the open ones, is another
-- one for each execution.
CREATE FUNCTION sexton.enqueued_key(key text, unique_for text, due timestamptz, id uuid) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE
        WHEN key IS NULL OR unique_for = 'open' THEN 'enqueued-' || id::text
        WHEN unique_for = 'ever' THEN key
        ELSE key || to_char(
            to_timestamp(floor(extract(epoch FROM due) / sexton.period_seconds(unique_for))
                         * sexton.period_seconds(unique_for)) AT TIME ZONE 'UTC', '"@"YYYY-MM-DD"T"HH24:MI:SS"Z"') END
$$;

-- The key by which a task recognises its own repetitions.
CREATE FUNCTION sexton.idempotency_key(template text, job text, execution_key text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN template IS NULL THEN job || ':' || execution_key
        ELSE replace(replace(template, '{job}', job), '{execution_key}', execution_key) END
$$;

-- Who enqueues: the caller's log-in, address and backend.
CREATE FUNCTION sexton.caller() RETURNS text LANGUAGE sql STABLE AS $$
    SELECT session_user || '@' || coalesce(host(inet_client_addr()), 'local') || ':' || pg_backend_pid()
$$;

-- What is wrong with an enqueue apart from its params; null: nothing. `at` is when it is to run.
CREATE FUNCTION sexton.enqueue_problems(
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

-- What is wrong with the form of an item of enqueue_many; null: nothing.
CREATE FUNCTION sexton.item_problems(item jsonb) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT nullif(concat_ws('; ',
        CASE WHEN jsonb_typeof(item) <> 'object' THEN 'it is not an object'
             WHEN item - ARRAY['params', 'key', 'run_at', 'delay', 'unique_for', 'if_exists', 'labels'] <> '{}'
             THEN 'unknown fields ' || jsonb_path_query_array(
                 item - ARRAY['params', 'key', 'run_at', 'delay', 'unique_for', 'if_exists', 'labels'],
                 '$.keyvalue().key')::text END,
        CASE WHEN jsonb_typeof(item -> 'params') NOT IN ('object', 'null') THEN 'params is not an object' END,
        CASE WHEN jsonb_typeof(item -> 'key') NOT IN ('string', 'null') THEN 'key is not a text' END,
        CASE WHEN item ->> 'run_at' !~
                 '^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?\s?(Z|[+-]\d\d(:?\d\d){0,2})$'
             THEN 'run_at is no RFC 3339 time with an offset' END,
        -- PostgreSQL's words and ours, for what has one length only: no months.
        CASE WHEN item ->> 'delay' !~ '^(\s*\d{1,15}\s*microseconds?|(\s*\d{1,9}(\.\d{1,6})?\s*(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?))+)\s*$'
              AND item ->> 'delay' !~ '^\s*(\d{1,5}\s*(d|days?|h|hours?)\s*)*(\d{1,6}\s*(m|mins?|minutes?)\s*)?'
                                      '(\d{1,6}\s*(s|secs?|seconds?)\s*)?(\d{1,5}:\d\d(:\d\d(\.\d{1,6})?)?)?$'
             THEN 'delay is none such as 90s, 10 minutes or 1 day 02:30:00' END), '')
$$;

-- What is wrong with params, whatever the job; null: nothing. The cheap conditions come first: few params are large.
CREATE FUNCTION sexton.params_problem(params jsonb) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE
        WHEN pg_column_size(params) > 32768 AND octet_length(params::text) > 262144
        THEN 'the params have more than 262,144 bytes'
        WHEN pg_column_size(params) > 300
            AND jsonb_path_exists(params, 'strict $.**{64 to last} ? (@.type() == "object" || @.type() == "array")')
        THEN 'the params are nested more than 64 levels deep' END
$$;

-- What a value lacks of a JSON Schema, as texts that begin with the place; never a value, which may be a secret. It reads
-- the keywords by which most schemas say most of what they say, and only those whose neglect elsewhere can make it
-- accept too much, never refuse too much: a worker checks the rest before it runs the task.
CREATE FUNCTION sexton.params_violations(schema jsonb, value jsonb, place text, root jsonb, depth integer)
RETURNS SETOF text LANGUAGE plpgsql IMMUTABLE
SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    kind text := jsonb_typeof(value);
    types jsonb := CASE jsonb_typeof(schema -> 'type')
        WHEN 'array' THEN schema -> 'type' WHEN 'string' THEN jsonb_build_array(schema -> 'type') END;
    named text := CASE place WHEN '' THEN '/' ELSE place END;
    name text;
    inner_schema jsonb;
    number numeric;
BEGIN
    IF depth > 64 OR schema = 'true' THEN
        RETURN;
    END IF;
    IF schema = 'false' THEN
        RETURN NEXT named || ': is not allowed';
        RETURN;
    END IF;
    IF schema ->> '$ref' ~ '^#(/|$)' AND NOT jsonb_path_exists(root, '$.**{1 to last}."$id"') THEN
        inner_schema := root #> ARRAY(
            SELECT replace(replace(step, '~1', '/'), '~0', '~')
            FROM unnest(string_to_array(substr(schema ->> '$ref', 3), '/')) WITH ORDINALITY AS s (step, n) ORDER BY n);
        IF inner_schema IS NOT NULL THEN
            RETURN QUERY SELECT sexton.params_violations(inner_schema, value, place, root, depth + 1);
        END IF;
    END IF;
    IF types IS NOT NULL AND NOT types ? kind
        AND NOT (kind = 'number' AND types ? 'integer' AND value::numeric = trunc(value::numeric)) THEN
        RETURN NEXT format('%s: must be %s', named,
            (SELECT string_agg(t, ' or ') FROM jsonb_array_elements_text(types) t));
        -- What is not of the type meets no other demand either.
        RETURN;
    END IF;
    IF jsonb_typeof(schema -> 'enum') = 'array' AND NOT EXISTS (
        SELECT FROM jsonb_array_elements(schema -> 'enum') e (allowed) WHERE e.allowed = value) THEN
        RETURN NEXT format('%s: must be one of %s values', named, jsonb_array_length(schema -> 'enum'));
    END IF;
    IF schema ? 'const' AND schema -> 'const' <> value THEN
        RETURN NEXT named || ': must be the constant of the schema';
    END IF;
    IF kind = 'object' THEN
        IF jsonb_typeof(schema -> 'required') = 'array' THEN
            RETURN QUERY SELECT format('%s/%s: is missing', place, r)
                FROM jsonb_array_elements_text(schema -> 'required') r WHERE NOT value ? r;
        END IF;
        FOR name IN SELECT jsonb_object_keys(value) LOOP
            inner_schema := CASE WHEN schema -> 'properties' ? name THEN schema -> 'properties' -> name
                WHEN NOT schema ? 'patternProperties' THEN schema -> 'additionalProperties' END;
            IF inner_schema IS NOT NULL THEN
                RETURN QUERY SELECT sexton.params_violations(
                    inner_schema, value -> name,
                    place || '/' || replace(replace(name, '~', '~0'), '/', '~1'), root, depth + 1);
            END IF;
        END LOOP;
    ELSIF kind = 'array' THEN
        IF jsonb_typeof(schema -> 'minItems') = 'number'
            AND jsonb_array_length(value) < (schema ->> 'minItems')::numeric THEN
            RETURN NEXT format('%s: must have at least %s items', named, schema ->> 'minItems');
        END IF;
        IF jsonb_typeof(schema -> 'maxItems') = 'number'
            AND jsonb_array_length(value) > (schema ->> 'maxItems')::numeric THEN
            RETURN NEXT format('%s: must have at most %s items', named, schema ->> 'maxItems');
        END IF;
        IF schema ? 'items' AND NOT schema ? 'prefixItems' THEN
            RETURN QUERY SELECT sexton.params_violations(
                schema -> 'items', e.item, place || '/' || (e.n - 1), root, depth + 1)
                FROM jsonb_array_elements(value) WITH ORDINALITY AS e (item, n);
        END IF;
    ELSIF kind = 'string' THEN
        IF jsonb_typeof(schema -> 'minLength') = 'number'
            AND char_length(value #>> '{}') < (schema ->> 'minLength')::numeric THEN
            RETURN NEXT format('%s: must have at least %s characters', named, schema ->> 'minLength');
        END IF;
        IF jsonb_typeof(schema -> 'maxLength') = 'number'
            AND char_length(value #>> '{}') > (schema ->> 'maxLength')::numeric THEN
            RETURN NEXT format('%s: must have at most %s characters', named, schema ->> 'maxLength');
        END IF;
    ELSIF kind = 'number' THEN
        number := value::numeric;
        IF jsonb_typeof(schema -> 'minimum') = 'number' AND number < (schema ->> 'minimum')::numeric THEN
            RETURN NEXT format('%s: must be at least %s', named, schema ->> 'minimum');
        END IF;
        IF jsonb_typeof(schema -> 'maximum') = 'number' AND number > (schema ->> 'maximum')::numeric THEN
            RETURN NEXT format('%s: must be at most %s', named, schema ->> 'maximum');
        END IF;
        IF jsonb_typeof(schema -> 'exclusiveMinimum') = 'number'
            AND number <= (schema ->> 'exclusiveMinimum')::numeric THEN
            RETURN NEXT format('%s: must be more than %s', named, schema ->> 'exclusiveMinimum');
        END IF;
        IF jsonb_typeof(schema -> 'exclusiveMaximum') = 'number'
            AND number >= (schema ->> 'exclusiveMaximum')::numeric THEN
            RETURN NEXT format('%s: must be less than %s', named, schema ->> 'exclusiveMaximum');
        END IF;
    END IF;
    IF jsonb_typeof(schema -> 'allOf') = 'array' THEN
        RETURN QUERY SELECT v FROM jsonb_array_elements(schema -> 'allOf') s (one),
            LATERAL sexton.params_violations(s.one, value, place, root, depth + 1) v;
    END IF;
    IF jsonb_typeof(schema -> 'anyOf') = 'array' AND NOT EXISTS (
        SELECT FROM jsonb_array_elements(schema -> 'anyOf') s (one)
        WHERE NOT EXISTS (SELECT sexton.params_violations(s.one, value, place, root, depth + 1))) THEN
        RETURN NEXT named || ': matches none of the schema''s alternatives';
    END IF;
END $$;
-- Whether schedulers are notified at the commit. A session may forbid it (SET sexton.notify = off): a transaction that
-- has notified cannot be prepared, and commits of those that have wait for one another.
CREATE FUNCTION sexton.notifies() RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT coalesce(current_setting('sexton.notify', true), '') <> 'off'
$$;

-- The schemas that the workers at work demand of a task type's params.
CREATE FUNCTION sexton.schemas_in_use(task_type text, pool text, called_at timestamptz) RETURNS jsonb[] LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp AS $$
    SELECT ARRAY(
        SELECT DISTINCT o.params_schema FROM sexton.offers o JOIN sexton.instances i ON i.id = o.instance_id
        WHERE o.task_type = schemas_in_use.task_type AND o.params_schema IS NOT NULL
          AND schemas_in_use.pool = ANY (i.pools) AND i.stopped_at IS NULL
          AND i.heartbeat_at > called_at - interval '30 seconds' LIMIT 20)
$$;

-- What params lack of any of these schemas; null: nothing.
CREATE FUNCTION sexton.violations_of_all(schemas jsonb[], params jsonb) RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp AS $$
    SELECT string_agg(v, '; ') FROM (
        SELECT DISTINCT sexton.params_violations(s, params, '', s, 0) AS v FROM unnest(schemas) s
        -- Earlier drafts read some keywords in another way.
        WHERE NOT s ? '$schema' OR s ->> '$schema' ~ '2020-12'
        ORDER BY 1 LIMIT 20) x
$$;

-- Says why nothing can be enqueued to a job.
CREATE FUNCTION sexton.refuse_job(job text) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF job IS NULL THEN
        RAISE EXCEPTION 'job is null' USING ERRCODE = 'SX010', HINT = 'Name the job.';
    END IF;
    IF starts_with(job, 'verify.') OR starts_with(job, 'foreign.') THEN
        RAISE EXCEPTION 'the platform itself makes the executions of job "%"', job USING ERRCODE = 'SX010',
            HINT = 'Name a job of your own.';
    END IF;
    PERFORM FROM sexton.jobs j WHERE j.name = job;
    IF FOUND THEN
        RAISE EXCEPTION 'job "%" is paused', job USING ERRCODE = 'SX003',
            HINT = 'Enqueue again after an operator has resumed it (sexton jobs resume), or catch this SQLSTATE.';
    END IF;
    PERFORM FROM sexton.jobs j WHERE j.deleted_name = job;
    IF FOUND THEN
        RAISE EXCEPTION 'job "%" was deleted', job USING ERRCODE = 'SX002',
            HINT = 'Apply a job of this name again (sexton jobs apply), or enqueue to another one.';
    END IF;
    RAISE EXCEPTION 'there is no job "%"', job USING ERRCODE = 'SX001',
        HINT = 'Apply it first (sexton jobs apply), or correct the name; sexton jobs list shows all.';
END $$;

-- Everybody may execute a new function otherwise.
REVOKE ALL ON FUNCTION sexton.refuse_job(text), sexton.violations_of_all(jsonb[], jsonb),
    sexton.schemas_in_use(text, text, timestamptz), sexton.notifies(),
    sexton.params_violations(jsonb, jsonb, text, jsonb, integer), sexton.params_problem(jsonb), sexton.item_problems(jsonb),
    sexton.enqueue_problems(text, text, text, timestamptz, timestamptz, boolean, jsonb), sexton.caller(),
    sexton.idempotency_key(text, text, text), sexton.enqueued_key(text, text, timestamptz, uuid),
    sexton.period_seconds(text), sexton.uuid_at(bigint) FROM PUBLIC;
