SET LOCAL lock_timeout = '3s';

-- A bulk may cancel executions that wait or run.
ALTER TABLE sexton.bulks DROP CONSTRAINT bulks_kind_check,
    ADD CONSTRAINT bulks_kind_check CHECK (kind IN ('requeue', 'discard', 'restore', 'cancel'));

COMMENT ON TABLE sexton.bulks IS 'Operators'' actions on many executions at once. Schedulers carry them out.';
COMMENT ON COLUMN sexton.bulks.kind IS 'requeue, discard or restore, of failed executions; cancel, of executions that wait or run.';
COMMENT ON COLUMN sexton.bulks.previewed_at IS 'When the preview was made: only executions that had failed by then, or to be cancelled had been claimed, are selected.';
COMMENT ON COLUMN sexton.bulks.cursor_at IS 'executions.finished_at, or of a cancel executions.claimed_at, of the last item that is written.';
COMMENT ON COLUMN sexton.bulks.refused IS 'How many were not as they had been selected any more when their turn came.';
COMMENT ON COLUMN sexton.bulks.left_alone IS 'How many stay failed, since nobody could tell whether their effect has happened.';
COMMENT ON COLUMN sexton.bulk_items.ordinal IS '1, 2, 3 …, the longest failed first; of a cancel, in the order of the ids.';
COMMENT ON COLUMN sexton.bulk_items.seen IS 'Its attempt number when it was selected: a later failure of it is refused. A cancel ends it at any number.';
COMMENT ON COLUMN sexton.bulk_items.state IS 'unasked: a verify task or command has yet to say whether its effect has happened; waiting: to be done; done; refused: it was not as it had been selected any more; resolved: its effect had happened; left: there was no answer.';
