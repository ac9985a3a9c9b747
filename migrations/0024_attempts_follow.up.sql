-- The attempts of an execution go with it by a trigger of the statement in place of a foreign key. The key was
-- asked for each attempt that was opened, by a query of its own, for a row which the same statement has locked and
-- changed. Nothing else inserts attempts.
SET LOCAL lock_timeout = '3s';

-- In the order of an open, which would otherwise be in each other's way.
LOCK TABLE executions, attempts IN ACCESS EXCLUSIVE MODE;
ALTER TABLE attempts DROP CONSTRAINT attempts_execution_id_fkey;

CREATE FUNCTION forget_attempts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM attempts a USING gone WHERE a.execution_id = gone.id;
    RETURN NULL;
END $$;
CREATE TRIGGER forget_attempts AFTER DELETE ON executions REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION forget_attempts();
COMMENT ON COLUMN attempts.execution_id IS 'The execution, with which it goes. Not a foreign key: the statement that opens an attempt has the execution''s row locked.';
