-- One narrow table of the executions that have not ended, kept by triggers; the executions' own indexes never change.
DROP INDEX sexton.executions_unpublished, sexton.executions_unpublished_nominal, sexton.executions_running,
    sexton.executions_waiting, sexton.executions_active, sexton.executions_waiters, sexton.executions_failed, sexton.executions_ended;

CREATE TABLE sexton.live (
    id              uuid PRIMARY KEY,
    job_id          uuid NOT NULL,
    state           text NOT NULL,
    pool            text NOT NULL,
    scheduled_for   timestamptz NOT NULL,
    relay_after     timestamptz NOT NULL,
    next_attempt_at timestamptz,
    is_published    boolean NOT NULL
) WITH (fillfactor = 80);
CREATE INDEX live_unpublished ON sexton.live (pool, state, relay_after, scheduled_for, id) WHERE NOT is_published;
CREATE INDEX live_unpublished_nominal ON sexton.live (scheduled_for, id) WHERE NOT is_published;
CREATE INDEX live_running ON sexton.live (id) WHERE state = 'running';
CREATE INDEX live_waiting ON sexton.live (next_attempt_at) WHERE state IN ('pending', 'retrying');
CREATE INDEX live_under_way ON sexton.live (job_id);
CREATE TABLE sexton.ended (own_key boolean, finished_at timestamptz, id uuid);
CREATE INDEX ended_by_age ON sexton.ended (own_key, finished_at, id);

CREATE FUNCTION sexton.executions_begin_to_live() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO sexton.live
    SELECT id, job_id, state, pool, scheduled_for, relay_after, next_attempt_at, ticket_published_at IS NOT NULL
    FROM fresh WHERE state IN ('pending', 'running', 'retrying');
    RETURN NULL;
END $$;
CREATE TRIGGER executions_begin_to_live AFTER INSERT ON sexton.executions REFERENCING NEW TABLE AS fresh
    FOR EACH STATEMENT EXECUTE FUNCTION sexton.executions_begin_to_live();

CREATE FUNCTION sexton.executions_go_on() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF EXISTS (SELECT FROM fresh WHERE state IN ('pending', 'running', 'retrying')) THEN
        UPDATE sexton.live l SET state = f.state, relay_after = f.relay_after, next_attempt_at = f.next_attempt_at,
            is_published = f.ticket_published_at IS NOT NULL
        FROM fresh f WHERE l.id = f.id AND f.state IN ('pending', 'running', 'retrying');
    END IF;
    IF EXISTS (SELECT FROM fresh WHERE state NOT IN ('pending', 'running', 'retrying')) THEN
        DELETE FROM sexton.live l USING fresh f
        WHERE l.id = f.id AND f.state NOT IN ('pending', 'running', 'retrying');
        INSERT INTO sexton.ended SELECT own_key, finished_at, id FROM fresh
        WHERE state IN ('succeeded', 'cancelled', 'skipped', 'discarded');
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER executions_go_on AFTER UPDATE ON sexton.executions REFERENCING NEW TABLE AS fresh
    FOR EACH STATEMENT EXECUTE FUNCTION sexton.executions_go_on();

INSERT INTO sexton.live
SELECT id, job_id, state, pool, scheduled_for, relay_after, next_attempt_at, ticket_published_at IS NOT NULL
FROM sexton.executions WHERE state IN ('pending', 'running', 'retrying');
INSERT INTO sexton.ended SELECT own_key, finished_at, id FROM sexton.executions
WHERE state IN ('succeeded', 'cancelled', 'skipped', 'discarded');
