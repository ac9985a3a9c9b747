-- What a pass of the sweep has kept lies here and not in the scheduler's memory, however long the queue is.

-- Unlogged: it is of one pass, and a pass does not outlive the server. After a crash the table is empty, and so
-- is without the line of any pass.
CREATE UNLOGGED TABLE sweep_kept (
    pass         timestamptz NOT NULL,
    execution_id uuid NOT NULL,
    PRIMARY KEY (pass, execution_id)
);
COMMENT ON TABLE sweep_kept IS 'Executions whose message the pass of the sweep under way has met in the failed queue and kept there. Empty between passes. Beside them each pass has a line of its own, with the nil UUID: without it nothing is known of what the pass has kept.';
COMMENT ON COLUMN sweep_kept.pass IS 'When the pass began.';
COMMENT ON COLUMN sweep_kept.execution_id IS 'The execution; the nil UUID is the pass itself.';
