-- A table for each question about executions that have not ended, kept by triggers: rows are inserted and deleted, and
-- never changed. The executions' own indexes never change.
DROP INDEX sexton.executions_unpublished, sexton.executions_unpublished_nominal, sexton.executions_running,
    sexton.executions_waiting, sexton.executions_active, sexton.executions_waiters, sexton.executions_failed, sexton.executions_ended;

CREATE TABLE sexton.waiting (id uuid PRIMARY KEY, next_attempt_at timestamptz NOT NULL);
CREATE INDEX waiting_by_time ON sexton.waiting (next_attempt_at);
CREATE TABLE sexton.running (id uuid PRIMARY KEY);
CREATE TABLE sexton.under_way (job_id uuid, id uuid, PRIMARY KEY (job_id, id));
CREATE TABLE sexton.unpublished (id uuid PRIMARY KEY, pool text, relay_after timestamptz, scheduled_for timestamptz);
CREATE INDEX unpublished_by_pool ON sexton.unpublished (pool, relay_after, scheduled_for, id);
CREATE INDEX unpublished_by_time ON sexton.unpublished (scheduled_for, id);
CREATE TABLE sexton.ended (own_key boolean, finished_at timestamptz, id uuid);
CREATE INDEX ended_by_age ON sexton.ended (own_key, finished_at, id);

CREATE FUNCTION sexton.executions_begin() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO sexton.waiting SELECT id, next_attempt_at FROM fresh WHERE state IN ('pending', 'retrying');
    INSERT INTO sexton.under_way SELECT job_id, id FROM fresh WHERE state IN ('pending', 'running', 'retrying');
    INSERT INTO sexton.unpublished SELECT id, pool, relay_after, scheduled_for FROM fresh
    WHERE ticket_published_at IS NULL;
    RETURN NULL;
END $$;
CREATE TRIGGER executions_begin AFTER INSERT ON sexton.executions REFERENCING NEW TABLE AS fresh
    FOR EACH STATEMENT EXECUTE FUNCTION sexton.executions_begin();

CREATE FUNCTION sexton.executions_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF EXISTS (SELECT FROM fresh WHERE state = 'running') THEN
        DELETE FROM sexton.waiting w USING fresh f WHERE w.id = f.id AND f.state = 'running';
        INSERT INTO sexton.running SELECT id FROM fresh WHERE state = 'running' ON CONFLICT DO NOTHING;
    END IF;
    IF EXISTS (SELECT FROM fresh WHERE state IN ('pending', 'retrying')) THEN
        DELETE FROM sexton.running r USING fresh f WHERE r.id = f.id AND f.state IN ('pending', 'retrying');
        INSERT INTO sexton.waiting SELECT id, next_attempt_at FROM fresh WHERE state IN ('pending', 'retrying')
        ON CONFLICT (id) DO UPDATE SET next_attempt_at = excluded.next_attempt_at
        WHERE waiting.next_attempt_at IS DISTINCT FROM excluded.next_attempt_at;
        DELETE FROM sexton.unpublished u USING fresh f WHERE u.id = f.id AND f.ticket_published_at IS NOT NULL;
    END IF;
    IF EXISTS (SELECT FROM fresh WHERE state NOT IN ('pending', 'running', 'retrying')) THEN
        DELETE FROM sexton.running r USING fresh f WHERE r.id = f.id
            AND f.state NOT IN ('pending', 'running', 'retrying');
        DELETE FROM sexton.under_way u USING fresh f WHERE u.job_id = f.job_id AND u.id = f.id
            AND f.state NOT IN ('pending', 'running', 'retrying');
        INSERT INTO sexton.ended SELECT own_key, finished_at, id FROM fresh
        WHERE state IN ('succeeded', 'cancelled', 'skipped', 'discarded');
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER executions_change AFTER UPDATE ON sexton.executions REFERENCING NEW TABLE AS fresh
    FOR EACH STATEMENT EXECUTE FUNCTION sexton.executions_change();

INSERT INTO sexton.waiting SELECT id, next_attempt_at FROM sexton.executions WHERE state IN ('pending', 'retrying');
INSERT INTO sexton.running SELECT id FROM sexton.executions WHERE state = 'running';
INSERT INTO sexton.under_way SELECT job_id, id FROM sexton.executions WHERE state IN ('pending', 'running', 'retrying');
INSERT INTO sexton.ended SELECT own_key, finished_at, id FROM sexton.executions
WHERE state IN ('succeeded', 'cancelled', 'skipped', 'discarded');
