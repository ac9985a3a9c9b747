-- Two amends of the graveyard: a failure keeps the name of its worker, and raw messages that there was no
-- room for are counted.

-- As in 0013, but for the name: whoever is discarded, restored or edited after its worker's row is gone would
-- be left with a number in its place. A row that is there is of the same failure: what ends one removes it.
CREATE OR REPLACE FUNCTION keep_failure() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' OR NEW.state NOT IN ('failed', 'discarded') THEN
        DELETE FROM failures WHERE execution_id = OLD.id;
        RETURN NULL;
    END IF;
    INSERT INTO failures (execution_id, discarded, job_id, task_type, pool, failed_at, error_class,
                          fingerprint, worker, words, params)
    VALUES (NEW.id, NEW.state = 'discarded', NEW.job_id, left(NEW.task_type, 200), left(NEW.pool, 200),
            NEW.finished_at, left(NEW.error_class, 200), left(NEW.fingerprint, 16),
            (SELECT left(coalesce(i.name, a.worker_id::text), 200)
             FROM attempts a LEFT JOIN instances i ON i.id = a.worker_id
             WHERE a.execution_id = NEW.id ORDER BY a.number DESC LIMIT 1),
            -- Whatever is neither a letter nor a digit of ASCII separates words, as in
            -- shared/model/src/graveyard/text.rs, whatever the database's locale is.
            to_tsvector('simple', regexp_replace(left(coalesce(NEW.error_message, ''), 4000),
                                                 '[\x01-\x2f\x3a-\x40\x5b-\x60\x7b-\x7f]+', ' ', 'g')),
            NEW.params)
    ON CONFLICT (execution_id) DO UPDATE SET
        discarded = EXCLUDED.discarded, job_id = EXCLUDED.job_id, task_type = EXCLUDED.task_type,
        pool = EXCLUDED.pool, failed_at = EXCLUDED.failed_at, error_class = EXCLUDED.error_class,
        fingerprint = EXCLUDED.fingerprint, worker = coalesce(failures.worker, EXCLUDED.worker),
        words = EXCLUDED.words, params = EXCLUDED.params;
    RETURN NULL;
END $$;

CREATE TABLE raw_overflow (
    one      boolean PRIMARY KEY DEFAULT true CHECK (one),
    messages bigint NOT NULL CHECK (messages >= 0),
    bytes    bigint NOT NULL CHECK (bytes >= 0),
    at_least boolean NOT NULL,
    pass     timestamptz NOT NULL
);
COMMENT ON TABLE raw_overflow IS 'One row: what the last sweep met in the failed queue and did not write into raw_messages, since that was full. It is in the queue still. No row: never anything.';
COMMENT ON COLUMN raw_overflow.one IS 'There is one row.';
COMMENT ON COLUMN raw_overflow.messages IS 'How many messages.';
COMMENT ON COLUMN raw_overflow.bytes IS 'Bytes of their bodies.';
COMMENT ON COLUMN raw_overflow.at_least IS 'The pass did not see the whole queue: there may be more.';
COMMENT ON COLUMN raw_overflow.pass IS 'When that pass began.';
COMMENT ON COLUMN raw_messages.gone_at IS 'When a pass through the whole queue had removed it, or did not meet it any more; null: it is in the queue.';
COMMENT ON COLUMN raw_messages.copies IS 'How many equal messages the pass of last_seen met; of one that is being discarded, what passes that broke off met before is added.';
