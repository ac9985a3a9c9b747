SET LOCAL lock_timeout = '3s';

-- Whether params hold an integer beyond 64 bits, or a number as large, that a float would round. The programs hold integers of 64 bits,
-- and others as floats. The fewest digits that name a float are those by which the programs write it.
CREATE FUNCTION sexton.holds_rounded_integer(params jsonb) RETURNS boolean LANGUAGE sql STABLE
SET extra_float_digits = 1 AS $$
    SELECT EXISTS (
        SELECT FROM jsonb_path_query(params, 'strict $.** ? (@.type() == "number" && @.abs() > 9223372036854775807)') AS large,
            CAST(large #>> '{}' AS numeric) AS number
        WHERE number NOT BETWEEN -9223372036854775808 AND 18446744073709551615
            AND CASE WHEN abs(number) > 1.7976931348623157e308 THEN true ELSE number <> number::float8::text::numeric END)
$$;

-- Everybody may execute a new function otherwise.
REVOKE ALL ON FUNCTION sexton.holds_rounded_integer(jsonb) FROM PUBLIC;

-- What is wrong with params, whatever the job; null: nothing. The cheap conditions come first: few params are large, or hold such a
-- number. There is no subquery, so that PostgreSQL can put the function's text in the place of its call.
CREATE OR REPLACE FUNCTION sexton.params_problem(params jsonb) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE
        WHEN pg_column_size(params) > 32768 AND octet_length(params::text) > 262144
        THEN 'the params have more than 262,144 bytes'
        WHEN pg_column_size(params) > 300
            AND jsonb_path_exists(params, 'strict $.**{64 to last} ? (@.type() == "object" || @.type() == "array")')
        THEN 'the params are nested more than 64 levels deep'
        -- By this name the programs' JSON library marks a text that it passes on unread. They could not read the row.
        WHEN jsonb_path_exists(params, '$.**."$serde_json::private::RawValue"')
        THEN 'the params hold the name $serde_json::private::RawValue, which no program could read again; choose another'
        WHEN jsonb_path_exists(params, 'strict $.** ? (@.type() == "number" && @.abs() > 9223372036854775807)')
            AND sexton.holds_rounded_integer(params)
        THEN 'the params hold an integer that does not fit into 64 bits and would be rounded; write it as a text' END
$$;
