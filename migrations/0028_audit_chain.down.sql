SET LOCAL lock_timeout = '3s';
DROP TRIGGER queue_for_sealing ON sexton.operator_actions;
DROP FUNCTION sexton.queue_for_sealing(), sexton.seal_operator_actions(integer), sexton.canonical_action(sexton.operator_actions);
CREATE OR REPLACE FUNCTION sexton.operator_actions_are_append_only() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF TG_OP = 'DELETE' AND current_setting('sexton.audit_retention', true) = 'on' THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION 'operator_actions is append-only';
END $$;
CREATE OR REPLACE FUNCTION sexton.delete_old_operator_actions(
    older_than timestamptz, behind timestamptz, most integer,
    OUT removed bigint, OUT last_at timestamptz, OUT last_id bigint)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    -- Not by a SET of the function, for which the owner would need a right of its own.
    PERFORM set_config('sexton.audit_retention', 'on', true);
    WITH gone AS (
        DELETE FROM sexton.operator_actions WHERE id IN (
            SELECT o.id FROM sexton.operator_actions o
            WHERE o.at < least(older_than, clock_timestamp() - interval '30 days')
              AND o.at >= coalesce(behind, '-infinity')
            ORDER BY o.at LIMIT most)
        RETURNING id, at)
    SELECT count(*), max(gone.at), max(gone.id) INTO removed, last_at, last_id FROM gone;
    PERFORM set_config('sexton.audit_retention', 'off', true);
END $$;
COMMENT ON FUNCTION sexton.delete_old_operator_actions(timestamptz, timestamptz, integer) IS 'Retention of the audit: removes at most "most" rows that are older than older_than and than 30 days, the oldest from behind on.';
DROP TABLE sexton.audit_seals, sexton.audit_unsealed, sexton.audit_chain;
