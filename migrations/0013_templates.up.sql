SET LOCAL lock_timeout = '3s';

-- Templates: placeholders in the texts of a job's params and in its idempotency key, which are filled when an execution is
-- made, here alone, for schedulers, operators and callers. docs/reference/jobs.md#templates describes them; the jobs
-- file refuses what these functions could not fill.

ALTER TABLE sexton.jobs ADD templated boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN sexton.jobs.templated IS 'Whether its params or its idempotency key have placeholders to fill.';

-- Jobs that are there are looked at when they are applied again: until then their braces mean nothing.
CREATE FUNCTION sexton.mark_templates() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    NEW.templated := strpos(NEW.params::text, '{{') > 0 OR strpos(coalesce(NEW.idempotency_template, ''), '{{') > 0;
    RETURN NEW;
END $$;
CREATE TRIGGER mark_templates BEFORE INSERT OR UPDATE OF params, idempotency_template ON sexton.jobs
    FOR EACH ROW EXECUTE FUNCTION sexton.mark_templates();

-- What placeholders can name. An unknown previous_scheduled_for is null.
CREATE FUNCTION sexton.template_values(
    job text, zone text, execution_key text, scheduled_for timestamptz, previous_scheduled_for timestamptz, params jsonb)
RETURNS jsonb LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT jsonb_build_object('job', job, 'zone', zone, 'execution_key', execution_key, 'scheduled_for', scheduled_for,
                              'previous_scheduled_for', previous_scheduled_for, 'params', params)
$$;

-- An instant in the words of strftime, in a zone; without a format in UTC, to the second. None of the values has a
-- percent sign, so the order of the replacements does not matter.
CREATE FUNCTION sexton.format_instant(at timestamptz, format text, zone text) RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN format IS NULL THEN to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
        ELSE replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(
            format, '%Y', to_char(l.wall, 'YYYY')), '%m', to_char(l.wall, 'MM')), '%d', to_char(l.wall, 'DD')),
            '%H', to_char(l.wall, 'HH24')), '%M', to_char(l.wall, 'MI')), '%S', to_char(l.wall, 'SS')),
            '%y', to_char(l.wall, 'YY')), '%j', to_char(l.wall, 'DDD')), '%G', to_char(l.wall, 'IYYY')),
            '%V', to_char(l.wall, 'IW')), '%u', to_char(l.wall, 'ID')), '%F', to_char(l.wall, 'YYYY-MM-DD')),
            '%T', to_char(l.wall, 'HH24:MI:SS')), '%s', floor(extract(epoch FROM at))::bigint::text) END
    FROM (SELECT at AT TIME ZONE zone AS wall) l
$$;

-- A text with its placeholders filled, once: what a value brings is not looked at again. What is no placeholder stays, and
-- what is not known (yet).
CREATE FUNCTION sexton.filled_text(template text, known jsonb) RETURNS text LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' AS $$
DECLARE
    done text := '';
    rest text := template;
    place integer;
    found text[];
BEGIN
    LOOP
        place := strpos(rest, '{{');
        EXIT WHEN place = 0;
        done := done || left(rest, place - 1);
        rest := substr(rest, place);
        -- The whole, the quoted braces, the name, the format.
        found := regexp_match(rest, '^(\{\{ *(?:"(\{\{)"|(job|execution_key|(?:previous_)?scheduled_for|(?:params|upstream)(?:\.[A-Za-z0-9_-]+)+)'
            '(?: *\| *date\( *"([^"]*)" *\))?) *\}\})');
        IF found IS NULL OR NOT known ? split_part(found[3], '.', 1) THEN
            done := done || '{{';
            rest := substr(rest, 3);
            CONTINUE;
        END IF;
        done := done || coalesce(found[2], CASE
            WHEN found[3] IN ('scheduled_for', 'previous_scheduled_for')
            THEN sexton.format_instant((known ->> found[3])::timestamptz, found[4], known ->> 'zone')
            ELSE known #>> string_to_array(found[3], '.') END, '');
        rest := substr(rest, length(found[1]) + 1);
    END LOOP;
    RETURN done || rest;
END $$;

-- A value whose texts are filled. A text that is nothing but the name of a param or a result becomes that, whatever its type.
CREATE FUNCTION sexton.filled(value jsonb, known jsonb) RETURNS jsonb LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    alone text;
BEGIN
    IF strpos(value::text, '{{') = 0 THEN
        RETURN value;
    END IF;
    CASE jsonb_typeof(value)
        WHEN 'object' THEN
            RETURN (SELECT jsonb_object_agg(f.key, sexton.filled(f.value, known)) FROM jsonb_each(value) f);
        WHEN 'array' THEN
            RETURN (SELECT jsonb_agg(sexton.filled(i.item, known) ORDER BY i.n)
                    FROM jsonb_array_elements(value) WITH ORDINALITY AS i (item, n));
        WHEN 'string' THEN
            alone := substring(value #>> '{}' FROM
                '^\{\{ *((?:params|upstream)(?:\.[A-Za-z0-9_-]+)+|previous_scheduled_for) *\}\}$');
            IF known ? split_part(alone, '.', 1) AND (alone <> 'previous_scheduled_for' OR known -> alone = 'null') THEN
                RETURN coalesce(known #> string_to_array(alone, '.'), 'null');
            END IF;
            RETURN to_jsonb(sexton.filled_text(value #>> '{}', known));
        ELSE
            RETURN value;
    END CASE;
END $$;

-- An idempotency key whose placeholders are filled; null stands for {job}:{execution_key}.
CREATE FUNCTION sexton.filled_key(template text, known jsonb) RETURNS text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp AS $$
    SELECT sexton.filled_text(
        regexp_replace(coalesce(template, '{job}:{execution_key}'), '(?<!\{)\{(job|execution_key)\}(?!\})', '{{ \1 }}', 'g'),
        known)
$$;

-- The `params` and the `idempotency_key` of an execution of a job with templates, for a caller whose params are `given`: they
-- take the place of the job's, and are no templates. `problem` is what is wrong with them; null: nothing.
CREATE FUNCTION sexton.filled_execution(own jsonb, given jsonb, template text, known jsonb) RETURNS jsonb
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    to_fill CONSTANT jsonb := own - ARRAY(SELECT jsonb_object_keys(given));
    idempotency_key CONSTANT text := sexton.filled_key(template, known);
    problem text;
BEGIN
    SELECT string_agg(w.wrong, '; ') INTO problem FROM (
        SELECT DISTINCT n.name || CASE
            WHEN n.name = 'previous_scheduled_for' THEN ' is known of a job with a schedule only, when it fires or is triggered'
            WHEN coalesce(n.value, 'null') = 'null' THEN ' is missing'
            ELSE ' is an object or a list, of which no idempotency key can consist' END AS wrong
        FROM (
            SELECT m.name[1] AS name, m.of_key, known #> string_to_array(m.name[1], '.') AS value
            FROM (
                SELECT false AS of_key, regexp_matches(to_fill::text,
                    '\{\{ *(previous_scheduled_for|params(?:\.[A-Za-z0-9_-]+)+)', 'g') AS name
                UNION ALL
                SELECT true, regexp_matches(template,
                    '\{\{ *(previous_scheduled_for|params(?:\.[A-Za-z0-9_-]+)+)', 'g')) m) n
        WHERE coalesce(n.value, 'null') = 'null' OR n.of_key AND jsonb_typeof(n.value) IN ('object', 'array')
        ORDER BY 1) w;
    RETURN jsonb_build_object(
        'params', sexton.filled(to_fill, known) || given, 'idempotency_key', idempotency_key,
        'problem', CASE WHEN problem IS NOT NULL THEN problem
            WHEN octet_length(idempotency_key) > 1024 THEN 'its idempotency key has more than 1,024 bytes'
            WHEN idempotency_key ~ '[[:cntrl:]]' THEN 'its idempotency key holds a control character' END);
END $$;

-- Everybody may execute a new function otherwise.
REVOKE ALL ON FUNCTION sexton.mark_templates(), sexton.filled_execution(jsonb, jsonb, text, jsonb), sexton.filled_key(text, jsonb),
    sexton.filled(jsonb, jsonb), sexton.filled_text(text, jsonb), sexton.format_instant(timestamptz, text, text),
    sexton.template_values(text, text, text, timestamptz, timestamptz, jsonb) FROM PUBLIC;
