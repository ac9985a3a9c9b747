SET LOCAL lock_timeout = '3s';

-- As 0010 made it.

-- What is wrong with params, whatever the job; null: nothing. The cheap conditions come first: few params are large.
CREATE OR REPLACE FUNCTION sexton.params_problem(params jsonb) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE
        WHEN pg_column_size(params) > 32768 AND octet_length(params::text) > 262144
        THEN 'the params have more than 262,144 bytes'
        WHEN pg_column_size(params) > 300
            AND jsonb_path_exists(params, 'strict $.**{64 to last} ? (@.type() == "object" || @.type() == "array")')
        THEN 'the params are nested more than 64 levels deep' END
$$;

DROP FUNCTION sexton.holds_rounded_integer(jsonb);
