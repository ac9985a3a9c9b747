-- Heartbeats of jobs, and the dead man's switch of the platform.
SET LOCAL lock_timeout = '3s';

ALTER TABLE sexton.jobs ADD COLUMN heartbeat jsonb CHECK (jsonb_typeof(heartbeat) = 'object');
ALTER TABLE sexton.executions ADD COLUMN heartbeat boolean;
COMMENT ON COLUMN sexton.jobs.heartbeat IS 'The outside address that receives its heartbeats: url (a text, or where the secret is), on (start, success, failure), allow_private; null: none.';
COMMENT ON COLUMN sexton.executions.heartbeat IS 'Whether its changes are reported to the job''s heartbeat address, as its last attempt was opened; null: they are not.';

CREATE TABLE sexton.heartbeats (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id       uuid NOT NULL,
    execution_id uuid NOT NULL,
    attempt      integer NOT NULL,
    event        text NOT NULL CHECK (event IN ('start', 'success', 'failure')),
    detail       text CHECK (length(detail) <= 1000),
    address      text NOT NULL CHECK (length(address) <= 500),
    created_at   timestamptz NOT NULL,
    due_at       timestamptz NOT NULL,
    state        text NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'sent', 'dropped')),
    tries        integer NOT NULL DEFAULT 0 CHECK (tries >= 0),
    finished_at  timestamptz,
    last_error   text,
    CHECK ((state = 'pending') = (finished_at IS NULL))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
-- What is due, by address.
CREATE INDEX heartbeats_due ON sexton.heartbeats (address, due_at, id) WHERE state = 'pending';
-- The first one of a job that waits.
CREATE INDEX heartbeats_waiting ON sexton.heartbeats (job_id, id) WHERE state = 'pending';
-- The newest ones of a job, which are kept.
CREATE INDEX heartbeats_of_job ON sexton.heartbeats (job_id, id);
-- Those that were tried in vain: they wait, or were dropped of late.
CREATE INDEX heartbeats_in_vain ON sexton.heartbeats (finished_at) WHERE state <> 'sent' AND tries > 0;
COMMENT ON TABLE sexton.heartbeats IS 'Reports of jobs to outside addresses, each written together with what it reports.';
COMMENT ON COLUMN sexton.heartbeats.id IS 'In the order in which they were written; those of a job are sent in it.';
COMMENT ON COLUMN sexton.heartbeats.job_id IS 'The job. Without a foreign key: the job''s row may be removed first.';
COMMENT ON COLUMN sexton.heartbeats.execution_id IS 'The execution; the receiver reads it as rid.';
COMMENT ON COLUMN sexton.heartbeats.attempt IS 'The attempt that began or ended.';
COMMENT ON COLUMN sexton.heartbeats.event IS 'start, success or failure.';
COMMENT ON COLUMN sexton.heartbeats.detail IS 'The last error of a failure; null: none.';
COMMENT ON COLUMN sexton.heartbeats.address IS 'Scheme and host of the job''s URL, or where the secret with the URL is, when it was written.';
COMMENT ON COLUMN sexton.heartbeats.created_at IS 'When the attempt began or ended.';
COMMENT ON COLUMN sexton.heartbeats.due_at IS 'It is not sent before this instant; after a failure, the next try.';
COMMENT ON COLUMN sexton.heartbeats.state IS 'pending, sent or dropped (too old, or nobody needs it any more).';
COMMENT ON COLUMN sexton.heartbeats.tries IS 'How often it was sent, or tried.';
COMMENT ON COLUMN sexton.heartbeats.finished_at IS 'When it was sent or dropped; null while pending.';
COMMENT ON COLUMN sexton.heartbeats.last_error IS 'The last failure.';

CREATE TABLE sexton.heartbeat_addresses (
    address       text PRIMARY KEY,
    failures      integer NOT NULL DEFAULT 0 CHECK (failures >= 0),
    failing_since timestamptz,
    next_send_at  timestamptz,
    last_error    text,
    last_sent_at  timestamptz
);
COMMENT ON TABLE sexton.heartbeat_addresses IS 'Addresses of heartbeats, so that one that does not answer delays no other. A trigger adds those of jobs.';
COMMENT ON COLUMN sexton.heartbeat_addresses.address IS 'As in heartbeats.address.';
COMMENT ON COLUMN sexton.heartbeat_addresses.failures IS 'Claims in a row of which the address accepted nothing.';
COMMENT ON COLUMN sexton.heartbeat_addresses.failing_since IS 'Since when; null: the last one arrived.';
COMMENT ON COLUMN sexton.heartbeat_addresses.next_send_at IS 'Nothing is sent before this instant, because a claim is under way or sends fail; null: no limit.';
COMMENT ON COLUMN sexton.heartbeat_addresses.last_error IS 'The last failure.';
COMMENT ON COLUMN sexton.heartbeat_addresses.last_sent_at IS 'When it last answered.';

CREATE FUNCTION sexton.heartbeat_address(heartbeat jsonb) RETURNS text LANGUAGE sql IMMUTABLE
SET search_path = pg_catalog, pg_temp AS $$
    SELECT left(coalesce(lower(substring(heartbeat ->> 'url' FROM '^[hH][tT][tT][pP][sS]?://[^/?]+')), heartbeat ->> 'url'), 500)
$$;

-- With the owner's rights, like the function below, so that those who change jobs and executions need none here.
CREATE FUNCTION sexton.add_heartbeat_address() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO sexton.heartbeat_addresses (address) VALUES (sexton.heartbeat_address(NEW.heartbeat)) ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER add_heartbeat_address AFTER INSERT OR UPDATE OF heartbeat ON sexton.jobs
    FOR EACH ROW WHEN (NEW.heartbeat IS NOT NULL) EXECUTE FUNCTION sexton.add_heartbeat_address();

-- Only inserts, so that no task waits for a sender. The condition of the trigger needs no other row, so a job without a heartbeat
-- pays nothing.
CREATE FUNCTION sexton.write_heartbeat() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    event CONSTANT text := CASE NEW.state WHEN 'running' THEN 'start' WHEN 'succeeded' THEN 'success' ELSE 'failure' END;
    at CONSTANT timestamptz := CASE NEW.state WHEN 'running' THEN NEW.started_at ELSE NEW.finished_at END;
BEGIN
    INSERT INTO sexton.heartbeats (job_id, execution_id, attempt, event, detail, address, created_at, due_at)
    SELECT NEW.job_id, NEW.id, CASE WHEN NEW.state = 'failed' AND OLD.state = 'running' THEN OLD.attempt ELSE NEW.attempt END, event,
           CASE WHEN event = 'failure' THEN left(concat_ws(': ', NEW.error_class, NEW.error_message), 1000) END,
           sexton.heartbeat_address(j.heartbeat), at, at
    FROM sexton.jobs j WHERE j.id = NEW.job_id AND j.heartbeat -> 'on' ? event;
    RETURN NULL;
END $$;
-- One that fails without ever having been opened is reported as well. One that is restored from discarded had failed before.
CREATE TRIGGER write_heartbeat AFTER UPDATE OF state ON sexton.executions
    FOR EACH ROW WHEN ((NEW.heartbeat OR NEW.started_at IS NULL AND NEW.state = 'failed')
        AND NEW.state IN ('running', 'succeeded', 'failed') AND NEW.backfill IS NULL
        AND OLD.state <> NEW.state AND OLD.state <> 'discarded')
    EXECUTE FUNCTION sexton.write_heartbeat();
REVOKE ALL ON FUNCTION sexton.heartbeat_address(jsonb), sexton.add_heartbeat_address(), sexton.write_heartbeat() FROM PUBLIC;

CREATE TABLE sexton.dead_man (
    one       boolean PRIMARY KEY DEFAULT true CHECK (one),
    pinged_at timestamptz,
    tried_at  timestamptz,
    problem   text CHECK (length(problem) <= 4000)
);
INSERT INTO sexton.dead_man DEFAULT VALUES;
COMMENT ON TABLE sexton.dead_man IS 'The pings by which an outside watcher knows that the platform is well; one row.';
COMMENT ON COLUMN sexton.dead_man.one IS 'True: there is one row.';
COMMENT ON COLUMN sexton.dead_man.pinged_at IS 'When the watcher last accepted a ping; null: never.';
COMMENT ON COLUMN sexton.dead_man.tried_at IS 'When a scheduler last judged whether to ping.';
COMMENT ON COLUMN sexton.dead_man.problem IS 'Why no ping was sent, or accepted, then; null: one was.';
