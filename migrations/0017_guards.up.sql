SET LOCAL lock_timeout = '3s';

-- Runs of services that guard their own jobs: the unique row is what lets one of many instances run a tick.
CREATE TABLE sexton.guard_ticks (
    key         bigint NOT NULL,
    tick        timestamptz NOT NULL,
    began_at    timestamptz NOT NULL,
    began_by    text NOT NULL,
    backend     integer NOT NULL,
    finished_at timestamptz,
    outcome     text CHECK (outcome IN ('succeeded', 'failed', 'cancelled')),
    detail      text CHECK (octet_length(detail) <= 2000),
    PRIMARY KEY (key, tick)
);
-- For retention.
CREATE INDEX guard_ticks_began_at ON sexton.guard_ticks (began_at);

COMMENT ON TABLE sexton.guard_ticks IS 'Ticks of jobs that services run themselves, each taken by one of their instances.';
COMMENT ON COLUMN sexton.guard_ticks.key IS 'The job''s advisory lock key.';
COMMENT ON COLUMN sexton.guard_ticks.tick IS 'The instant for which the job was to run, as the service names it.';
COMMENT ON COLUMN sexton.guard_ticks.began_at IS 'When an instance took it.';
COMMENT ON COLUMN sexton.guard_ticks.began_by IS 'The log-in, address and backend of that instance, and its application_name.';
COMMENT ON COLUMN sexton.guard_ticks.backend IS 'The process id of its backend, which holds the lock until the run has ended.';
COMMENT ON COLUMN sexton.guard_ticks.finished_at IS 'When the service recorded the end; null: it runs, or its instance died.';
COMMENT ON COLUMN sexton.guard_ticks.outcome IS 'How it ended.';
COMMENT ON COLUMN sexton.guard_ticks.detail IS 'What the service adds, such as an error.';

-- Refuses a tick that no working clock names now. A tick of an hour ahead is that of an instance whose clock is wrong, and
-- would run an hour early. One of long ago may have been removed by retention, and would run twice.
CREATE FUNCTION sexton.check_tick(key bigint, tick timestamptz, at timestamptz) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF key IS NULL OR tick IS NULL OR NOT isfinite(tick) THEN
        RAISE EXCEPTION 'key or tick is null or infinite' USING ERRCODE = 'SX010',
            HINT = 'Pass the job''s lock key and the instant for which it runs, such as date_trunc(''minute'', now()).';
    END IF;
    IF tick > at + interval '5 minutes' OR tick < at - interval '1 day' THEN
        RAISE EXCEPTION 'the tick % is % the database''s clock', tick,
            CASE WHEN tick > at THEN 'more than 5 minutes ahead of' ELSE 'more than a day behind' END
            USING ERRCODE = 'SX030', HINT = 'Set the clock of this instance; the others run the job meanwhile.';
    END IF;
END
$$;

-- Takes a tick: inserts its row unless it is there, and removes the key's oldest rows. Whether it inserted it. `ends_with_it`: the
-- row is seen only if the caller's transaction, in which the job works, commits.
CREATE FUNCTION sexton.take_tick(key bigint, tick timestamptz, at timestamptz, ends_with_it boolean) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    INSERT INTO sexton.guard_ticks (key, tick, began_at, began_by, backend, finished_at, outcome)
    VALUES (take_tick.key, take_tick.tick, at,
            left(sexton.caller() || coalesce(' ' || nullif(current_setting('application_name'), ''), ''), 300),
            pg_backend_pid(), CASE WHEN ends_with_it THEN at END, CASE WHEN ends_with_it THEN 'succeeded' END)
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    -- Schedulers remove old rows at night, but a service may use this without any.
    DELETE FROM sexton.guard_ticks g WHERE (g.key, g.tick) IN (
        SELECT o.key, o.tick FROM sexton.guard_ticks o
        WHERE o.key = take_tick.key AND o.tick < at - interval '35 days' ORDER BY o.tick LIMIT 20 FOR UPDATE SKIP LOCKED);
    RETURN true;
END
$$;

-- Whether this session holds the advisory lock of a key.
CREATE FUNCTION sexton.holds_lock(key bigint) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (
        SELECT FROM pg_locks l
        WHERE l.locktype = 'advisory' AND l.granted AND l.pid = pg_backend_pid() AND l.objsubid = 1
          AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
          AND l.classid = ((key >> 32) & 4294967295)::oid AND l.objid = (key & 4294967295)::oid)
$$;

-- Whether this session is to run the job of this key for this tick. It then holds the advisory lock until guard_done, or
-- until its connection ends; every other call for the tick is answered with false, by whatever session and at any time.
CREATE FUNCTION sexton.guard_try(key bigint, tick timestamptz) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    called_at CONSTANT timestamptz := clock_timestamp();
    is_locked boolean := false;
BEGIN
    PERFORM sexton.check_tick(key, tick, called_at);
    -- PostgreSQL gives a session that has a lock the same lock again: the job would overlap itself.
    IF sexton.holds_lock(key) THEN
        RETURN false;
    END IF;
    BEGIN
        is_locked := pg_try_advisory_lock(key);
        IF NOT is_locked THEN
            RETURN false;
        END IF;
        IF sexton.take_tick(key, tick, called_at, false) THEN
            RETURN true;
        END IF;
    -- A session's lock outlives the statement that fails.
    EXCEPTION WHEN query_canceled OR OTHERS THEN
        IF is_locked THEN
            PERFORM pg_advisory_unlock(key);
        END IF;
        RAISE;
    END;
    PERFORM pg_advisory_unlock(key);
    RETURN false;
END
$$;

-- The same for the caller's transaction, which holds the lock until it ends; if it rolls back, the tick is free again. For
-- connections through a pooler that gives a session to several clients in turn. A tick that is taken is seen before the lock is
-- tried: a late instance would hold it for as long as its transaction lasts.
CREATE FUNCTION sexton.guard_try_xact(key bigint, tick timestamptz) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    called_at CONSTANT timestamptz := clock_timestamp();
BEGIN
    PERFORM sexton.check_tick(key, tick, called_at);
    IF sexton.holds_lock(key)
        OR EXISTS (SELECT FROM sexton.guard_ticks g WHERE g.key = guard_try_xact.key AND g.tick = guard_try_xact.tick) THEN
        RETURN false;
    END IF;
    RETURN pg_try_advisory_xact_lock(key) AND sexton.take_tick(key, tick, called_at, true);
END
$$;

-- Releases the lock of a key unless this session runs another tick of it. Whether it was held. An unlock outlives a transaction
-- that fails.
CREATE FUNCTION sexton.release_lock(key bigint) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    IF EXISTS (
        SELECT FROM sexton.guard_ticks g
        WHERE g.key = release_lock.key AND g.finished_at IS NULL AND g.backend = pg_backend_pid()
          -- Backends of before had the same process id.
          AND g.began_at >= (SELECT a.backend_start FROM pg_stat_activity a WHERE a.pid = pg_backend_pid())) THEN
        RETURN false;
    END IF;
    RETURN sexton.holds_lock(release_lock.key) AND pg_advisory_unlock(release_lock.key);
END
$$;

-- Records how the run of a tick ended, and releases the lock. False: this session does not hold the lock for this tick (any
-- more), so another instance may have run a later tick beside it.
CREATE FUNCTION sexton.guard_done(
    key bigint, tick timestamptz, outcome text DEFAULT 'succeeded', detail text DEFAULT NULL) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    backend integer;
    was_held boolean;
BEGIN
    IF guard_done.outcome IS NULL OR guard_done.outcome NOT IN ('succeeded', 'failed', 'cancelled') THEN
        RAISE EXCEPTION 'the outcome is none of succeeded, failed, cancelled' USING ERRCODE = 'SX010',
            HINT = 'Nothing was recorded, and the lock is still held. Put other words into detail.';
    END IF;
    UPDATE sexton.guard_ticks g
    SET finished_at = clock_timestamp(), outcome = guard_done.outcome,
        -- A character has at most four bytes.
        detail = CASE WHEN octet_length(guard_done.detail) > 2000 THEN left(guard_done.detail, 500)
                      ELSE guard_done.detail END
    WHERE g.key = guard_done.key AND g.tick = guard_done.tick AND g.finished_at IS NULL
    RETURNING g.backend INTO backend;
    -- Also if the row is gone with a transaction that was rolled back, or was ended on another connection: a connection of a pool
    -- would keep the lock for ever.
    was_held := sexton.release_lock(guard_done.key);
    IF backend IS NULL AND NOT EXISTS (
        SELECT FROM sexton.guard_ticks g WHERE g.key = guard_done.key AND g.tick = guard_done.tick) THEN
        RAISE EXCEPTION 'nobody has taken the tick % of key %', guard_done.tick, guard_done.key USING ERRCODE = 'SX010',
            HINT = 'Pass the key and the tick with which guard_try answered true, and commit before the job begins: a rollback '
                   'takes the tick back.';
    END IF;
    RETURN was_held AND coalesce(backend = pg_backend_pid(), false);
END
$$;

REVOKE ALL ON FUNCTION sexton.check_tick(bigint, timestamptz, timestamptz), sexton.take_tick(bigint, timestamptz, timestamptz, boolean),
    sexton.holds_lock(bigint), sexton.release_lock(bigint), sexton.guard_try(bigint, timestamptz), sexton.guard_try_xact(bigint, timestamptz),
    sexton.guard_done(bigint, timestamptz, text, text) FROM PUBLIC;
