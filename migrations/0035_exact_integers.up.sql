SET LOCAL lock_timeout = '3s';

-- What is wrong with params, whatever the job; null: nothing. The cheap conditions come first: few params are large.
-- The programs hold integers of 64 bits, and others as floats: one that would be rounded is refused, as they refuse it.
CREATE OR REPLACE FUNCTION sexton.params_problem(params jsonb) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE
        WHEN pg_column_size(params) > 32768 AND octet_length(params::text) > 262144
        THEN 'the params have more than 262,144 bytes'
        WHEN pg_column_size(params) > 300
            AND jsonb_path_exists(params, 'strict $.**{64 to last} ? (@.type() == "object" || @.type() == "array")')
        THEN 'the params are nested more than 64 levels deep'
        WHEN EXISTS (
            SELECT FROM jsonb_path_query(params, 'strict $.** ? (@.type() == "number" && @.abs() > 9223372036854775807)') AS large,
                CAST(large #>> '{}' AS numeric) AS number
            WHERE number NOT BETWEEN -9223372036854775808 AND 18446744073709551615
                AND CASE WHEN abs(number) > 1e308 THEN true ELSE number <> number::float8::text::numeric END)
        THEN 'the params hold an integer that does not fit into 64 bits and would be rounded; write it as a text' END
$$;
