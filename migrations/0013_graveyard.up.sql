-- The graveyard: a row for each failed or discarded execution with what operators look for, and the groups
-- of what failed alike with their counts.

-- Rather not at all than holding up everybody behind somebody who reads for long. Run again, it goes on.
SET LOCAL lock_timeout = '3s';

-- Nullable: no row is written. A worker of the version before leaves it null, and a scheduler fills it in.
ALTER TABLE executions ADD COLUMN fingerprint text;
COMMENT ON COLUMN executions.fingerprint IS 'Of the failure for which it is parked: 16 hexadecimal digits, see shared/model/src/fingerprint.rs; null: not parked, or not read yet.';

-- Kept by triggers rather than by the statements that fail executions: a program of the version before and
-- a hand in psql keep it as well. Rows that never fail cost no more than the condition.
CREATE FUNCTION keep_failure() RETURNS trigger LANGUAGE plpgsql AS $$
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
        fingerprint = EXCLUDED.fingerprint, worker = EXCLUDED.worker, words = EXCLUDED.words,
        params = EXCLUDED.params;
    RETURN NULL;
END $$;
CREATE TRIGGER keep_new_failure AFTER INSERT ON executions
    FOR EACH ROW WHEN (NEW.state IN ('failed', 'discarded')) EXECUTE FUNCTION keep_failure();
CREATE TRIGGER keep_changed_failure AFTER UPDATE OF state, fingerprint, pool, params ON executions
    FOR EACH ROW WHEN (OLD.state IN ('failed', 'discarded') OR NEW.state IN ('failed', 'discarded'))
    EXECUTE FUNCTION keep_failure();
CREATE TRIGGER keep_removed_failure AFTER DELETE ON executions
    FOR EACH ROW WHEN (OLD.state IN ('failed', 'discarded')) EXECUTE FUNCTION keep_failure();

-- What fails next is another failure. A program of the version before that fails it does not write the column,
-- and must not leave the one before in it.
CREATE FUNCTION forget_fingerprint() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.fingerprint := NULL;
    RETURN NEW;
END $$;
CREATE TRIGGER forget_fingerprint BEFORE UPDATE OF state ON executions
    FOR EACH ROW WHEN (OLD.state IN ('failed', 'discarded') AND NEW.state NOT IN ('failed', 'discarded'))
    EXECUTE FUNCTION forget_fingerprint();

-- Small and dense, apart from the millions that ended well: what executions are written for and renewed by
-- has no further index.
CREATE TABLE failures (
    execution_id uuid PRIMARY KEY,
    discarded    boolean NOT NULL,
    job_id       uuid NOT NULL,
    task_type    text NOT NULL,
    pool         text NOT NULL,
    failed_at    timestamptz NOT NULL,
    error_class  text,
    fingerprint  text,
    worker       text,
    words        tsvector NOT NULL,
    params       jsonb NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);

-- One for each filter that can stand alone; each in the order of the list. The first holds the fingerprint
-- as well, so that muted groups are passed over without their rows.
CREATE INDEX failures_by_time ON failures (discarded, failed_at, execution_id) INCLUDE (fingerprint);
CREATE INDEX failures_by_job ON failures (discarded, job_id, failed_at, execution_id);
CREATE INDEX failures_by_task_type ON failures (discarded, task_type, failed_at, execution_id);
CREATE INDEX failures_by_pool ON failures (discarded, pool, failed_at, execution_id);
CREATE INDEX failures_by_class ON failures (discarded, error_class, failed_at, execution_id);
CREATE INDEX failures_by_fingerprint ON failures (discarded, fingerprint, failed_at, execution_id);
CREATE INDEX failures_by_worker ON failures (discarded, worker, failed_at, execution_id);
-- Short lists of what is pending: every search reads them.
CREATE INDEX failures_by_words ON failures USING gin (words) WITH (gin_pending_list_limit = 256);
CREATE INDEX failures_by_params ON failures USING gin (params jsonb_path_ops) WITH (gin_pending_list_limit = 256);
CREATE INDEX failures_unread ON failures (execution_id) WHERE fingerprint IS NULL;

COMMENT ON TABLE failures IS 'What is failed or discarded, for those who look for it: one row for each such execution, kept by a trigger.';
COMMENT ON COLUMN failures.execution_id IS 'The execution. Without a foreign key: the trigger removes the row.';
COMMENT ON COLUMN failures.discarded IS 'Whether it was discarded; otherwise it is failed.';
COMMENT ON COLUMN failures.job_id IS 'executions.job_id.';
COMMENT ON COLUMN failures.task_type IS 'executions.task_type.';
COMMENT ON COLUMN failures.pool IS 'executions.pool.';
COMMENT ON COLUMN failures.failed_at IS 'executions.finished_at: when it failed, or was discarded or restored.';
COMMENT ON COLUMN failures.error_class IS 'executions.error_class, at most 200 characters.';
COMMENT ON COLUMN failures.fingerprint IS 'executions.fingerprint; null: not read yet.';
COMMENT ON COLUMN failures.worker IS 'Name of the worker that ran the last attempt, or its process''s id; null: none was ever opened.';
COMMENT ON COLUMN failures.words IS 'The words of executions.error_message.';
COMMENT ON COLUMN failures.params IS 'executions.params.';

-- Appended to by every failure, and by whatever ends one; nobody waits for anybody. Folded by schedulers.
CREATE TABLE failure_changes (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    fingerprint  text NOT NULL,
    job_id       uuid NOT NULL,
    change       smallint NOT NULL CHECK (change IN (-1, 1)),
    failed_at    timestamptz,
    execution_id uuid NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
COMMENT ON TABLE failure_changes IS 'What failed or is failed no more, and is not folded into failure_counts yet.';
COMMENT ON COLUMN failure_changes.id IS 'Serial.';
COMMENT ON COLUMN failure_changes.fingerprint IS 'The group.';
COMMENT ON COLUMN failure_changes.job_id IS 'The job.';
COMMENT ON COLUMN failure_changes.change IS '1: there is one more; -1: one less.';
COMMENT ON COLUMN failure_changes.failed_at IS 'When it failed; null: it did not fail now (restored, or ended).';
COMMENT ON COLUMN failure_changes.execution_id IS 'The execution.';

CREATE FUNCTION count_failure() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' AND NOT OLD.discarded AND OLD.fingerprint IS NOT NULL THEN
        INSERT INTO failure_changes (fingerprint, job_id, change, execution_id)
        VALUES (OLD.fingerprint, OLD.job_id, -1, OLD.execution_id);
    END IF;
    IF TG_OP <> 'DELETE' AND NOT NEW.discarded AND NEW.fingerprint IS NOT NULL THEN
        INSERT INTO failure_changes (fingerprint, job_id, change, failed_at, execution_id)
        VALUES (NEW.fingerprint, NEW.job_id, 1,
                -- What is restored has not failed again.
                CASE WHEN TG_OP = 'INSERT' OR OLD.fingerprint IS DISTINCT FROM NEW.fingerprint
                     THEN NEW.failed_at END, NEW.execution_id);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER count_failure AFTER INSERT OR DELETE ON failures
    FOR EACH ROW EXECUTE FUNCTION count_failure();
CREATE TRIGGER count_changed_failure AFTER UPDATE ON failures
    FOR EACH ROW WHEN ((OLD.discarded, OLD.fingerprint, OLD.job_id)
                       IS DISTINCT FROM (NEW.discarded, NEW.fingerprint, NEW.job_id))
    EXECUTE FUNCTION count_failure();

CREATE TABLE failure_counts (
    fingerprint text NOT NULL,
    job_id      uuid NOT NULL,
    standing    bigint NOT NULL,
    PRIMARY KEY (fingerprint, job_id)
) WITH (fillfactor = 70);
COMMENT ON TABLE failure_counts IS 'How many executions are failed, by group and job, as far as failure_changes are folded.';
COMMENT ON COLUMN failure_counts.fingerprint IS 'The group.';
COMMENT ON COLUMN failure_counts.job_id IS 'The job.';
COMMENT ON COLUMN failure_counts.standing IS 'How many. Below zero while a change that made one more is not folded yet.';

CREATE TABLE failure_hours (
    fingerprint text NOT NULL,
    hour        timestamptz NOT NULL,
    failed      bigint NOT NULL,
    PRIMARY KEY (fingerprint, hour)
) WITH (fillfactor = 70);
COMMENT ON TABLE failure_hours IS 'How many executions failed in each hour, whatever became of them since; kept for eight days.';
COMMENT ON COLUMN failure_hours.fingerprint IS 'The group.';
COMMENT ON COLUMN failure_hours.hour IS 'Its beginning, in UTC.';
COMMENT ON COLUMN failure_hours.failed IS 'How many.';

CREATE TABLE failure_groups (
    fingerprint text PRIMARY KEY,
    error_class text,
    pattern     text,
    example     uuid,
    state       text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'muted', 'resolved')),
    note        text,
    decided_by  text,
    decided_at  timestamptz,
    first_seen  timestamptz,
    last_seen   timestamptz
) WITH (fillfactor = 70);
COMMENT ON TABLE failure_groups IS 'What failed alike, and what operators decided about it.';
COMMENT ON COLUMN failure_groups.fingerprint IS 'executions.fingerprint.';
COMMENT ON COLUMN failure_groups.error_class IS 'The class that all of them have; null: not read yet.';
COMMENT ON COLUMN failure_groups.pattern IS 'Their message with placeholders for what differs; null: not read yet.';
COMMENT ON COLUMN failure_groups.example IS 'One of them, which may be gone.';
COMMENT ON COLUMN failure_groups.state IS 'open, muted (left out of lists) or resolved; it has come back if last_seen is after decided_at.';
COMMENT ON COLUMN failure_groups.note IS 'What operators noted, at most 2,000 characters.';
COMMENT ON COLUMN failure_groups.decided_by IS 'Who set the state last; null: nobody.';
COMMENT ON COLUMN failure_groups.decided_at IS 'When; null: never.';
COMMENT ON COLUMN failure_groups.first_seen IS 'When the first of them failed.';
COMMENT ON COLUMN failure_groups.last_seen IS 'When the last of them failed.';

-- What failed before this migration is brought in afterwards, in portions: there may be millions, and this
-- transaction holds up everybody.
CREATE TABLE failures_fill (
    one       boolean PRIMARY KEY DEFAULT true CHECK (one),
    filled_to uuid,
    done_at   timestamptz
);
COMMENT ON TABLE failures_fill IS 'One row: how far executions of before the table failures were looked through.';
COMMENT ON COLUMN failures_fill.one IS 'There is one row.';
COMMENT ON COLUMN failures_fill.filled_to IS 'executions.id up to which they were; null: none yet.';
COMMENT ON COLUMN failures_fill.done_at IS 'When the last of them was; null: some are missing still.';
INSERT INTO failures_fill (done_at) SELECT CASE WHEN NOT EXISTS (SELECT FROM executions) THEN now() END;
