-- What tasks write, stored as it comes, and how far they say they are.

-- Rather not at all than holding up everybody behind somebody who reads for long. Run again, it goes on.
SET LOCAL lock_timeout = '3s';

-- First what takes the strongest locks, so that none is raised while programs of the version before work.

-- Added without a value, so the table is not rewritten.
ALTER TABLE attempts ADD COLUMN progress jsonb;
COMMENT ON COLUMN attempts.progress IS 'What the task last said of its progress: percent (0 to 100), values, at (worker''s clock). Null: nothing.';

-- For workers that deal their slots out by number; without it each pool was said to have all of them.
ALTER TABLE instances ADD COLUMN pool_slots integer[];
COMMENT ON COLUMN instances.pool_slots IS 'Slots for each of pools, in the same order. Null: of a version before, or no worker.';

CREATE TABLE attempt_output (
    execution_id uuid NOT NULL,
    number       integer NOT NULL,
    first_line   bigint NOT NULL CHECK (first_line >= 1),
    lines        bigint NOT NULL CHECK (lines >= 1),
    bytes_before bigint NOT NULL CHECK (bytes_before >= 0),
    bytes        bigint NOT NULL CHECK (bytes >= 0),
    from_at      timestamptz NOT NULL,
    to_at        timestamptz NOT NULL,
    content      text NOT NULL,
    PRIMARY KEY (execution_id, number, first_line),
    -- Retention removes executions, and with them this.
    FOREIGN KEY (execution_id, number) REFERENCES attempts (execution_id, number) ON DELETE CASCADE,
    CHECK (from_at <= to_at)
) WITH (
    -- Rows are never rewritten, so pages are filled; those of a task that writes without end are
    -- removed after a second or two, so vacuum comes often, and looks at the few that changed.
    fillfactor = 100,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 500,
    toast.autovacuum_vacuum_scale_factor = 0.02,
    toast.autovacuum_vacuum_threshold = 500
);

COMMENT ON TABLE attempt_output IS 'What attempts wrote: chunks of consecutive lines, head and tail; lines that no chunk holds were not kept.';
COMMENT ON COLUMN attempt_output.execution_id IS 'The execution.';
COMMENT ON COLUMN attempt_output.number IS 'The attempt''s number.';
COMMENT ON COLUMN attempt_output.first_line IS 'The number of its first line, from 1 over all that the attempt wrote.';
COMMENT ON COLUMN attempt_output.lines IS 'How many lines it holds.';
COMMENT ON COLUMN attempt_output.bytes_before IS 'Bytes that the attempt had written before it, line ends included.';
COMMENT ON COLUMN attempt_output.bytes IS 'Bytes that the attempt wrote for its lines.';
COMMENT ON COLUMN attempt_output.from_at IS 'When its earliest line was read; by the worker''s clock.';
COMMENT ON COLUMN attempt_output.to_at IS 'When its latest line was read; by the worker''s clock.';
COMMENT ON COLUMN attempt_output.content IS 'Lines, each: o (stdout) or e (stderr), milliseconds after from_at, a blank, the text.';

COMMENT ON COLUMN attempts.output IS 'Of workers before attempt_output: what it wrote, lines with stream and time. Not written any more.';
