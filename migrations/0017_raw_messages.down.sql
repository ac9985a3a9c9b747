-- What was discarded is in this table only; so is what an operator wants back and the sweep has not put back yet.
DO $$ BEGIN
    IF EXISTS (SELECT FROM raw_messages WHERE restore_at IS NOT NULL) THEN
        RAISE EXCEPTION 'raw messages wait to be put back: let a scheduler run until `sexton failed raw list` shows none';
    END IF;
END $$;
DROP TABLE raw_messages;
