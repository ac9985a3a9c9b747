-- The audit as a chain of hashes.
SET LOCAL lock_timeout = '3s';

-- First the lock, so that every action is either older than the chain or queued by the trigger.
LOCK TABLE sexton.operator_actions IN SHARE ROW EXCLUSIVE MODE;

CREATE TABLE sexton.audit_seals (
    position  bigint PRIMARY KEY CHECK (position > 0),
    action_id bigint NOT NULL UNIQUE,
    hash      bytea NOT NULL CHECK (length(hash) = 32),
    sealed_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE sexton.audit_seals IS 'The chain of the audit: a row for each sealed action, in the order in which they were sealed. Only seal_operator_actions adds, only delete_old_operator_actions removes.';
COMMENT ON COLUMN sexton.audit_seals.position IS 'Without gaps, from 1; retention removes from the beginning.';
COMMENT ON COLUMN sexton.audit_seals.action_id IS 'operator_actions.id.';
COMMENT ON COLUMN sexton.audit_seals.hash IS 'SHA-256 of the hash at the position before, followed by the action''s canonical form.';
COMMENT ON COLUMN sexton.audit_seals.sealed_at IS 'When it was sealed, by the database''s clock. Retention takes an action with a later time for one of this time.';

CREATE TABLE sexton.audit_unsealed (
    action_id     bigint PRIMARY KEY,
    waiting_since timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
COMMENT ON TABLE sexton.audit_unsealed IS 'Actions that are not sealed yet; a trigger adds them in the transaction that records them.';
COMMENT ON COLUMN sexton.audit_unsealed.action_id IS 'operator_actions.id.';
COMMENT ON COLUMN sexton.audit_unsealed.waiting_since IS 'When it was recorded.';

CREATE TABLE sexton.audit_chain (
    one             boolean PRIMARY KEY DEFAULT true CHECK (one),
    position        bigint NOT NULL DEFAULT 0,
    hash            bytea NOT NULL DEFAULT decode(repeat('00', 32), 'hex') CHECK (length(hash) = 32),
    sealed_at       timestamptz,
    anchor_position bigint NOT NULL DEFAULT 0,
    anchor_hash     bytea NOT NULL DEFAULT decode(repeat('00', 32), 'hex') CHECK (length(anchor_hash) = 32),
    older_from      bigint NOT NULL DEFAULT 0,
    older_to        bigint NOT NULL DEFAULT 0
);
INSERT INTO sexton.audit_chain (older_to) SELECT coalesce(max(id), 0) FROM sexton.operator_actions;
COMMENT ON TABLE sexton.audit_chain IS 'The state of the audit''s chain; one row.';
COMMENT ON COLUMN sexton.audit_chain.one IS 'Always true: there is one row.';
COMMENT ON COLUMN sexton.audit_chain.position IS 'The last position; 0: nothing is sealed yet.';
COMMENT ON COLUMN sexton.audit_chain.hash IS 'The hash there; of position 0: zeros.';
COMMENT ON COLUMN sexton.audit_chain.sealed_at IS 'When an action was sealed last.';
COMMENT ON COLUMN sexton.audit_chain.anchor_position IS 'The last position that retention has removed; 0: none.';
COMMENT ON COLUMN sexton.audit_chain.anchor_hash IS 'The hash there, with which the chain begins now.';
COMMENT ON COLUMN sexton.audit_chain.older_from IS 'Of the actions recorded before the chain began, those up to this id are sealed.';
COMMENT ON COLUMN sexton.audit_chain.older_to IS 'The last action recorded before the chain began.';

-- With the owner's rights: those who record an action may not write here.
CREATE FUNCTION sexton.queue_for_sealing() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO sexton.audit_unsealed (action_id) SELECT id FROM recorded;
    RETURN NULL;
END $$;
CREATE TRIGGER queue_for_sealing AFTER INSERT ON sexton.operator_actions REFERENCING NEW TABLE AS recorded
    FOR EACH STATEMENT EXECUTE FUNCTION sexton.queue_for_sealing();

-- docs/reference/audit-chain.md describes it, and sexton_model::audit_chain computes it again. Nothing in it depends on a setting.
CREATE FUNCTION sexton.canonical_action(a sexton.operator_actions) RETURNS bytea LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp AS $$
    SELECT convert_to(string_agg(
               CASE WHEN c.value IS NULL THEN '-,' ELSE octet_length(convert_to(c.value, 'UTF8')) || ':' || c.value || ',' END,
               '' ORDER BY c.place), 'UTF8')
    FROM unnest(ARRAY[
        a.id::text,
        CASE WHEN isfinite(a.at) THEN to_char(a.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
            || CASE WHEN extract(year FROM a.at AT TIME ZONE 'UTC') < 0 THEN ' BC' ELSE '' END ELSE a.at::text END,
        a.actor, a.from_where, a.from_address::text, a.action, a.job_id::text, a.execution_id::text, a.bulk_id::text, a.reason,
        a.before::text, a.after::text]) WITH ORDINALITY AS c (value, place)
$$;

-- Appends actions that are committed to the chain, one caller at a time; a second one returns at once. Actions that commit later than
-- others with a higher id are sealed later, so positions are not in the order of ids.
CREATE FUNCTION sexton.seal_operator_actions(most integer, OUT sealed integer, OUT more boolean)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    size CONSTANT integer := greatest(least(most, 10000), 1);
    chain sexton.audit_chain;
    action sexton.operator_actions;
    beginning bigint;
BEGIN
    sealed := 0;
    more := false;
    -- So that nothing is written while nothing happens, nor for an action that was removed before it was sealed.
    IF NOT EXISTS (SELECT FROM sexton.audit_unsealed u JOIN sexton.operator_actions o ON o.id = u.action_id)
        AND NOT EXISTS (SELECT FROM sexton.audit_chain c WHERE c.older_from < c.older_to) THEN
        RETURN;
    END IF;
    SELECT * INTO chain FROM sexton.audit_chain FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    beginning := chain.position;
    FOR action IN
        SELECT o.* FROM sexton.operator_actions o WHERE o.id > chain.older_from AND o.id <= chain.older_to
        ORDER BY o.id LIMIT size
    LOOP
        chain.position := chain.position + 1;
        chain.hash := sha256(chain.hash || sexton.canonical_action(action));
        chain.older_from := action.id;
        sealed := sealed + 1;
        INSERT INTO sexton.audit_seals (position, action_id, hash) VALUES (chain.position, action.id, chain.hash);
    END LOOP;
    IF sealed < size THEN
        chain.older_from := chain.older_to;
        FOR action IN
            SELECT o.* FROM sexton.audit_unsealed u JOIN sexton.operator_actions o ON o.id = u.action_id
            ORDER BY u.action_id LIMIT size - sealed
        LOOP
            chain.position := chain.position + 1;
            chain.hash := sha256(chain.hash || sexton.canonical_action(action));
            sealed := sealed + 1;
            INSERT INTO sexton.audit_seals (position, action_id, hash) VALUES (chain.position, action.id, chain.hash);
        END LOOP;
        DELETE FROM sexton.audit_unsealed u USING sexton.audit_seals s
        WHERE s.position > beginning AND s.action_id = u.action_id;
    END IF;
    more := sealed = size;
    UPDATE sexton.audit_chain c SET position = chain.position, hash = chain.hash, older_from = chain.older_from,
        sealed_at = CASE WHEN sealed > 0 THEN clock_timestamp() ELSE c.sealed_at END
    WHERE sealed > 0 OR c.older_from <> chain.older_from;
END $$;

CREATE OR REPLACE FUNCTION sexton.operator_actions_are_append_only() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF TG_OP = 'DELETE' AND current_setting('sexton.audit_retention', true) = 'on' THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME;
END $$;
CREATE TRIGGER audit_seals_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON sexton.audit_seals
    FOR EACH STATEMENT EXECUTE FUNCTION sexton.operator_actions_are_append_only();

-- It removes from the beginning of the chain, and leaves the hash of the last position that it removed as the anchor. An action behind
-- a younger one stays until that one is old enough, one that is not sealed stays until it is sealed. One with a time in the future is
-- as old as its seal, so that it does not stop retention.
CREATE OR REPLACE FUNCTION sexton.delete_old_operator_actions(
    older_than timestamptz, behind timestamptz, most integer,
    OUT removed bigint, OUT last_at timestamptz, OUT last_id bigint)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    cut CONSTANT timestamptz := least(older_than, clock_timestamp() - interval '30 days');
    anchor bigint;
BEGIN
    removed := 0;
    PERFORM FROM sexton.audit_chain FOR UPDATE;
    WITH oldest AS (
        -- Of a null and a time, least() is the time.
        SELECT s.position, CASE WHEN o.id IS NOT NULL THEN least(o.at, s.sealed_at) END AS at
        FROM sexton.audit_seals s LEFT JOIN sexton.operator_actions o ON o.id = s.action_id
        ORDER BY s.position LIMIT most)
    SELECT max(position) INTO anchor FROM oldest
    WHERE at < cut AND position < coalesce((SELECT min(position) FROM oldest WHERE at >= cut), 9223372036854775807);
    IF anchor IS NULL THEN
        RETURN;
    END IF;
    UPDATE sexton.audit_chain SET anchor_position = s.position, anchor_hash = s.hash
    FROM sexton.audit_seals s WHERE s.position = anchor;
    -- Not by a SET of the function, for which the owner would need a right of its own.
    PERFORM set_config('sexton.audit_retention', 'on', true);
    WITH gone AS (DELETE FROM sexton.audit_seals WHERE position <= anchor RETURNING action_id),
         actions AS (DELETE FROM sexton.operator_actions o USING gone WHERE o.id = gone.action_id RETURNING o.id, o.at)
    SELECT (SELECT count(*) FROM gone), max(a.at), max(a.id) INTO removed, last_at, last_id FROM actions a;
    PERFORM set_config('sexton.audit_retention', 'off', true);
END $$;

REVOKE ALL ON FUNCTION sexton.queue_for_sealing(), sexton.canonical_action(sexton.operator_actions),
    sexton.seal_operator_actions(integer) FROM PUBLIC;
COMMENT ON FUNCTION sexton.seal_operator_actions(integer) IS 'Appends at most "most" actions to the chain of the audit; says how many, and whether there may be more.';
COMMENT ON FUNCTION sexton.delete_old_operator_actions(timestamptz, timestamptz, integer) IS 'Retention of the audit: removes at most "most" sealed actions that are older than older_than and than 30 days, from the beginning of the chain on. "behind" has no meaning any more.';
